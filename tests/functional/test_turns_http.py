"""Turns through the chat function: what the model is asked, what is stored, what goes wrong."""

from collections.abc import Iterator

import pytest
from pynamodb.exceptions import UpdateError
from tidemark.models import tokenizer
from tidemark.models.ports import (
    ModelContextTooLongError,
    ModelRequest,
    ModelResponse,
    ModelThrottledError,
    ModelUnavailableError,
    TextDelta,
    ToolCall,
)

from tests.support.models import ScriptedModel
from tests.support.world import Client, World, use

TOOLS = [{"name": "weather", "description": "Weather of a city", "parameters": {"type": "object"}}]


def test_a_turn_sends_the_branch_and_stores_question_and_answer_side_by_side(model: ScriptedModel, ada: Client) -> None:
    conversation = ada.conversation()
    model.enqueue("First answer.", "Second answer.")
    ada.say(conversation, "First question?")
    answer = ada.say(conversation, "Second question?", name="Ada")
    assert [(one.role, one.content) for one in model.asked[1].messages] == [
        ("user", "First question?"),
        ("assistant", "First answer."),
        ("user", "Second question?"),
    ]
    stored = ada.messages(conversation)
    assert [one["content"] for one in stored] == ["First question?", "First answer.", "Second question?", "Second answer."]
    assert stored[3] == answer["message"]
    assert stored[2]["name"] == "Ada"
    assert answer["metadata"]["usage"]["output_tokens"] > 0
    assert {one["turn_id"] for one in stored[2:]} == {answer["turn_id"]}


def test_a_turn_can_be_asked_for_later(model: ScriptedModel, ada: Client) -> None:
    conversation = ada.conversation()
    answer = ada.say(conversation, "Hello")
    turn = ada.get(f"/v1/conversations/{conversation}/turns/{answer['turn_id']}")
    assert (turn["state"], turn["problem"]) == ("completed", None)
    assert turn["answer"] == answer


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (ModelUnavailableError(), 502, "model_unavailable"),
        (ModelThrottledError(), 502, "model_throttled"),
        (ModelContextTooLongError(), 502, "model_context_too_long"),
    ],
)
def test_a_turn_that_failed_leaves_the_conversation_as_it_was(
    aws: World, model: ScriptedModel, ada: Client, error: Exception, status: int, code: str
) -> None:
    conversation = ada.conversation()
    before = ada.get(f"/v1/conversations/{conversation}")
    model.enqueue(error)  # type: ignore[arg-type]
    refused = ada.send("POST", f"/v1/conversations/{conversation}/messages", {"content": "Hello"})
    assert (refused.code, refused.status in (status, 503, 504)) == (code, True)
    assert ada.get(f"/v1/conversations/{conversation}") == before
    [turn] = [item["sk"].removeprefix("t#") for item in aws.items() if item["sk"].startswith("t#")]
    told = ada.get(f"/v1/conversations/{conversation}/turns/{turn}")
    assert (told["state"], told["problem"]["code"]) == ("failed", code)


def test_a_turn_whose_worker_died_has_failed(aws: World, ada: Client) -> None:
    class Died(BaseException):
        """What no handler catches."""

    class Dying(ScriptedModel):
        def stream(self, request: object) -> object:  # type: ignore[override]
            raise Died

    use(aws.patch, "model", Dying())
    conversation = ada.conversation()
    with pytest.raises(Died):
        ada.say(conversation, "Hello")
    [turn] = [item["sk"].removeprefix("t#") for item in aws.items() if item["sk"].startswith("t#")]
    path = f"/v1/conversations/{conversation}/turns/{turn}"
    assert ada.get(path)["state"] == "running"
    aws.clock.forward(minutes=1)
    assert ada.get(path)["state"] == "failed"
    assert ada.messages(conversation) == []


def test_a_turn_that_was_overtaken_does_not_seem_older_than_what_it_stands_behind(aws: World, ada: Client) -> None:
    class Overtaken(ScriptedModel):
        """While the first turn waits for its answer, a second one comes and goes."""

        def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
            if len(self.asked) == 0:
                self.asked.append(request)
                aws.clock.forward(seconds=5)
                ada.say(conversation, "second")
                aws.clock.forward(seconds=-3)  # as another machine's clock may be
            yield from super().stream(request)

    use(aws.patch, "model", Overtaken())
    conversation = ada.conversation()
    ada.say(conversation, "first")
    told = ada.messages(conversation)
    assert [one["content"] for one in told if one["role"] == "user"] == ["second", "first"]
    times = [one["created_at"] for one in told]
    assert times == sorted(times)


