"""What every model adapter promises, whichever service is behind it."""

import json
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta
from typing import Any

import boto3
import pytest
from tidemark.clock import now
from tidemark.models import retries
from tidemark.models.bedrock import BedrockEmbedder, BedrockModel, BedrockOptions, clients
from tidemark.models.offline import OfflineModel
from tidemark.models.openai_compatible import OpenAICompatibleEmbedder, OpenAICompatibleModel
from tidemark.models.ports import (
    Attachment,
    Embedder,
    Model,
    ModelContextTooLongError,
    ModelMalformedError,
    ModelMessage,
    ModelRefusedError,
    ModelRequest,
    ModelResponse,
    ModelThrottledError,
    ModelUnavailableError,
    TextDelta,
    ToolCall,
    ToolDefinition,
    complete,
)

from tests.contract.model_providers import (
    BedrockProvider,
    EmulatedBedrockProvider,
    Misbehaving,
    OpenAIProvider,
    Provider,
    emulated_bedrock,
)
from tests.contract.model_servers import Reply, Server, frame, piece, serving, sse

LOOKUP = ToolDefinition(name="lookup", description="Looks up.", parameters={"type": "object", "properties": {"id": {"type": "string"}}})
ODD_TEXT = 'one\n\ntwo\rthree\r\n\u2028\u0085four "五" 👩‍🚀\ndata: x'


def asking(*messages: ModelMessage, **more: Any) -> ModelRequest:
    given = messages or (ModelMessage(role="user", content="Where is the ferry?"),)
    return ModelRequest(**{"purpose": "turn", "model_id": "served", "system": "Be brief.", "messages": given, "max_tokens": 100, **more})


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setattr(retries, "FIRST_PAUSE", 0.01)


@pytest.fixture(scope="session")
def emulated(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmulatedBedrockProvider]:
    with emulated_bedrock(tmp_path_factory.mktemp("bedrock")) as made:
        yield made


@pytest.fixture(params=["openai_compatible", "bedrock"])
def misbehaving(request: pytest.FixtureRequest) -> Iterator[Misbehaving]:
    with serving() as server:
        yield OpenAIProvider(server) if request.param == "openai_compatible" else BedrockProvider(server)


@pytest.fixture(params=["openai_compatible", "bedrock", pytest.param("bedrock_emulator", marks=pytest.mark.emulator)])
def provider(request: pytest.FixtureRequest) -> Iterator[Provider]:
    if request.param == "bedrock_emulator":
        made: EmulatedBedrockProvider = request.getfixturevalue("emulated")
        made.server.asked.clear()
        yield made
        return
    with serving() as server:
        yield OpenAIProvider(server) if request.param == "openai_compatible" else BedrockProvider(server)


# all of them
def check_stream(model: Model) -> None:
    events = list(model.stream(asking()))
    assert all(isinstance(event, TextDelta) for event in events[:-1])
    response = events[-1]
    assert isinstance(response, ModelResponse)
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == response.text != ""
    assert (response.finish_reason, response.tool_calls) == ("stop", ())
    assert response.usage.input_tokens > 0
    assert response.usage.output_tokens > 0
    assert response.model


def test_the_pieces_of_a_turn_are_its_text_and_the_response_comes_last(provider: Provider) -> None:
    provider.server.replies = [provider.says("At ", "nine.")]
    check_stream(provider.model())


def test_offline_the_pieces_of_a_turn_are_its_text_and_the_response_comes_last() -> None:
    check_stream(OfflineModel())


# those with a service behind them
def test_the_service_s_own_usage_is_reported(provider: Provider) -> None:
    provider.server.replies = [provider.says("At nine.")]
    usage = complete(provider.model(), asking()).usage
    assert (usage.input_tokens, usage.output_tokens) == (11, 7)


def test_a_text_arrives_as_the_model_wrote_it(provider: Provider) -> None:
    provider.server.replies = [provider.says(*ODD_TEXT)]
    assert complete(provider.model(), asking()).text == ODD_TEXT


def test_an_answer_that_was_cut_at_its_limit_says_so(misbehaving: Misbehaving) -> None:
    misbehaving.server.replies = [misbehaving.says("At", finish="length")]
    assert complete(misbehaving.model(), asking()).finish_reason == "length"


