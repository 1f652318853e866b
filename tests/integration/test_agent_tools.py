"""A model that uses the agent's own tools inside a turn."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tidemark.conversations import agent_tools
from tidemark.models import tokenizer
from tidemark.models.ports import ModelRequest, ModelResponse, TextDelta, ToolCall

from tests.support import events
from tests.support.models import ScriptedModel
from tests.support.streams import send
from tests.support.world import Client, World, use, world

LOOKUP = {"name": "lookup", "description": "Looks up.", "parameters": {"type": "object"}}


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path, TIDEMARK_MODEL_PROVIDER="openai_compatible", TIDEMARK_MODEL_BASE_URL="http://model.invalid/v1") as made:
        yield made


@pytest.fixture
def ada(aws: World, model: ScriptedModel) -> Client:
    return aws.key(aws.tenant(), "ada", scopes=("chat",))


def writer(client: Client) -> Client:
    return client.world.key(client.caller.tenant_id, "ada")


def call(name: str, call_id: str = "c1", /, **arguments: Any) -> ToolCall:
    return ToolCall(id=call_id, name=name, arguments=arguments)


def offered(request: ModelRequest) -> set[str]:
    return {tool.name for tool in request.tools}


def results(request: ModelRequest) -> list[Any]:
    return [json.loads(message.content) for message in request.messages if message.role == "tool"]


def test_the_model_reads_memory_before_it_answers(ada: Client, model: ScriptedModel) -> None:
    writer(ada).post("/v1/memories/remember", {"text": "My boat is called Petrel."})
    conversation = ada.conversation()
    model.enqueue([call("search_memory", query="What is my boat called?")], "She is called Petrel.")
    answer = ada.say(conversation, "Good morning.")
    assert (answer["message"]["content"], answer["metadata"]["finish_reason"]) == ("She is called Petrel.", "stop")
    assert "Petrel" in json.dumps(results(model.asked[-1])[0]["items"])
    assert [message["kind"] for message in ada.messages(conversation)] == ["text", "text"]
    assert answer["metadata"]["usage"]["input_tokens"] > model.asked[0].max_tokens // 100


def test_the_model_reads_the_session_it_is_in(ada: Client, model: ScriptedModel) -> None:
    conversation = ada.conversation()
    ada.say(conversation, "The lantern is copper.")
    model.enqueue([call("session_search", query="lantern")], "Copper.")
    ada.say(conversation, "What was it made of?")
    assert results(model.asked[-1])[0]["decision"] == "allow_same_session"


def test_the_model_writes_for_the_conversation_s_subject_only(ada: Client, model: ScriptedModel) -> None:
    model.enqueue([call("create_memory_entity", name="Petrel", entity_type="concept", description="A boat")], "Noted.")
    ada.say(ada.conversation(), "My boat is called Petrel.")
    [entity] = writer(ada).memories()
    assert entity["name"] == "Petrel"
    assert [source["trust"] for source in entity["provenance"]] == ["assistant"]
    assert ada.world.key(ada.caller.tenant_id, "otto").memories() == []


def test_credentials_are_not_written(ada: Client, model: ScriptedModel) -> None:
    model.enqueue([call("create_memory_entity", name="Key", entity_type="fact", description="my password is hunter2!xyz")], "No.")
    ada.say(ada.conversation(), "Keep it.")
    assert results(model.asked[-1])[0]["code"] == "secret_refused"
    assert writer(ada).memories() == []


def test_wrong_arguments_and_foreign_sessions_are_told_to_the_model(aws: World, ada: Client, model: ScriptedModel) -> None:
    foreign = aws.key(ada.caller.tenant_id, "otto").conversation()
    model.enqueue([call("search_memory", "a"), call("session_read_summary", "b", conversation_id=foreign)], "I do not know.")
    assert ada.say(ada.conversation(), "Well?")["message"]["content"] == "I do not know."
    assert [result["code"] for result in results(model.asked[-1])] == ["validation_failed", "not_found"]


def test_the_caller_s_calls_end_the_turn_and_are_made_again_after_a_mixed_round(ada: Client, model: ScriptedModel) -> None:
    conversation = ada.conversation()
    model.enqueue([call("lookup", "a"), call("search_memory", "b", query="x")], [call("lookup", "c")], "There.")
    answer = ada.say(conversation, "Where?", tools=[LOOKUP])
    assert [one["id"] for one in answer["message"]["tool_calls"]] == ["c"]
    assert results(model.asked[1])[0]["code"] == "not_run"
    body = {"tool_results": [{"tool_call_id": "c", "content": "at sea"}], "tools": [LOOKUP]}
    assert ada.post(f"/v1/conversations/{conversation}/messages", body)["message"]["content"] == "There."
    assert [message["kind"] for message in ada.messages(conversation)] == ["text", "tool_calls", "tool_result", "text"]


def test_a_name_that_the_caller_gives_a_tool_is_his(ada: Client, model: ScriptedModel) -> None:
    model.enqueue([call("search_memory", query="x")])
    answer = ada.say(ada.conversation(), "Where?", tools=[{**LOOKUP, "name": "search_memory"}])
    assert answer["metadata"]["finish_reason"] == "tool_calls"


def test_rounds_are_bounded(ada: Client, model: ScriptedModel) -> None:
    conversation = ada.conversation()
    model.enqueue(*[[call("search_memory", query="x")]] * agent_tools.STEPS, "Enough.")
    assert ada.say(conversation, "Where?")["message"]["content"] == "Enough."
    assert len(model.asked) == agent_tools.STEPS + 1
    assert offered(model.asked[-1]) == set()
    model.enqueue(*[[call("search_memory", query="x")]] * 20)
    assert ada.refused("POST", f"/v1/conversations/{conversation}/messages", {"content": "And now?"}) == (502, "model_malformed")


def test_a_stream_tells_the_words_of_all_rounds_and_no_call_of_ours(ada: Client, aws: World) -> None:
    class Talking(ScriptedModel):
        def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
            first = not self.asked
            *_, response = super().stream(request)
            assert isinstance(response, ModelResponse)
            text = "Let me see. " if first else "Yes."
            calls = (call("search_memory", query="x"),) if first else ()
            yield TextDelta(text=text)
            yield response.model_copy(update={"text": text, "tool_calls": calls, "finish_reason": "tool_calls" if calls else "stop"})

    use(aws.patch, "model", Talking())
    found = send(ada, f"/v1/conversations/{ada.conversation()}/messages", {"content": "Well?", "stream": True}).events
    assert [name for name, _ in found] == ["message_start", "delta", "delta", "message_end"]
    assert found[-1][1]["message"]["content"] == "Let me see. Yes."


def complete(client: Client, content: str, **more: Any) -> Any:
    body = {"model": "any", "messages": [{"role": "user", "content": content}], **more}
    event = events.http("POST", "/v1/chat/completions", caller=client.caller.model_dump_json(), body=json.dumps(body))
    return client.world.serve("chat", event).body


def test_a_completion_without_a_conversation_reads_its_user_s_memory_and_writes_none(ada: Client, model: ScriptedModel) -> None:
    writer(ada).post("/v1/memories/remember", {"text": "My boat is called Petrel."})
    model.enqueue([call("search_memory", query="What is my boat called?")], "She is called Petrel.")
    answer = complete(ada, "Good morning.", user="ada", tools=[{"type": "function", "function": LOOKUP}])
    assert (answer["choices"][0]["message"]["content"], answer["choices"][0]["finish_reason"]) == ("She is called Petrel.", "stop")
    assert offered(model.asked[0]) == {*agent_tools.MEMORY, "lookup"}
    assert "Petrel" in json.dumps(results(model.asked[-1])[0]["items"])
    assert answer["usage"]["prompt_tokens"] == sum(map(tokenizer.count_request, model.asked))


def test_a_completion_of_nobody_has_no_tools_of_ours(ada: Client, model: ScriptedModel) -> None:
    complete(ada, "Good morning.")
    assert offered(model.asked[-1]) == set()


def test_a_completion_of_another_user_finds_nothing_of_the_first(ada: Client, model: ScriptedModel) -> None:
    writer(ada).post("/v1/memories/remember", {"text": "My boat is called Petrel."})
    model.enqueue([call("search_memory", query="What is my boat called?")], "I do not know.")
    complete(ada, "What is the boat called?", user="otto")
    assert results(model.asked[-1])[0]["items"] == []


@pytest.mark.parametrize(
    ("settings", "agent", "turn", "expected"),
    [
        ({}, {}, {}, {*agent_tools.READING, *agent_tools.WRITING}),
        ({"retention": "explicit_only"}, {}, {}, {*agent_tools.READING}),
        ({}, {"memory_config": {"auto_extract": False}}, {}, {*agent_tools.READING}),
        ({"mode": "disabled"}, {}, {}, set()),
        ({}, {"enable_memory": False}, {}, set()),
        ({}, {"context_compression_config": {"context_window": 4000}}, {}, set()),
        ({}, {}, {"memory": "off"}, set()),
    ],
)
def test_what_is_offered(
    aws: World, model: ScriptedModel, settings: dict[str, Any], agent: dict[str, Any], turn: dict[str, Any], expected: set[str]
) -> None:
    tenant = aws.tenant(**settings)
    made = aws.user(tenant).post("/v1/agents", {"name": "One", "enable_memory": True, **agent})["id"]
    ada = aws.key(tenant, "ada")
    ada.say(ada.conversation(agent_id=made), "Hello.", **turn)
    assert offered(model.asked[-1]) == expected