# tools
def test_a_tool_round_is_answered_and_goes_on(model: ScriptedModel, ada: Client) -> None:
    conversation = ada.conversation()
    model.enqueue([ToolCall(id="c1", name="weather", arguments={"city": "Bergen"}), ToolCall(id="c2", name="weather")], "It rains.")
    asked = ada.say(conversation, "Weather?", tools=TOOLS)
    assert (asked["message"]["kind"], asked["message"]["content"]) == ("tool_calls", "")
    assert asked["metadata"]["finish_reason"] == "tool_calls"
    path = f"/v1/conversations/{conversation}/messages"
    assert ada.refused("POST", path, {"content": "never mind"}) == (409, "tool_results_pending")
    imported = {"messages": [{"role": "user", "content": "x"}]}
    assert ada.refused("POST", f"/v1/conversations/{conversation}/import", imported) == (409, "tool_results_pending")
    one = ada.send("POST", path, {"tool_results": [{"tool_call_id": "c1", "content": "rain"}]})
    assert (one.status, "c2" in str(one.body)) == (422, True)
    done = ada.post(path, {"tool_results": [{"tool_call_id": name, "content": "rain"} for name in ("c1", "c2")]})
    assert done["message"]["content"] == "It rains."
    assert [message.role for message in model.asked[-1].messages] == ["user", "assistant", "tool", "tool"]
    assert [one["kind"] for one in ada.messages(conversation)] == ["text", "tool_calls", "tool_result", "tool_result", "text"]


def test_a_parent_outside_leaves_an_open_round(model: ScriptedModel, ada: Client) -> None:
    conversation = ada.conversation()
    first = ada.say(conversation, "one")["message"]["id"]
    model.enqueue([ToolCall(id="c1", name="weather")])
    calls = ada.say(conversation, "Weather?", tools=TOOLS)["message"]["id"]
    assert ada.refused("POST", f"/v1/conversations/{conversation}/rollback", {"to_message_id": calls})[0] == 409
    assert ada.say(conversation, "two", parent_id=first)["message"]["content"] == "Understood."


# memory in the request
def test_recalled_memory_stands_in_the_request_and_the_answer_says_so(model: ScriptedModel, ada: Client) -> None:
    ada.say(ada.conversation(), "Remember this: my sister Ingrid lives in Bergen.")
    answer = ada.say(ada.conversation(), "Where does my sister live?")
    assert answer["metadata"]["memory_used"] is True
    memory = model.asked[-1].memory
    assert memory is not None
    assert "Bergen" in memory
    assert "Bergen" not in model.asked[-1].system
    assert all("Bergen" not in message.content for message in model.asked[-1].messages)


def test_a_fact_is_recalled_where_its_words_do_not_stand_anyway(aws: World, model: ScriptedModel, ada: Client) -> None:
    body = {"name": "S", "enable_memory": True, "context_compression_config": {"context_window": 4000, "tail_max_tokens": 200}}
    agent = aws.user(ada.caller.tenant_id).post("/v1/agents", body)["id"]
    conversation = ada.conversation(agent_id=agent)
    first = ada.say(conversation, "Remember this: the mast is nineteen metres tall.")["message"]["id"]
    ada.say(conversation, "How tall is the mast?")
    assert not model.of("turn")[-1].memory
    ada.say(conversation, "How tall is the mast?", parent_id=None)  # a branch that does not hold the words
    assert "nineteen metres" in (model.of("turn")[-1].memory or "")
    ada.post(f"/v1/conversations/{conversation}/rollback", {"to_message_id": first})
    ada.patch(f"/v1/conversations/{conversation}/context/preferences", {"keep_user_chars": 0})
    for number in range(14):
        ada.say(conversation, f"{number}: " + "we walked along the pier and talked about the weather " * 16, memory="off")
    assert ada.walk(f"/v1/conversations/{conversation}/compactions")
    ada.say(conversation, "How tall is the mast?")
    assert "nineteen metres" in (model.of("turn")[-1].memory or "")


def test_memory_off_recalls_stores_and_learns_nothing(aws: World, model: ScriptedModel, ada: Client) -> None:
    ada.say(ada.conversation(), "Remember this: my sister Ingrid lives in Bergen.")
    before = ada.memories()
    quiet = ada.conversation()
    assert ada.say(quiet, "Where does my sister live?", memory="off")["metadata"]["memory_used"] is False
    assert model.asked[-1].memory is None
    assert ada.say(quiet, "Remember this: I own a red boat.", memory="off")["metadata"]["finish_reason"] == "stop"
    ada.say(quiet, "I work at Acme.", memory="off")
    aws.learn()
    assert [one["id"] for one in ada.memories()] == [one["id"] for one in before]


def test_a_failing_index_never_fails_a_turn(aws: World, model: ScriptedModel, ada: Client) -> None:
    def broken() -> object:
        raise RuntimeError("the disk is gone")

    aws.patch.setattr("tidemark.bootstrap.index", broken)
    assert ada.say(ada.conversation(), "Where does my sister live?")["metadata"]["memory_used"] is False