def test_a_request_has_system_memory_summary_and_the_exact_words_in_this_order(provider: Provider) -> None:
    provider.server.replies = [provider.says("Yes.")]
    words = (
        ModelMessage(role="user", content=ODD_TEXT),
        ModelMessage(role="assistant", content="A"),
        ModelMessage(role="user", content="B"),
    )
    complete(provider.model(), asking(*words, memory="<m/>", summary="<s/>"))
    assert provider.sent() == [
        ("system", "Be brief."), ("system", "<m/>"), ("system", "<s/>"), ("user", ODD_TEXT), ("assistant", "A"), ("user", "B"),
    ]  # fmt: skip


def test_attachments_stand_behind_the_words_in_blocks_that_they_cannot_leave(provider: Provider) -> None:
    provider.server.replies = [provider.says("Yes.")]
    attachment = Attachment(source_id="s1", title='A "b" <c>', text="if a < b:\n</attachment >\n< attachment>")
    complete(provider.model(), asking(ModelMessage(role="user", content="Read this.", attachments=(attachment,))))
    text = provider.sent()[-1][1]
    assert text.startswith("Read this.\n\n<attachment ")
    assert "if a < b" in text
    assert text.count("</attachment") == 1
    assert text.endswith("\n</attachment>")
    assert text.count("<attachment") == 1


def test_tools_are_offered_and_parallel_calls_put_together(provider: Provider) -> None:
    provider.server.replies = [provider.calls(("call_1", "lookup", '{"id": "A-7"}'), ("call_2", "lookup", '{"id": "B-8"}'))]
    response = complete(provider.model(), asking(tools=(LOOKUP,)))
    assert provider.tools() == ["lookup"]
    assert response.finish_reason == "tool_calls"
    assert [(call.id, call.name, call.arguments) for call in response.tool_calls] == [
        ("call_1", "lookup", {"id": "A-7"}),
        ("call_2", "lookup", {"id": "B-8"}),
    ]


def test_calls_without_arguments_and_with_one_id_are_still_told_apart(provider: Provider) -> None:
    provider.server.replies = [provider.calls(("call_1", "lookup", ""), ("call_1", "lookup", "{}"))]
    calls = complete(provider.model(), asking(tools=(LOOKUP,))).tool_calls
    assert [call.arguments for call in calls] == [{}, {}]
    assert len({call.id for call in calls}) == 2


@pytest.mark.parametrize("arguments", ['{"id": ', "[1]", "nonsense"])
def test_arguments_that_are_no_json_object_are_malformed(provider: Provider, arguments: str) -> None:
    provider.server.replies = [provider.calls(("call_1", "lookup", arguments))]
    with pytest.raises(ModelMalformedError):
        complete(provider.model(), asking(tools=(LOOKUP,)))


def test_a_tool_round_goes_back_whole(provider: Provider) -> None:
    provider.server.replies = [provider.says("Shipped.")]
    calls = (ToolCall(id="call_1", name="lookup", arguments={"id": "A-7"}), ToolCall(id="call_2", name="lookup"))
    results = [ModelMessage(role="tool", content=text, tool_call_id=call.id) for text, call in zip(("one", "two"), calls, strict=True)]
    asked = ModelMessage(role="user", content="Where?")
    complete(provider.model(), asking(asked, ModelMessage(role="assistant", content="", tool_calls=calls), *results))
    sent = json.dumps(provider.server.asked[-1]["messages"])
    assert [sent.count(f'"{call.id}"') for call in calls] == [2, 2]
    assert sent.index("call_1") < sent.index("one") < sent.index("two")


@pytest.mark.parametrize(
    ("kind", "error", "attempts"),
    [
        ("throttled", ModelThrottledError, 3),
        ("unavailable", ModelUnavailableError, 3),
        ("refused", ModelRefusedError, 1),
    ],
)
def test_failures_are_typed_and_only_transient_ones_tried_again(
    misbehaving: Misbehaving, kind: str, error: type[Exception], attempts: int
) -> None:
    misbehaving.server.replies = [misbehaving.fails(kind)]
    with pytest.raises(error):
        complete(misbehaving.model(), asking())
    assert len(misbehaving.server.asked) == attempts


