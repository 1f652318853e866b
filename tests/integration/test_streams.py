"""Turns and chat completions as events, from the request to what is stored."""

import json
import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tidemark.models.ports import (
    ModelRequest,
    ModelResponse,
    ModelUnavailableError,
    TextDelta,
    ToolCall,
)

from functions.chat_stream import app as chat_stream
from tests.support import events
from tests.support.models import ScriptedModel
from tests.support.streams import Streamed, send
from tests.support.world import Answer, Client, World, use

COMPLETIONS = "/v1/chat/completions"
LOOKUP = {"name": "lookup", "description": "Looks up.", "parameters": {"type": "object"}}


@pytest.fixture
def ada(aws: World, model: ScriptedModel) -> Client:
    return aws.key(aws.tenant(), "ada")


def turn_path(conversation: str) -> str:
    return f"/v1/conversations/{conversation}/messages"


def say(client: Client, conversation: str, content: str, **more: Any) -> Streamed:
    return send(client, turn_path(conversation), {"content": content, "stream": True}, **more)


def buffered(client: Client, path: str, raw: str, headers: dict[str, str] | None = None, **query: str) -> Answer:
    event = events.http("POST", path, caller=client.caller.model_dump_json(), body=raw, query={**client.query, **query}, headers=headers)
    return client.world.serve("chat", event)


def complete(client: Client, messages: Sequence[dict[str, Any]], **more: Any) -> Answer:
    return buffered(Client(client.world, client.caller), COMPLETIONS, json.dumps({"model": "any", "messages": messages, **more}))


def stream(client: Client, messages: Sequence[dict[str, Any]], **more: Any) -> Streamed:
    return send(Client(client.world, client.caller), COMPLETIONS, {"model": "any", "messages": messages, "stream": True, **more})


class Waiting(ScriptedModel):
    """Says one word, and the rest when it is let go."""

    def __init__(self) -> None:
        super().__init__()
        self.go, self.begun = threading.Event(), threading.Event()

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        yield TextDelta(text="Well, ")
        self.begun.set()
        assert self.go.wait(20)
        rest = [*super().stream(request)]
        yield from rest[:-1]
        assert isinstance(rest[-1], ModelResponse)
        yield rest[-1].model_copy(update={"text": f"Well, {rest[-1].text}"})


# turns
def test_the_events_of_a_turn_are_its_answer(ada: Client, model: ScriptedModel) -> None:
    conversation = ada.conversation()
    model.enqueue("At nine. \u2028 第二行\r\n👩‍🚀")
    found = say(ada, conversation, "When?").events
    assert [name for name, _ in found] == ["message_start", "delta", "message_end"]
    end = found[-1][1]
    assert found[0][1] == {"conversation_id": conversation, "turn_id": end["turn_id"]}
    assert found[1][1]["text"] == end["message"]["content"] == "At nine. \u2028 第二行\r\n👩‍🚀"
    assert ada.get(f"/v1/conversations/{conversation}/turns/{end['turn_id']}")["answer"] == end
    assert ada.messages(conversation)[-1] == end["message"]


def test_the_accept_header_asks_for_events_too(ada: Client) -> None:
    answer = send(ada, turn_path(ada.conversation()), {"content": "Hello."}, headers={"Accept": "text/event-stream"})
    assert answer.headers["content-type"].startswith("text/event-stream")


def test_who_asks_for_no_events_gets_the_whole_answer(ada: Client) -> None:
    answer = send(ada, turn_path(ada.conversation()), {"content": "Hello."})
    assert (answer.status, answer.headers["content-type"]) == (200, "application/json")
    assert answer.body["message"]["content"] == "Understood."


def test_tool_calls_are_events(ada: Client, model: ScriptedModel) -> None:
    model.enqueue([ToolCall(id="c1", name="lookup", arguments={"id": 1}), ToolCall(id="c2", name="lookup")])
    found = send(ada, turn_path(ada.conversation()), {"content": "Where?", "tools": [LOOKUP], "stream": True}).events
    calls = [data for name, data in found if name == "tool_call"]
    assert calls == found[-1][1]["message"]["tool_calls"]
    assert [call["id"] for call in calls] == ["c1", "c2"]


def test_a_failure_after_the_start_is_an_event_and_the_turn_s_problem(ada: Client, model: ScriptedModel) -> None:
    conversation = ada.conversation()
    model.enqueue(ModelUnavailableError("gone"))
    found = say(ada, conversation, "Hello.").events
    assert [name for name, _ in found] == ["message_start", "error"]
    assert (found[-1][1]["status"], found[-1][1]["code"]) == (502, "model_unavailable")
    turn = ada.get(f"/v1/conversations/{conversation}/turns/{found[0][1]['turn_id']}")
    assert (turn["state"], turn["problem"]["code"]) == ("failed", "model_unavailable")
    assert ada.messages(conversation) == []


