"""Section H of the reports: what is done twice, what waits for a model, and what gets stuck. Each test names its case."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import timedelta
from threading import Barrier
from typing import Any

import pytest
from tidemark import bootstrap, clock
from tidemark.conversations.requests import TurnBody
from tidemark.models.ports import ModelError, ModelMalformedError, ModelRequest, ModelResponse, ModelUnavailableError, TextDelta
from tidemark.privacy import traces
from tidemark.storage import keys
from tidemark.storage.leases import lease

from tests.support.fast_moto import one_call_at_a_time
from tests.support.models import ScriptedModel
from tests.support.permissions import RESOURCES
from tests.support.world import Answer, Client, World, use

WAITING = 12  # more than the connections that a client of AWS keeps


class Waiting(ScriptedModel):
    """Answers only when all have asked and somebody let them go on."""

    def __init__(self) -> None:
        super().__init__()
        self.asked_all, self.go_on = Barrier(WAITING + 1, timeout=60), Barrier(WAITING + 1, timeout=60)

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        self.asked_all.wait()
        self.go_on.wait()
        yield from super().stream(request)


KEY = {"Idempotency-Key": "k1"}
ADDITIONS: dict[str, tuple[str, dict[str, Any]]] = {
    "conversation": ("/v1/conversations", {"title": "Harbours", "external_subject_id": "ada"}),
    "turn": ("/v1/conversations/{conversation}/messages", {"content": "Remember this: my sister Ingrid lives in Bergen."}),
    "import": ("/v1/conversations/{conversation}/import", {"messages": [{"role": "user", "content": "I live in Bergen."}]}),
    "extract": ("/v1/conversations/{conversation}/extract", {}),
    "remember": ("/v1/memories/remember", {"text": "My sister Ingrid lives in Bergen."}),
    "entity": ("/v1/memories/entities", {"name": "pier", "entity_type": "concept"}),
    "completion": ("/v1/chat/completions", {"model": "any", "user": "ada", "messages": [{"role": "user", "content": "Hello"}]}),
}


def add(client: Client, what: str, conversation: str, **changes: Any) -> Answer:
    path, body = ADDITIONS[what]
    return client.send("POST", path.format(conversation=conversation), body | changes, headers=KEY)


def kept(world: World) -> list[Any]:
    """All that is stored, but for the counts of requests."""
    return [item for item in world.items() if item.get("kind") != "usage"]


@pytest.mark.parametrize("what", ADDITIONS)
def test_case_132_a_retry_of_what_still_runs_waits_and_then_gets_the_same_result(aws: World, ada: Client, what: str) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "Good morning.")
    retries: list[Answer] = []
    serving = traces.serving

    @contextmanager
    def timed_out(*request: Any) -> Iterator[None]:
        """The client gives up in the middle, and asks again while the first request goes on."""
        with serving(*request):
            retries.append(add(ada, what, conversation))
            yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(traces, "serving", timed_out)
        first = add(ada, what, conversation)
    assert retries[0].status == 409
    assert "idempotency_in_flight" in str(retries[0].body)
    before = kept(aws)
    again = add(ada, what, conversation)
    assert first.status < 300
    assert (again.status, again.body, again.headers["idempotency-replayed"]) == (first.status, first.body, "true")
    assert kept(aws) == before


@pytest.mark.parametrize("what", ADDITIONS)
def test_case_133_a_key_of_another_request_is_refused_and_of_another_tenant_another_key(aws: World, ada: Client, what: str) -> None:
    conversation = ada.conversation()
    first = add(ada, what, conversation)
    assert first.status < 300
    bob, stranger = aws.key(ada.caller.tenant_id, "bob"), aws.key(aws.tenant(), "ada")
    foreign = stranger.conversation()
    before = kept(aws)
    for reused in (add(ada, what, conversation, more="words"), add(bob, what, conversation, user="bob")):
        assert reused.status == 422
        assert "idempotency_key_reused" in str(reused.body)
    assert kept(aws) == before
    own = add(stranger, what, foreign)
    assert own.status == first.status
    assert "idempotency-replayed" not in own.headers
    assert own.body != first.body


@pytest.mark.parametrize("what", ["entity", "remember"])
def test_case_133_a_queue_that_delivers_twice_stores_once_and_gets_the_same_ids(aws: World, ada: Client, what: str) -> None:
    """Names are the client's ids of memories: the same one is the same memory, with and without a key; other ids are not taken."""
    path, body = ADDITIONS[what]
    for name in ("id", "memory_id", "custom_id"):
        assert ada.refused("POST", path, body | {name: "ent_01ARZ3NDEKTSV4RRFFQ69G5FAV"}) == (422, "validation_failed")
    answers = [ada.post(path, body) for _ in range(2)]
    if what == "remember":
        answers.append(ada.tool(what, **body).body["result"]["structuredContent"])
    ids = [{one["id"] for one in answer.get("entities", [answer])} for answer in answers]
    assert ids[0]
    assert all(one == ids[0] for one in ids)
    names = [one["name"] for one in ada.memories()]
    assert len(names) == len(set(names))