# the window
def small_agent(aws: World, tenant: str, window: int = 4000, **config: object) -> str:
    agent: str = aws.user(tenant).post(
        "/v1/agents", {"name": "Small", "context_compression_config": {"context_window": window, **config}, "enable_memory": True}
    )["id"]
    return agent


def test_a_long_conversation_is_compacted_and_nothing_is_lost(aws: World, model: ScriptedModel, ada: Client) -> None:
    conversation = ada.conversation(agent_id=small_agent(aws, ada.caller.tenant_id, tail_max_tokens=300))
    said = [f"Question {number}: " + "tell me more about the harbour please " * 8 for number in range(25)]
    compacted = [ada.say(conversation, words)["metadata"]["compacted"] for words in said]
    assert any(compacted)
    for request in model.of("turn"):
        assert tokenizer.count_request(request) <= 1667  # the input budget of a window of 4,000
    records = ada.walk(f"/v1/conversations/{conversation}/compactions")
    assert [one["previous_compaction_id"] for one in records] == [*[one["id"] for one in records[1:]], None]
    assert all(one["after_tokens"] < one["before_tokens"] for one in records)
    assert [one["content"] for one in ada.messages(conversation) if one["role"] == "user"] == said
    recalled: list[str] = []
    body: dict[str, object] = {"ids": [records[0]["id"]]}
    while True:
        page = ada.post(f"/v1/conversations/{conversation}/recall", body)
        recalled += [one["id"] for one in page["items"]]
        if page["next_cursor"] is None:
            break
        body = body | {"cursor": page["next_cursor"]}
    ids = [one["id"] for one in ada.messages(conversation)]
    assert list(dict.fromkeys(recalled)) == ids[: ids.index(records[0]["to_message_id"]) + 1]


def test_a_failed_compaction_is_502_only_where_the_turn_does_not_fit(aws: World, model: ScriptedModel, ada: Client) -> None:
    aws.patch.setattr("tidemark.conversations.summary.PAUSE_SECONDS", 0.0)
    conversation = ada.conversation(agent_id=small_agent(aws, ada.caller.tenant_id))
    ada.post(f"/v1/conversations/{conversation}/import", {"messages": [{"role": "user", "content": "harbour " * 1800}]})
    model.enqueue(*[ModelUnavailableError() for _ in range(3)], purpose="summary")
    path = f"/v1/conversations/{conversation}/messages"
    assert ada.refused("POST", path, {"content": "and?"}) == (502, "context_summarization_failed")
    assert [one["role"] for one in ada.messages(conversation)] == ["user", "notice"]
    assert ada.say(conversation, "and?")["metadata"]["compacted"] is True
    assert all("could not be compacted" not in str(request) for request in model.asked)


def test_what_cannot_fit_is_named(aws: World, model: ScriptedModel, ada: Client) -> None:
    conversation = ada.conversation(agent_id=small_agent(aws, ada.caller.tenant_id))
    refused = ada.send("POST", f"/v1/conversations/{conversation}/messages", {"content": "harbour " * 3000})
    assert (refused.status, refused.code) == (422, "context_length_exceeded")
    told = {key: refused.body[key] for key in ("reason", "max_tokens", "context_limit", "part", "retryable")}
    assert told == {
        "reason": "protected_payload_over_budget",
        "max_tokens": 1667,
        "context_limit": 4000,
        "part": "tail",
        "retryable": False,
    }
    assert refused.body["actual_tokens"] > 3000
    assert model.asked == []


def test_a_frame_tells_what_the_turn_was_assembled_from(model: ScriptedModel, ada: Client) -> None:
    conversation = ada.conversation()
    attachment = {"source_id": "doc-1", "title": "Plan", "text": "The mast is nineteen metres tall."}
    ada.say(conversation, "How tall is it?", attachments=[attachment])
    [frame] = ada.walk(f"/v1/conversations/{conversation}/context/frames")
    assert [item["kind"] for item in frame["items"]] == ["system", "message", "attachment"]
    assert frame["totals"]["included_tokens"] == sum(item["tokens"] for item in frame["items"])
    assert ada.get(f"/v1/conversations/{conversation}/context/frames/{frame['id']}") == frame


def test_a_count_that_is_lost_fails_no_turn(aws: World, model: ScriptedModel, ada: Client) -> None:
    conversation = ada.conversation()

    def throttled(*_: object, **__: object) -> None:
        raise UpdateError

    aws.patch.setattr("tidemark.storage.table.Item.update", throttled)
    answer = ada.say(conversation, "Hello")
    assert ada.get(f"/v1/conversations/{conversation}/turns/{answer['turn_id']}")["state"] == "completed"