def test_a_stream_has_the_headers_of_every_answer(ada: Client) -> None:
    answer = say(ada, ada.conversation(), "Hello.", headers={"Origin": "https://app.example"})
    assert answer.headers["x-request-id"]
    assert answer.headers["ratelimit"].startswith('"default";r=')
    assert answer.headers["access-control-allow-origin"] == "https://app.example"
    assert answer.headers["cache-control"].startswith("no-cache")


def test_a_client_that_leaves_does_not_stop_its_turn(aws: World, ada: Client) -> None:
    waiting = Waiting()
    use(aws.patch, "model", waiting)
    conversation = ada.conversation()
    answer = say(ada, conversation, "Hello.", leave_after=1)
    turn_id = answer.events[0][1]["turn_id"]
    assert waiting.begun.wait(20)
    assert ada.get(f"/v1/conversations/{conversation}/turns/{turn_id}")["state"] == "running"
    waiting.go.set()
    _until(lambda: ada.get(f"/v1/conversations/{conversation}/turns/{turn_id}")["state"] == "completed")
    assert ada.messages(conversation)[-1]["content"] == "Well, Understood."


def test_comments_come_while_the_model_thinks(aws: World, ada: Client) -> None:
    waiting = Waiting()
    use(aws.patch, "model", waiting)
    aws.patch.setattr(chat_stream, "HEARTBEAT_SECONDS", 0.02)
    threading.Timer(0.5, waiting.go.set).start()
    answer = say(ada, ada.conversation(), "Hello.")
    assert b": still here\n\n" in answer.chunks
    assert answer.events[-1][0] == "message_end"


def _until(condition: Any) -> None:
    for _ in range(400):
        if condition():
            return
        threading.Event().wait(0.05)
    raise AssertionError("not within 20 s")


# keys
def test_a_repeated_key_gives_the_same_end_and_one_turn(ada: Client) -> None:
    conversation, key = ada.conversation(), {"Idempotency-Key": "k1"}
    first, again = (say(ada, conversation, "Hello.", headers=key) for _ in range(2))
    assert first.events == again.events
    assert again.headers["idempotency-replayed"] == "true"
    assert len(ada.messages(conversation)) == 2
    other = say(ada, conversation, "Something else.", headers=key)
    assert (other.status, other.body["code"]) == (422, "idempotency_key_reused")


def test_a_key_that_is_at_work_is_a_plain_conflict(aws: World, ada: Client) -> None:
    waiting = Waiting()
    use(aws.patch, "model", waiting)
    conversation, key = ada.conversation(), {"Idempotency-Key": "k1"}
    say(ada, conversation, "Hello.", headers=key, leave_after=1)
    assert waiting.begun.wait(20)
    answer = say(ada, conversation, "Hello.", headers=key)
    assert (answer.status, answer.body["code"], answer.headers["retry-after"]) == (409, "idempotency_in_flight", "1")
    waiting.go.set()
    _until(lambda: len(ada.messages(conversation)) == 2)


# refusals, which do not depend on the way
BAD_TURNS = [
    b"{",
    b"\xff\xfe",
    b"[]",
    b"",
    b"{}",
    b'{"content": ""}',
    b'{"content": "x", "stream": true, "more": 1}',
    b'{"content": "a\\ud800b", "stream": true}',
    b'{"content": "x", "stream": "yes"}',
    b'{"content": "x", "stream": true, "max_tokens": 0}',
    b'{"content": "x", "stream": true, "parent_id": "msg_none"}',
    b'{"tool_results": [{"tool_call_id": "c", "content": "x"}], "stream": true}',
]


@pytest.mark.parametrize("raw", BAD_TURNS)
def test_both_ways_refuse_a_turn_alike(ada: Client, raw: bytes) -> None:
    path = turn_path(ada.conversation())
    streamed, whole = send(ada, path, raw=raw), buffered(ada, path, raw.decode("utf-8", "replace"))
    assert streamed.status == whole.status >= 400
    assert streamed.headers["content-type"] == "application/problem+json"
    assert _plain(streamed.body) == _plain(whole.body)