def test_a_request_over_the_window_is_told_as_such(misbehaving: Misbehaving) -> None:
    misbehaving.server.replies = [misbehaving.fails("too_long")]
    long = ModelMessage(role="user", content="word " * 40_000)
    with pytest.raises(ModelContextTooLongError):
        complete(misbehaving.model(), asking(long))
    assert len(misbehaving.server.asked) == 1


def test_a_summary_is_asked_for_once_because_its_caller_counts(misbehaving: Misbehaving) -> None:
    misbehaving.server.replies = [misbehaving.fails("unavailable")]
    with pytest.raises(ModelUnavailableError):
        complete(misbehaving.model(), asking(purpose="summary"))
    assert len(misbehaving.server.asked) == 1


def test_a_service_that_recovers_is_not_noticed(misbehaving: Misbehaving) -> None:
    misbehaving.server.replies = [misbehaving.fails("throttled", "0.2"), misbehaving.fails("unavailable"), misbehaving.says("At nine.")]
    started = time.monotonic()
    assert complete(misbehaving.model(), asking()).text == "At nine."
    assert time.monotonic() - started >= 0.2


def test_who_is_asked_to_wait_beyond_the_deadline_does_not_wait(misbehaving: Misbehaving) -> None:
    misbehaving.server.replies = [misbehaving.fails("throttled", "60")]
    started = time.monotonic()
    with pytest.raises(ModelThrottledError):
        complete(misbehaving.model(), asking(deadline=now() + timedelta(seconds=20)))
    assert time.monotonic() - started < 5


def test_a_stream_that_is_cut_after_it_spoke_fails_and_is_not_repeated(misbehaving: Misbehaving) -> None:
    misbehaving.server.replies = [misbehaving.says("At ", cut=True)]
    events = misbehaving.model().stream(asking())
    assert next(events) == TextDelta(text="At ")
    with pytest.raises(ModelUnavailableError):
        next(events)
    assert len(misbehaving.server.asked) == 1


def test_a_stream_that_is_cut_before_it_spoke_is_asked_for_again(misbehaving: Misbehaving) -> None:
    misbehaving.server.replies = [misbehaving.says(cut=True), misbehaving.says("At nine.")]
    assert complete(misbehaving.model(), asking()).text == "At nine."


def test_an_empty_answer_is_malformed(provider: Provider) -> None:
    provider.server.replies = [provider.says()]
    with pytest.raises(ModelMalformedError):
        complete(provider.model(), asking())


def test_a_drip_ends_at_the_deadline(misbehaving: Misbehaving) -> None:
    misbehaving.server.replies = [misbehaving.says(*["x"] * 100, pause=0.2)]
    started = time.monotonic()
    with pytest.raises(ModelUnavailableError):
        complete(misbehaving.model(), asking(deadline=now() + timedelta(seconds=1)))
    assert time.monotonic() - started < 3


def test_no_time_left_asks_nobody(provider: Provider) -> None:
    provider.server.replies = [provider.says("late")]
    with pytest.raises(ModelUnavailableError):
        complete(provider.model(), asking(deadline=now() - timedelta(seconds=1)))
    assert provider.server.asked == []


def test_a_service_that_is_not_there_is_unavailable(misbehaving: Misbehaving) -> None:
    model = misbehaving.model()
    misbehaving.server.close()
    with pytest.raises(ModelUnavailableError):
        complete(model, asking())


# what only one of them does
@pytest.fixture
def openai_server() -> Iterator[Server]:
    with serving() as server:
        yield server


SCHEMA: dict[str, Any] = {"type": "object", "properties": {"ok": {"type": "boolean"}}, "required": ["ok"]}


def whole(content: str | None, **message: Any) -> Reply:
    choice = {"index": 0, "message": {"role": "assistant", "content": content, **message}, "finish_reason": "stop"}
    return Reply([json.dumps({"id": "c", "choices": [choice], "model": "served"}).encode()])


def refusing(parameter: str | None) -> Reply:
    error = {"message": "unknown parameter", "type": "invalid_request_error", "param": parameter, "code": "unsupported_parameter"}
    return Reply([json.dumps({"error": error}).encode()], 400)


def test_openai_structured_output_falls_back_to_words_and_remembers_it(openai_server: Server) -> None:
    openai_server.replies = [refusing("response_format"), whole('{"ok": true}')]
    model = OpenAICompatibleModel(openai_server.url)
    for _ in range(2):
        assert complete(model, asking(purpose="extraction", response_schema=SCHEMA)).text == '{"ok": true}'
    asked = openai_server.asked
    assert asked[0]["response_format"]["json_schema"]["schema"] == SCHEMA
    assert ["response_format" in one for one in asked] == [True, False, False]
    assert "JSON Schema" in asked[1]["messages"][1]["content"]


