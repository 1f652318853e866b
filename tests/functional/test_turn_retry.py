"""A client that lost its connection: it retries with its key, and finds the turn under its id."""

from collections.abc import Iterator

from tidemark.models.ports import ModelRequest, ModelResponse, TextDelta

from tests.support.models import ScriptedModel
from tests.support.world import Answer, Client, World, use

KEY = {"Idempotency-Key": "k1"}


class Interrupted(ScriptedModel):
    """A model in the middle of whose answer the client retries and asks for the turn."""

    def __init__(self) -> None:
        super().__init__("Good morning.")
        self.retries: list[Answer] = []
        self.client: Client | None = None
        self.path = ""

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        if self.client is not None and not self.retries:
            self.retries.append(self.client.send("POST", self.path, {"content": "hello"}, headers=KEY))
            turn = self.retries[0].body["turn_id"]
            self.retries.append(self.client.send("GET", self.path.replace("messages", f"turns/{turn}")))
        yield from super().stream(request)


def test_a_retry_while_the_turn_runs_is_told_its_id_and_gets_the_answer_afterwards(aws: World) -> None:
    model = Interrupted()
    use(aws.patch, "model", model)
    api = aws.key(aws.tenant(), "ada")
    conversation = api.conversation()
    model.client, model.path = api, f"/v1/conversations/{conversation}/messages"
    first = api.send("POST", model.path, {"content": "hello"}, headers=KEY)
    retry, running = model.retries
    assert (retry.status, retry.code) == (409, "idempotency_in_flight")
    assert retry.body["turn_id"] == first.body["turn_id"]
    assert (running.body["state"], running.body["answer"]) == ("running", None)
    again = api.send("POST", model.path, {"content": "hello"}, headers=KEY)
    assert again.body == first.body
    assert again.headers["idempotency-replayed"] == "true"
    assert len(api.messages(conversation)) == 2
