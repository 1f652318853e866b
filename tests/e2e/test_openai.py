"""An application that speaks OpenAI's protocol gets memory by changing its base URL; and streams as they cross a real connection."""

import json
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import openai
import pytest

from tests.contract.model_servers import Reply, Server, piece, serving, sse
from tests.e2e.local_stack import Stack, start, wait_until

pytestmark = pytest.mark.emulator
EVENTS = {"content-type": "text/event-stream"}
LOOKUP = {
    "type": "function",
    "function": {"name": "lookup", "description": "Looks up.", "parameters": {"type": "object", "properties": {}}},
}


def client_of(stack: Stack, key: str | None = None) -> openai.OpenAI:
    return openai.OpenAI(base_url=f"{stack.base_url}/v1", api_key=key or stack.credentials["api_key"], max_retries=0)


@pytest.fixture
def client(stack: Stack) -> Iterator[openai.OpenAI]:
    with client_of(stack) as made:
        yield made


def user(content: str) -> Any:
    return {"role": "user", "content": content}


def conversation(stack: Stack, subject: str) -> str:
    with stack.client() as api:
        made: str = api.post("/v1/conversations", json={"external_subject_id": subject}).json()["id"]
        return made


def stored(stack: Stack, conversation_id: str, subject: str) -> list[dict[str, Any]]:
    with stack.client() as api:
        found: list[dict[str, Any]] = api.get(
            f"/v1/conversations/{conversation_id}/messages", params={"external_subject_id": subject}
        ).json()["items"]
        return found


def test_models_and_a_completion(client: openai.OpenAI) -> None:
    model = client.models.list().data[0].id
    answer = client.chat.completions.create(model=model, messages=[user("Good morning.")], user="ida", temperature=0.2)
    assert answer.choices[0].message.content
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage is not None
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens > 0


def test_a_stream_with_its_usage(client: openai.OpenAI) -> None:
    chunks = [
        *client.chat.completions.create(
            model="any", messages=[user("Good morning.")], user="ida", stream=True, stream_options={"include_usage": True}
        )
    ]
    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert chunks[-1].usage is not None
    assert chunks[-1].usage.prompt_tokens > 0


def test_an_application_remembers_by_its_base_url_alone(stack: Stack, client: openai.OpenAI) -> None:
    first = conversation(stack, "ivo")
    named: Any = {"conversation_id": first}
    client.chat.completions.create(model="any", messages=[user("Remember this: my boat is called Petrel.")], user="ivo", metadata=named)
    later = client.chat.completions.create(model="any", messages=[user("What is my boat called?")], user="ivo")
    assert "Petrel" in (later.choices[0].message.content or "")
    other = client.chat.completions.create(model="any", messages=[user("What is my boat called?")], user="eva")
    assert "Petrel" not in (other.choices[0].message.content or "")


@pytest.mark.parametrize("streamed", [False, True])
def test_a_named_conversation_keeps_only_what_is_new(stack: Stack, client: openai.OpenAI, streamed: bool) -> None:
    subject = f"ira-{streamed}"
    kept = conversation(stack, subject)
    history: list[Any] = []
    for content in ("One.", "Two."):
        history.append(user(content))
        answer: Any = client.chat.completions.create(
            model="any", messages=history, user=subject, metadata={"conversation_id": kept}, stream=streamed
        )
        said = (
            "".join(chunk.choices[0].delta.content or "" for chunk in answer if chunk.choices)
            if streamed
            else answer.choices[0].message.content
        )
        history.append({"role": "assistant", "content": said})
    assert [{"role": one["role"], "content": one["content"]} for one in stored(stack, kept, subject)] == history


def test_errors_are_the_client_s_own(stack: Stack, client: openai.OpenAI) -> None:
    with pytest.raises(openai.NotFoundError) as missing:
        client.chat.completions.create(model="any", messages=[user("x")], user="ida", metadata={"conversation_id": "cnv_none"})
    assert missing.value.code == "not_found"
    with pytest.raises(openai.UnprocessableEntityError) as invalid:
        client.chat.completions.create(model="any", messages=[user("")], user="ida")
    assert (invalid.value.code, invalid.value.param) == ("validation_failed", "/messages/0/content")
    for streamed in (False, True):
        with client_of(stack, "tm_nothing") as nobody, pytest.raises(openai.AuthenticationError):
            nobody.chat.completions.create(model="any", messages=[user("x")], stream=streamed)


# with a model whose answers are scripted
@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving() as made:
        yield made