def test_openai_newer_name_of_the_limit_is_found_out(openai_server: Server) -> None:
    openai_server.replies = [refusing("max_tokens"), whole("Fine.")]
    complete(OpenAICompatibleModel(openai_server.url), asking(purpose="summary"))
    assert openai_server.asked[1]["max_completion_tokens"] == 100


def test_openai_servers_that_refuse_without_a_reason_are_asked_plainly_once(openai_server: Server) -> None:
    openai_server.replies = [refusing(None)]
    with pytest.raises(ModelRefusedError):
        complete(OpenAICompatibleModel(openai_server.url), asking())
    assert ["stream_options" in one for one in openai_server.asked] == [True, False]


@pytest.mark.parametrize(
    "body",
    [b"", b"<html>", b"[]", b"{}", b'{"choices": []}', b'{"choices": [{"message": null}]}', b'{"choices": [{"message": {"content": 5}}]}'],
)
def test_openai_bodies_that_are_no_answer_are_malformed(openai_server: Server, body: bytes) -> None:
    openai_server.replies = [Reply([body])]
    with pytest.raises(ModelMalformedError):
        complete(OpenAICompatibleModel(openai_server.url), asking(purpose="summary"))


def test_openai_bad_json_in_a_stream_is_malformed(openai_server: Server) -> None:
    openai_server.replies = [Reply(sse(piece({"content": "a"}), '{"choices": ['), headers={"content-type": "text/event-stream"})]
    with pytest.raises(ModelMalformedError):
        complete(OpenAICompatibleModel(openai_server.url), asking())


def test_openai_error_inside_a_stream_is_typed(openai_server: Server) -> None:
    error = {"error": {"message": "x", "code": "context_length_exceeded"}}
    openai_server.replies = [Reply(sse(error), headers={"content-type": "text/event-stream"})]
    with pytest.raises(ModelContextTooLongError):
        complete(OpenAICompatibleModel(openai_server.url), asking())


def test_openai_a_refusal_is_no_answer(openai_server: Server) -> None:
    openai_server.replies = [whole(None, refusal="I will not.")]
    with pytest.raises(ModelRefusedError):
        complete(OpenAICompatibleModel(openai_server.url), asking(purpose="summary"))


def test_openai_names_are_kept_as_far_as_openai_takes_them(openai_server: Server) -> None:
    openai_server.replies = [whole("Fine.")]
    messages = [ModelMessage(role="user", content="x", name=name) for name in ("Mina", "小明", "Ann Lee <x>")]
    complete(OpenAICompatibleModel(openai_server.url), asking(*messages, purpose="summary"))
    assert [message["name"] for message in openai_server.asked[-1]["messages"][1:]] == ["Mina", "小明", "Ann_Lee__x_"]


def test_openai_usage_is_counted_where_the_server_tells_none(openai_server: Server) -> None:
    openai_server.replies = [whole("Fine.")]
    usage = complete(OpenAICompatibleModel(openai_server.url), asking(purpose="summary")).usage
    assert usage.input_tokens > 5
    assert usage.output_tokens > 0


@pytest.fixture
def bedrock_server() -> Iterator[Server]:
    with serving() as server:
        yield server


def converse(*content: dict[str, Any], stop: str = "end_turn") -> Reply:
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    body = {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": stop,
        "usage": usage,
        "metrics": {"latencyMs": 1},
    }
    return Reply([json.dumps(body).encode()])


def test_bedrock_structured_output_is_a_forced_tool(bedrock_server: Server) -> None:
    bedrock_server.replies = [converse({"toolUse": {"toolUseId": "t", "name": "answer", "input": {"ok": True}}}, stop="tool_use")]
    response = complete(BedrockModel(clients("us-east-1", bedrock_server.url)), asking(purpose="extraction", response_schema=SCHEMA))
    assert (json.loads(response.text), response.tool_calls, response.finish_reason) == ({"ok": True}, (), "stop")
    assert bedrock_server.asked[0]["toolConfig"]["toolChoice"] == {"tool": {"name": "answer"}}