@pytest.mark.parametrize("failure", [None, ModelUnavailableError(), ModelMalformedError("no answer"), RuntimeError("a fault of ours")])
def test_case_138_a_turn_ends_as_its_record_says(aws: World, ada: Client, model: ScriptedModel, failure: Any) -> None:
    conversation = ada.conversation()
    path = f"/v1/conversations/{conversation}"
    if failure is not None:
        model.enqueue(failure) if isinstance(failure, ModelError) else aws.patch.setattr(model, "stream", broken)
    answer = ada.send("POST", f"{path}/messages", {"content": "I work at Acme."})
    [id] = [item["sk"].removeprefix("t#") for item in aws.items() if item["sk"].startswith("t#")]
    told, messages = ada.get(f"{path}/turns/{id}"), ada.messages(conversation)
    if failure is None:
        assert (answer.status, told["state"], told["problem"]) == (200, "completed", None)
        assert told["answer"] == answer.body
        assert messages[-1] == answer.body["message"]
        assert [one["turn_id"] for one in messages] == [id, id]
    else:
        assert answer.status >= 500
        assert (told["state"], told["answer"], told["problem"]["code"]) == ("failed", None, answer.code)
        assert messages == []


def broken(*_: Any, **__: Any) -> Any:
    raise RuntimeError("a fault of ours")


@pytest.mark.parametrize(
    ("said", "part", "state", "reason"),
    [
        ("I work at Acme.", None, "completed", None),
        ("Good morning!", None, "completed", None),
        (None, None, "skipped", "nothing_pending"),
        ("I work at Acme.", "learning.Learning.learn", "failed", "RuntimeError"),
        ("I work at Acme.", "extraction.Extraction._pending", "failed", "RuntimeError"),
        ("I work at Acme.", "learning.Learning._store_one", "failed", "RuntimeError"),
    ],
)
def test_case_138_an_extraction_ends_as_its_job_says(
    aws: World, ada: Client, said: str | None, part: str | None, state: str, reason: str | None
) -> None:
    conversation = ada.conversation()
    if said:
        ada.say(conversation, said)
        aws.queued()
    accepted = ada.send("POST", f"/v1/conversations/{conversation}/extract")
    assert accepted.status == 202
    assert accepted.body["state"] == ("queued" if said else "skipped")
    with pytest.MonkeyPatch.context() as patch:
        if part:
            patch.setattr(f"tidemark.memory.{part}", broken)
        failed = aws.deliver()
    [job] = [one for one in ada.walk("/v1/extractions") if one["id"] == accepted.body["id"]]
    stored = [one["id"] for one in ada.memories() if one["entity_type"] == "fact"]
    assert (job["state"], job["reason"], bool(job["completed_at"])) == (state, reason, True)
    assert job["entities"] == len(stored)
    assert bool(failed) == (state == "failed")  # and the queue brings it again
    assert bool(stored) == (state == "completed" and said == "I work at Acme.")