@pytest.fixture(scope="module")
def scripted(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    state, url = tmp_path_factory.mktemp("scripted"), f"{server.url}/v1"
    running = start(state, TIDEMARK_MODEL_PROVIDER="openai_compatible", TIDEMARK_MODEL_BASE_URL=url)
    yield running
    running.stop()


def test_tool_calls_go_through_the_official_client(server: Server, scripted: Stack) -> None:
    call = {"index": 0, "id": "call_1", "type": "function", "function": {"name": "lookup", "arguments": '{"id": "A-7"}'}}
    server.replies = [
        Reply(sse(piece({"tool_calls": [call]}), piece({}, "tool_calls")), headers=EVENTS),
        Reply(sse(piece({"content": "It is there."}), piece({}, "stop")), headers=EVENTS),
    ]
    kept = conversation(scripted, "ida")
    more: Any = {"model": "any", "user": "ida", "tools": [LOOKUP], "metadata": {"conversation_id": kept}}
    with client_of(scripted) as client:
        first = client.chat.completions.create(messages=[user("Where is A-7?")], **more).choices[0].message
        assert first.tool_calls is not None
        assert json.loads(first.tool_calls[0].function.arguments) == {"id": "A-7"}
        result: Any = {"role": "tool", "tool_call_id": first.tool_calls[0].id, "content": "at sea"}
        called: Any = first.model_dump(exclude_none=True)
        second = client.chat.completions.create(messages=[user("Where is A-7?"), called, result], **more)
    assert second.choices[0].message.content == "It is there."
    assert [message["kind"] for message in stored(scripted, kept, "ida")] == ["text", "tool_calls", "tool_result", "text"]


def test_words_arrive_while_the_model_still_speaks(server: Server, scripted: Stack) -> None:
    server.replies = [Reply(sse(*[piece({"content": f"{n} "}) for n in range(6)], piece({}, "stop")), headers=EVENTS, pause=0.2)]
    with client_of(scripted) as client:
        chunks = client.chat.completions.create(model="any", messages=[user("Count.")], stream=True)
        arrivals = [time.monotonic() for chunk in chunks if chunk.choices and chunk.choices[0].delta.content]
    assert len(arrivals) == 6
    assert arrivals[-1] - arrivals[0] > 0.6


def test_a_client_that_hangs_up_finds_its_turn_whole(server: Server, scripted: Stack) -> None:
    server.replies = [Reply(sse(*[piece({"content": f"{n} "}) for n in range(6)], piece({}, "stop")), headers=EVENTS, pause=0.2)]
    kept = conversation(scripted, "ira")
    body = {"content": "Count.", "stream": True}
    with (
        scripted.client() as api,
        api.stream("POST", f"/v1/conversations/{kept}/messages", json=body, params={"external_subject_id": "ira"}) as answer,
    ):
        start = json.loads(next(line for line in answer.iter_lines() if line.startswith("data:"))[5:])
    turn = wait_until(_finished(scripted, kept, start["turn_id"]))
    assert (turn["state"], turn["answer"]["message"]["content"]) == ("completed", "0 1 2 3 4 5 ")


def _finished(stack: Stack, conversation_id: str, turn_id: str) -> Callable[[], Any]:
    def look() -> Any:
        with stack.client() as api:
            path = f"/v1/conversations/{conversation_id}/turns/{turn_id}"
            turn = api.get(path, params={"external_subject_id": "ira"}).json()
        return turn if turn["state"] != "running" else None

    return look


def test_an_answer_that_breaks_off_is_an_error_of_the_stream(server: Server, scripted: Stack) -> None:
    server.replies = [Reply(sse(piece({"content": "Well"}), done=False), headers=EVENTS, cut=True)]
    with client_of(scripted) as client, pytest.raises(openai.APIError) as broken:
        list(client.chat.completions.create(model="any", messages=[user("Well?")], stream=True))
    assert broken.value.code == "model_unavailable"


def test_a_turn_that_breaks_off_ends_with_an_error_event_and_is_failed(server: Server, scripted: Stack) -> None:
    server.replies = [Reply(sse(piece({"content": "Well"}), done=False), headers=EVENTS, cut=True)]
    kept = conversation(scripted, "ira")
    with scripted.client() as api:
        answer = api.post(
            f"/v1/conversations/{kept}/messages", json={"content": "Well?", "stream": True}, params={"external_subject_id": "ira"}
        )
    events = [block.split("\n") for block in answer.text.strip().split("\n\n")]
    start, problem = (json.loads(lines[1].removeprefix("data: ")) for lines in (events[0], events[-1]))
    assert [lines[0] for lines in events] == ["event: message_start", "event: delta", "event: error"]
    assert (problem["status"], problem["code"]) == (502, "model_unavailable")
    turn = wait_until(_finished(scripted, kept, start["turn_id"]))
    assert (turn["state"], turn["problem"]["code"]) == ("failed", "model_unavailable")
    assert stored(scripted, kept, "ira") == []


def test_a_stream_is_kept_open_while_the_model_thinks(server: Server, scripted: Stack) -> None:
    """The model goes on only when the comment has come, some 15 seconds after the last event."""
    go_on = threading.Event()

    def thinking() -> Iterator[bytes]:
        yield from sse(piece({"content": "Well, "}), done=False)
        assert go_on.wait(60)
        yield from sse(piece({"content": "yes."}), piece({}, "stop"))

    server.replies = [Reply(thinking(), headers=EVENTS)]
    with client_of(scripted) as client:
        answer = client.chat.completions.with_raw_response.create(model="any", messages=[user("Well?")], stream=True).http_response
        lines = answer.iter_lines()
        try:
            assert next(line for line in lines if line.startswith(":")) == ": still here"
        finally:
            go_on.set()
        said = [json.loads(line[6:]) for line in lines if line.startswith("data: {")]
    assert said[0]["choices"][0]["delta"]["content"] == "yes."


def test_a_stream_may_be_read_by_a_browser(stack: Stack) -> None:
    kept = conversation(stack, "ida")
    with stack.client() as api:
        answer = api.post(
            f"/v1/conversations/{kept}/messages",
            json={"content": "Hello.", "stream": True},
            params={"external_subject_id": "ida"},
            headers={"Origin": stack.origin},
        )
    assert answer.headers["access-control-allow-origin"] == stack.origin
    assert "event: message_end" in answer.text