def test_bedrock_models_that_cannot_be_forced_are_asked_in_words(bedrock_server: Server) -> None:
    refused = Reply([b'{"message": "no"}'], 400, {"x-amzn-errortype": "ValidationException"})
    bedrock_server.replies = [refused, converse({"text": '{"ok": true}'})]
    response = complete(BedrockModel(clients("us-east-1", bedrock_server.url)), asking(purpose="extraction", response_schema=SCHEMA))
    assert response.text == '{"ok": true}'
    assert "toolConfig" not in bedrock_server.asked[1]


def test_bedrock_guardrail_and_cache_points_stand_where_they_are_configured(bedrock_server: Server) -> None:
    bedrock_server.replies = [converse({"text": "Fine."})]
    options = BedrockOptions(guardrail_id="gr", guardrail_version="3", cache_points=True)
    complete(BedrockModel(clients("us-east-1", bedrock_server.url), options), asking(purpose="summary", memory="<m/>", tools=(LOOKUP,)))
    asked = bedrock_server.asked[0]
    assert asked["guardrailConfig"] == {"guardrailIdentifier": "gr", "guardrailVersion": "3"}
    assert [*map(list, asked["system"])] == [["text"], ["cachePoint"], ["text"]]
    assert "cachePoint" in asked["toolConfig"]["tools"][-1]


@pytest.mark.emulator
def test_bedrock_emulated_structured_output_is_an_argument_of_a_tool(emulated: EmulatedBedrockProvider) -> None:
    emulated.server.replies = [emulated.calls(("t", "answer", '{"ok": true}'))]
    response = complete(emulated.model(), asking(purpose="extraction", response_schema=SCHEMA))
    assert (json.loads(response.text), response.tool_calls) == ({"ok": True}, ())
    assert emulated.server.asked[-1]["tool_choice"] == {"type": "function", "function": {"name": "answer"}}


@pytest.mark.emulator
@pytest.mark.parametrize("purpose", ["turn", "summary"])
def test_bedrock_emulated_guardrail_stops_words_on_their_way_in_and_out(emulated: EmulatedBedrockProvider, purpose: str) -> None:
    control = boto3.client("bedrock", region_name="us-east-1", endpoint_url=emulated.endpoint)
    made = control.create_guardrail(
        name=f"no-heliotrope-{purpose}",
        wordPolicyConfig={"wordsConfig": [{"text": "heliotrope"}]},
        blockedInputMessaging="No.",
        blockedOutputsMessaging="No.",
    )["guardrailId"]
    model = BedrockModel(clients("us-east-1", emulated.endpoint), BedrockOptions(guardrail_id=made, cache_points=True))
    emulated.server.replies = [emulated.says("At nine.")]
    assert complete(model, asking(purpose=purpose, tools=(LOOKUP,))).text == "At nine."
    with pytest.raises(ModelRefusedError):
        complete(model, asking(ModelMessage(role="user", content="What is heliotrope?"), purpose=purpose))
    emulated.server.replies = [emulated.says("A heliotrope flower.")]
    with pytest.raises(ModelRefusedError):
        complete(model, asking(purpose=purpose))


@pytest.mark.parametrize(
    ("stop", "error"),
    [
        ("guardrail_intervened", ModelRefusedError),
        ("content_filtered", ModelRefusedError),
        ("model_context_window_exceeded", ModelContextTooLongError),
    ],
)
def test_bedrock_stop_reasons_that_are_errors(bedrock_server: Server, stop: str, error: type[Exception]) -> None:
    bedrock_server.replies = [converse({"text": "x"}, stop=stop)]
    with pytest.raises(error):
        complete(BedrockModel(clients("us-east-1", bedrock_server.url)), asking(purpose="summary"))


def test_bedrock_exception_inside_a_stream_is_typed_and_tried_again(bedrock_server: Server) -> None:
    headers = {"content-type": "application/vnd.amazon.eventstream"}
    bedrock_server.replies = [
        Reply([frame("throttlingException", {"message": "x"}, exception=True)], headers=headers),
        BedrockProvider(bedrock_server).says("At nine."),
    ]
    assert complete(BedrockModel(clients("us-east-1", bedrock_server.url)), asking()).text == "At nine."


