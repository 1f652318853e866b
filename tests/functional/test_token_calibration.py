"""A model whose tokenizer makes more tokens of a text than ours: what its provider reports is learned from, and no count stays under."""

from collections.abc import Iterator
from typing import Any

from tidemark.models import tokenizer
from tidemark.models.ports import ModelRequest, ModelResponse, TextDelta, ToolCall

from tests.support.models import ScriptedModel
from tests.support.world import Client, World, use

WORDS = "the harbour master wrote down which of the boats came in before the fog and which of them did not " * 3
FACTOR = 1.7


def modelled(aws: World, **figures: Any) -> ScriptedModel:
    model = ScriptedModel("Noted. " * 20, **figures)
    use(aws.patch, "model", model)
    aws.patch.setattr("tidemark.conversations.summary.PAUSE_SECONDS", 0.0)
    return model


def agent(aws: World, client: Client, name: str = "a model nobody listed", **config: Any) -> str:
    body = {"name": "S", "model_id": name, "enable_memory": True, "context_compression_config": config}
    found: str = aws.user(client.caller.tenant_id).post("/v1/agents", body)["id"]
    return found


def bring(client: Client, conversation: str, count: int) -> None:
    messages = [{"role": ("user", "assistant")[place % 2], "content": f"{place}: {WORDS}"} for place in range(count)]
    client.post(f"/v1/conversations/{conversation}/import", {"messages": messages})


def total(client: Client, conversation: str) -> int:
    found: int = client.get(f"/v1/conversations/{conversation}/context")["total_tokens"]
    return found


def tokens_of(client: Client, words: str, **body: Any) -> int:
    """What a message of these words counts in a new conversation."""
    conversation = client.conversation(**body)
    client.post(f"/v1/conversations/{conversation}/import", {"messages": [{"role": "user", "content": words}]})
    found: int = client.messages(conversation)[0]["tokens"]
    return found


def test_what_was_counted_under_is_made_up_for_and_later_texts_are_counted_right(aws: World, ada: Client) -> None:
    model = modelled(aws, factor=FACTOR)
    other = agent(aws, ada)
    conversation = ada.conversation(agent_id=other)
    bring(ada, conversation, 40)
    answer = ada.say(conversation, "Which boats are missing?")
    reported = answer["metadata"]["usage"]["input_tokens"]
    assert reported == tokenizer.count_request(model.of("turn")[-1], FACTOR)
    usage = ada.get(f"/v1/conversations/{conversation}/context")
    assert usage["total_tokens"] >= reported + tokenizer.count(answer["message"]["content"])
    assert usage["total_tokens"] == sum(usage["parts"].values())
    again = ada.say(conversation, "And which came in?")
    assert total(ada, conversation) >= again["metadata"]["usage"]["input_tokens"]
    assert tokens_of(ada, WORDS, agent_id=other) >= tokenizer.count(WORDS, FACTOR)
    frame = ada.walk(f"/v1/conversations/{conversation}/context/frames")[0]
    assert frame["totals"]["included_tokens"] >= again["metadata"]["usage"]["input_tokens"]
    assert any(item["reason"] == "reported_by_provider" for item in frame["items"])


def test_a_factor_is_one_models_in_one_tenant(aws: World, ada: Client) -> None:
    modelled(aws, factor=FACTOR)
    conversation = ada.conversation(agent_id=agent(aws, ada))
    bring(ada, conversation, 40)
    ada.say(conversation, "Which boats are missing?")
    plain = tokens_of(aws.key(aws.tenant(), "zoe"), WORDS)
    assert tokens_of(ada, WORDS, agent_id=agent(aws, ada, "another model")) == plain
    assert tokens_of(ada, WORDS, agent_id=agent(aws, ada)) > plain


def test_a_conversation_stays_inside_the_real_window_of_an_unknown_tokenizer(aws: World, ada: Client) -> None:
    modelled(aws, factor=FACTOR, window=8000)
    conversation = ada.conversation(agent_id=agent(aws, ada, context_window=8000, max_output_tokens=1000, tail_max_tokens=3000))
    for number in range(60):
        ada.say(conversation, f"{number}: {WORDS}", memory="off")
    records = ada.walk(f"/v1/conversations/{conversation}/compactions")
    assert len(records) >= 2
    assert all(record["after_tokens"] < record["before_tokens"] for record in records)


def test_reports_of_short_requests_and_impossible_ones_move_nothing(aws: World, ada: Client) -> None:
    other = agent(aws, ada)
    plain = tokens_of(ada, WORDS, agent_id=other)
    modelled(aws, factor=3.0)
    ada.say(ada.conversation(agent_id=other), "Good morning.", memory="off")
    modelled(aws, factor=40.0)
    conversation = ada.conversation(agent_id=other)
    bring(ada, conversation, 20)
    before = total(ada, conversation)
    answer = ada.say(conversation, "Which boats are missing?", memory="off")
    assert total(ada, conversation) < before + 500
    assert answer["metadata"]["usage"]["input_tokens"] > 30 * before
    assert tokens_of(ada, WORDS, agent_id=other) == plain


def test_a_rollback_takes_back_its_part(aws: World, ada: Client) -> None:
    modelled(aws, factor=FACTOR)
    conversation = ada.conversation(agent_id=agent(aws, ada))
    bring(ada, conversation, 40)
    ada.say(conversation, "Which boats are missing?", memory="off")
    whole = ada.get(f"/v1/conversations/{conversation}/context")["parts"]["system"]
    fourth = ada.messages(conversation)[3]["id"]
    ada.post(f"/v1/conversations/{conversation}/rollback", {"to_message_id": fourth})
    assert ada.get(f"/v1/conversations/{conversation}/context")["parts"]["system"] < whole // 4


class LookingFirst(ScriptedModel):
    """Looks into memory twice before it answers."""

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        if request.purpose == "turn" and sum(message.role == "tool" for message in request.messages) < 2:
            self.enqueue([ToolCall(id=f"c{len(self.asked)}", name="search_memory", arguments={"query": "boats"})])
        yield from super().stream(request)


def test_several_calls_of_one_turn_are_not_one_long_request(aws: World, ada: Client) -> None:
    model = LookingFirst()
    use(aws.patch, "model", model)
    aws.patch.setenv("TIDEMARK_MODEL_PROVIDER", "openai_compatible")
    aws.patch.setenv("TIDEMARK_MODEL_BASE_URL", "http://127.0.0.1:1/v1")
    use(aws.patch, "model", model)
    conversation = ada.conversation(agent_id=agent(aws, ada))
    bring(ada, conversation, 40)
    before = total(ada, conversation)
    answer = ada.say(conversation, "Which boats are missing?")
    assert len(model.of("turn")) == 3
    assert answer["metadata"]["usage"]["input_tokens"] > 2 * before
    assert total(ada, conversation) < before + 500


def test_stateless_answers_teach_too(aws: World, ada: Client) -> None:
    modelled(aws, factor=FACTOR)
    default = next(one for one in aws.user(ada.caller.tenant_id).walk("/v1/agents") if one["is_default"])
    aws.user(ada.caller.tenant_id).patch(f"/v1/agents/{default['id']}", {"model_id": "a model nobody listed"})
    plain = tokens_of(ada, WORDS)
    ada.post("/v1/chat/completions", {"model": "m", "messages": [{"role": "user", "content": WORDS * 30}]})
    assert tokens_of(ada, WORDS) > plain