def test_case_138_an_extraction_whose_worker_died_has_failed_and_is_done_again(aws: World, ada: Client) -> None:
    class DiedError(BaseException):
        """What no handler catches."""

    def dies(*_: Any, **__: Any) -> Any:
        raise DiedError

    ada.say(ada.conversation(), "I work at Acme.")
    aws.clock.forward(hours=1)
    [(wake, _)] = aws.wakes()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidemark.memory.learning.Learning.learn", dies)
        with pytest.raises(DiedError):
            aws.extract(wake)
    assert [job["state"] for job in ada.walk("/v1/extractions")] == ["running"]
    aws.clock.forward(minutes=3)
    [job] = ada.walk("/v1/extractions", state="failed")
    assert (job["reason"], ada.walk("/v1/extractions", state="running")) == ("WorkerDied", [])
    assert aws.extract(wake) == []
    assert [job["state"] for job in ada.walk("/v1/extractions")] == ["completed", "failed"]
    assert [job["entities"] for job in ada.walk("/v1/extractions")] == [1, 0]


def test_case_139_turns_that_wait_for_the_model_hold_nothing_that_others_need(aws: World, ada: Client) -> None:
    model = Waiting()
    use(aws.patch, "model", model)
    one_call_at_a_time(aws.patch)
    conversation = ada.conversation()
    caller = ada.caller.model_copy(update={"external_subject_id": "ada"})
    turns, deadline = bootstrap.turns(), clock.now() + timedelta(minutes=5)
    with ThreadPoolExecutor(WAITING) as pool:
        waiting = [pool.submit(turns.answer, caller, conversation, TurnBody(content=f"{number}"), deadline) for number in range(WAITING)]
        model.asked_all.wait()
        ada.post(f"/v1/conversations/{conversation}/import", {"messages": [{"role": "user", "content": "meanwhile"}]})
        assert ada.patch(f"/v1/conversations/{conversation}", {"title": "changed"})["title"] == "changed"
        ada.post("/v1/memories/entities", {"name": "tea", "entity_type": "concept"})
        model.go_on.wait()
        answers = {one.result().message.parent_id for one in waiting}
    told = ada.messages(conversation)
    assert len(answers) == WAITING
    assert told[0]["content"] == "meanwhile"
    assert [one["role"] for one in told[1:]] == ["user", "assistant"] * WAITING
    assert [one["created_at"] for one in told] == sorted(one["created_at"] for one in told)


def test_case_140_a_wedged_worker_is_replaced_and_a_poisoned_message_ends_in_the_dead_letters(aws: World, ada: Client) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "I live in Bergen.")
    key = keys.extraction_lease(ada.caller.tenant_id, conversation)
    wedged = lease(key, timedelta(minutes=6))
    assert wedged.__enter__()
    aws.clock.forward(hours=1)
    [body] = [body for body, _ in aws.queued() if '"trigger"' in body]
    assert aws.deliver([body]) == []  # its time ran out an hour ago
    assert ada.walk("/v1/extractions")[0]["state"] == "completed"

    queue = RESOURCES["ExtractionQueue"]["Properties"]
    function = RESOURCES["ExtractionFunction"]["Properties"]
    assert 1 < queue["RedrivePolicy"]["maxReceiveCount"] <= 10
    assert queue["RedrivePolicy"]["deadLetterTargetArn"] == {"Fn::GetAtt": ["ExtractionDeadLetterQueue", "Arn"]}
    assert 0 < function["Timeout"] <= 900
    assert function["Events"]["Queue"]["Properties"]["FunctionResponseTypes"] == ["ReportBatchItemFailures"]