def test_bedrock_roles_take_turns_and_called_tools_are_always_declared(bedrock_server: Server) -> None:
    bedrock_server.replies = [converse({"text": "Fine."})]
    call = ToolCall(id="t1", name="lookup")
    messages = (
        ModelMessage(role="assistant", content="Hello."),
        ModelMessage(role="user", content="a", name="Mina"),
        ModelMessage(role="user", content=" "),
        ModelMessage(role="assistant", content="", tool_calls=(call,)),
        ModelMessage(role="tool", content="", tool_call_id="t1"),
        ModelMessage(role="user", content="b"),
    )
    complete(BedrockModel(clients("us-east-1", bedrock_server.url)), asking(*messages, purpose="summary"))
    asked = bedrock_server.asked[0]
    assert [message["role"] for message in asked["messages"]] == ["user", "assistant", "user", "assistant", "user"]
    assert [tool["toolSpec"]["name"] for tool in asked["toolConfig"]["tools"]] == ["lookup"]
    assert asked["messages"][2]["content"][0] == {"text": "Mina: a"}


# embedders
def openai_vectors(texts: Sequence[str]) -> dict[str, Any]:
    rows = [{"index": place, "embedding": [float(len(text)), 1.0, 2.0]} for place, text in enumerate(texts)]
    return {"data": rows[::-1]}  # in any order


def _openai(server: Server, reply: Callable[[Sequence[str]], dict[str, Any]], texts: Sequence[str]) -> Embedder:
    server.replies = [Reply([json.dumps(reply(texts)).encode()])]
    return OpenAICompatibleEmbedder(server.url, "key", "embedding-model")


def test_embedders_give_one_unit_vector_a_text_in_order(openai_server: Server) -> None:
    vectors = _openai(openai_server, openai_vectors, ["a", "", "ccc"]).embed_passages(["a", "", "ccc"])
    assert len(vectors) == 3
    assert all(abs(sum(value * value for value in vector) - 1) < 1e-9 for vector in vectors)
    assert vectors[0][0] < vectors[2][0]
    assert all(text.strip() for text in openai_server.asked[0]["input"])


def test_an_embedder_learns_its_dimension(openai_server: Server) -> None:
    assert _openai(openai_server, openai_vectors, ["a"]).dimension == 3


@pytest.mark.parametrize("texts", [[], ["a"], ["a", "b", "c"]])
def test_another_number_of_vectors_than_of_texts_is_malformed(openai_server: Server, texts: list[str]) -> None:
    with pytest.raises(ModelMalformedError):
        _openai(openai_server, openai_vectors, texts).embed_passages(["a", "b"])


def test_no_texts_ask_nobody(openai_server: Server) -> None:
    assert OpenAICompatibleEmbedder(openai_server.url, "", "m").embed_passages([]) == []


def test_embedder_failures_are_typed(openai_server: Server) -> None:
    openai_server.replies = [OpenAIProvider(openai_server).fails("throttled")]
    with pytest.raises(ModelThrottledError):
        OpenAICompatibleEmbedder(openai_server.url, "", "m").embed_query("a")


def test_titan_embeds_one_text_a_call(bedrock_server: Server) -> None:
    bedrock_server.replies = [Reply([json.dumps({"embedding": [3.0, 4.0]}).encode()])]
    embedder = BedrockEmbedder(clients("us-east-1", bedrock_server.url), "amazon.titan-embed-text-v2:0")
    assert embedder.dimension == 1024
    assert embedder.embed_passages(["a", "", "c"]) == [[0.6, 0.8]] * 3
    assert sorted(one["inputText"] for one in bedrock_server.asked) == ["-", "a", "c"]


@pytest.mark.parametrize("embeddings", [[[3.0, 4.0], [4.0, 3.0]], {"float": [[3.0, 4.0], [4.0, 3.0]]}])
def test_cohere_embeds_many_texts_a_call(bedrock_server: Server, embeddings: object) -> None:
    bedrock_server.replies = [Reply([json.dumps({"embeddings": embeddings}).encode()])]
    embedder = BedrockEmbedder(clients("us-east-1", bedrock_server.url), "cohere.embed-multilingual-v3")
    assert embedder.embed_passages(["a", "b"]) == [[0.6, 0.8], [0.8, 0.6]]
    assert bedrock_server.asked[0]["input_type"] == "search_document"
    with pytest.raises(ModelMalformedError):
        embedder.embed_query("a")