BAD_COMPLETIONS: list[dict[str, Any]] = [
    {"messages": []},
    {"messages": [{"role": "user"}]},
    {"messages": [{"role": "user", "content": ""}]},
    {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
    {"messages": [{"role": "robot", "content": "x"}]},
    {"messages": [{"role": "user", "content": "x"}, {"role": "assistant", "content": "y"}]},
    {"messages": [{"role": "tool", "content": "x", "tool_call_id": "c"}]},
    {"messages": [{"role": "user", "content": "x"}], "user": "a\nb"},
    {"messages": [{"role": "user", "content": "x"}], "max_tokens": 0},
    {"messages": [{"role": "user", "content": "x"}], "metadata": {"conversation_id": "cnv_none"}},
    {"messages": [{"role": "user", "content": "x"}], "metadata": {"knowledge_base_id": "kb_none"}},
    {"messages": [{"role": "user", "content": "x" * 150_000}, {"role": "user", "content": "y" * 150_000}], "user": "ada"},
]


@pytest.mark.parametrize("body", BAD_COMPLETIONS, ids=lambda body: json.dumps(body)[:60])
def test_both_ways_refuse_a_completion_alike_and_in_openai_s_shape(ada: Client, body: dict[str, Any]) -> None:
    raw = json.dumps({"model": "any", **body})
    whole, streamed = buffered(ada, COMPLETIONS, raw), send(ada, COMPLETIONS, raw=json.dumps({**json.loads(raw), "stream": True}).encode())
    assert streamed.status == whole.status in (404, 422)
    assert streamed.body == whole.body
    assert streamed.body["error"].keys() == {"message", "type", "param", "code"}
    assert streamed.headers["content-type"] == "application/json"


def _plain(problem: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in problem.items() if name != "request_id"}


def test_refusals_before_the_routes_are_plain_answers(aws: World, ada: Client) -> None:
    path = turn_path(ada.conversation())
    body = {"content": "Hello.", "stream": True}
    nobody = send(None, path, body)
    assert (nobody.status, nobody.body["code"]) == (401, "unauthorized")
    assert send(None, COMPLETIONS, body).body["error"]["type"] == "authentication_error"
    reader = aws.key(ada.caller.tenant_id, "ada", scopes=("memory:read",))
    assert send(reader, path, body).body["code"] == "insufficient_scope"
    assert send(aws.key(ada.caller.tenant_id, "otto"), path, body).status == 404
    assert send(ada, path, body, colour="red").status == 422
    assert send(ada, path, body, headers={"content-type": "text/plain"}).status == 415
    limited = Client(aws, ada.caller.model_copy(update={"requests_per_minute": 1, "id": "key_slow"}), ada.query)
    send(limited, path, body)
    assert (send(limited, path, body).status, send(limited, path, body).body["code"]) == (429, "rate_limited")


# OpenAI's routes
def user(content: Any) -> dict[str, Any]:
    return {"role": "user", "content": content}


def test_without_a_conversation_nothing_is_kept(aws: World, ada: Client, model: ScriptedModel) -> None:
    messages = [{"role": "system", "content": "Be kind."}, user("One."), {"role": "assistant", "content": "Two."}, user("Three.")]
    answer = complete(ada, messages, user="ada").body
    assert answer["choices"][0]["message"]["content"] == "Understood."
    assert answer["usage"]["total_tokens"] == answer["usage"]["prompt_tokens"] + answer["usage"]["completion_tokens"]
    asked = model.asked[-1]
    assert [(message.role, message.content) for message in asked.messages] == [("user", "One."), ("assistant", "Two."), ("user", "Three.")]
    assert "Be kind." in asked.system
    assert ada.walk("/v1/conversations") == []


def test_without_a_conversation_the_subject_s_memory_is_recalled(aws: World, ada: Client, model: ScriptedModel) -> None:
    ada.post("/v1/memories/remember", {"text": "My sister Ruth lives in Lisbon."})
    complete(ada, [user("Where does my sister Ruth live?")], user="ada")
    assert "Lisbon" in (model.asked[-1].memory or "")
    for more in ({"user": "otto"}, {}):
        complete(ada, [user("Where does my sister Ruth live?")], **more)
        assert model.asked[-1].memory is None
    complete(ada, [user("Remember this: my boat is called Petrel.")], user="ada")
    assert "Petrel" not in json.dumps(ada.memories())


def test_in_a_conversation_what_is_behind_the_last_answer_is_stored(ada: Client, model: ScriptedModel) -> None:
    conversation = ada.conversation()
    named = {"user": "ada", "metadata": {"conversation_id": conversation}}
    history = [{"role": "system", "content": "Be kind."}, user("One."), user([{"type": "text", "text": "Two."}])]
    complete(ada, history, **named)
    assert "Be kind." in model.asked[-1].system
    complete(ada, [*history, {"role": "assistant", "content": "Understood."}, user("Three.")], **named)
    stored = [(message["role"], message["content"]) for message in ada.messages(conversation)]
    assert stored == [
        ("user", "One."), ("user", "Two."), ("assistant", "Understood."), ("user", "Three."), ("assistant", "Understood."),
    ]  # fmt: skip


def test_asking_to_remember_is_confirmed_in_a_conversation(ada: Client) -> None:
    conversation = ada.conversation()
    named = {"user": "ada", "metadata": {"conversation_id": conversation}}
    answer = complete(ada, [user("Hello."), user("Remember this: my boat is called Petrel.")], **named).body
    assert answer["choices"][0]["finish_reason"] == "stop"
    last = ada.messages(conversation)[-2]
    assert "Petrel" in last["content"]
    assert [source["message_id"] for entity in ada.memories() for source in entity["provenance"]] == [last["id"]] * len(ada.memories())


@pytest.mark.parametrize("kept", [True, False])
def test_tool_calls_pass_through(ada: Client, model: ScriptedModel, kept: bool) -> None:
    more: dict[str, Any] = {"user": "ada", "tools": [{"type": "function", "function": LOOKUP}]}
    if kept:
        more["metadata"] = {"conversation_id": ada.conversation()}
    model.enqueue([ToolCall(id="c1", name="lookup", arguments={"id": "A"}), ToolCall(id="c2", name="lookup")])
    first = complete(ada, [user("Where?")], **more).body["choices"][0]
    assert first["finish_reason"] == "tool_calls"
    assert [call["function"]["arguments"] for call in first["message"]["tool_calls"]] == ['{"id": "A"}', "{}"]
    results = [{"role": "tool", "tool_call_id": call["id"], "content": "there"} for call in first["message"]["tool_calls"]]
    second = complete(ada, [user("Where?"), first["message"], *results], **more).body["choices"][0]
    assert (second["finish_reason"], second["message"]["content"]) == ("stop", "Understood.")
    assert [message.tool_call_id for message in model.asked[-1].messages if message.role == "tool"] == ["c1", "c2"]


def test_chunks_are_one_completion(ada: Client, model: ScriptedModel) -> None:
    model.enqueue("At nine.")
    found = [data for _, data in stream(ada, [user("When?")], stream_options={"include_usage": True}).events]
    assert found[-1] == "[DONE]"
    assert len({chunk["id"] for chunk in found[:-1]}) == 1
    assert "".join(chunk["choices"][0]["delta"].get("content", "") for chunk in found[:-2]) == "At nine."
    assert [chunk["choices"][0]["finish_reason"] for chunk in found[:-2]] == [None, None, "stop"]
    assert (found[-2]["choices"], found[-2]["usage"]["completion_tokens"] > 0) == ([], True)


def test_chunks_of_calls_and_of_a_failure(ada: Client, model: ScriptedModel) -> None:
    model.enqueue([ToolCall(id="c1", name="lookup", arguments={"id": "A"})], ModelUnavailableError("gone"))
    found = [data for _, data in stream(ada, [user("Where?")], tools=[{"type": "function", "function": LOOKUP}]).events]
    assert found[1]["choices"][0]["delta"]["tool_calls"][0]["function"] == {"name": "lookup", "arguments": '{"id": "A"}'}
    assert found[-2]["choices"][0]["finish_reason"] == "tool_calls"
    failed = [data for _, data in stream(ada, [user("Where?")]).events]
    assert failed[-1]["error"]["code"] == "model_unavailable"


def test_a_repeated_key_gives_the_same_completion(ada: Client) -> None:
    conversation = ada.conversation()
    body = {"model": "any", "messages": [user("Hello.")], "stream": True, "user": "ada", "metadata": {"conversation_id": conversation}}
    first, again = (send(ada, COMPLETIONS, body, headers={"Idempotency-Key": "k"}) for _ in range(2))
    said = ["".join(chunk["choices"][0]["delta"].get("content") or "" for _, chunk in one.events[:-1]) for one in (first, again)]
    assert said == ["Understood."] * 2
    assert {chunk["id"] for _, chunk in first.events[:-1]} == {chunk["id"] for _, chunk in again.events[:-1]}
    assert len(ada.messages(conversation)) == 2


def test_documented_parameters_are_accepted(ada: Client) -> None:
    documented: dict[str, Any] = {
        "temperature": 0.5, "top_p": 1, "n": 1, "stop": ["x"], "presence_penalty": 0, "frequency_penalty": 0, "logit_bias": {}, "seed": 1,
        "logprobs": False, "response_format": {"type": "text"}, "tool_choice": "auto", "parallel_tool_calls": True, "store": False,
        "service_tier": "auto", "max_completion_tokens": 50, "reasoning_effort": "low", "modalities": ["text"], "prediction": None,
    }  # fmt: skip
    assert complete(ada, [{"role": "developer", "content": "Be kind."}, user("Hello.")], **documented).status == 200


def test_models_are_those_that_answer(aws: World, ada: Client) -> None:
    aws.user(ada.caller.tenant_id).post("/v1/agents", {"name": "Other", "model_id": "gpt-4o"})
    event = events.http("GET", "/v1/models", caller=ada.caller.model_dump_json())
    found = aws.serve("chat", event).body
    assert [one["id"] for one in found["data"]] == ["offline-extractive", "gpt-4o"]
    assert {one["object"] for one in found["data"]} == {"model"}
