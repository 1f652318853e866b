"""Amazon Bedrock: Converse and ConverseStream for every model that they serve, and its Titan and Cohere embedders.

Errors are told apart by the service's error codes. Bedrock has no code of its own for a request over the window: a ValidationException
of a request that by our count does not fit is taken for that.
"""

import json
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, HTTPClientError
from urllib3.exceptions import HTTPError

from tidemark.models import tokenizer
from tidemark.models.ports import (
    FinishReason,
    ModelContextTooLongError,
    ModelError,
    ModelMalformedError,
    ModelMessage,
    ModelRefusedError,
    ModelRequest,
    ModelResponse,
    ModelThrottledError,
    ModelUnavailableError,
    TextDelta,
    ToolCall,
    Usage,
)
from tidemark.models.registry import lookup
from tidemark.models.rendering import calls_of, json_object, schema_instruction, words
from tidemark.models.retries import seconds_left, with_retries
from tidemark.models.vectors import EMPTY_TEXT, RemoteEmbedder, unit

THROTTLED = frozenset(("ThrottlingException", "TooManyRequestsException", "ServiceQuotaExceededException"))
UNAVAILABLE = frozenset(
    (
        "InternalServerException",
        "ModelErrorException",
        "ModelNotReadyException",
        "ModelStreamErrorException",
        "ModelTimeoutException",
        "RequestTimeout",
        "ServiceUnavailableException",
    )
)
REFUSED_STOPS = frozenset(("guardrail_intervened", "content_filtered"))
MALFORMED_STOPS = frozenset(("malformed_model_output", "malformed_tool_use"))
ANSWER_TOOL = "answer"  # the tool that a structured answer is an argument of
BEGINNING = "(The conversation goes on.)"  # Converse wants the first message to be the user's
EMPTY = "-"  # Converse refuses blank text
CONNECT_SECONDS = 3
READ_SECONDS = (5, 15, 30, 60, 180)  # a client has one timeout, so there are a few clients
NAME = "{name}: {words}"

Clients = Callable[[int], Any]


def clients(region: str, endpoint_url: str | None = None) -> Clients:
    """Clients of bedrock-runtime by read timeout. Retries are ours: botocore knows no deadline."""

    @cache
    def client(read_seconds: int) -> Any:
        config = Config(
            connect_timeout=CONNECT_SECONDS, read_timeout=read_seconds, retries={"total_max_attempts": 1}, max_pool_connections=50
        )
        return boto3.session.Session().client("bedrock-runtime", region_name=region, endpoint_url=endpoint_url, config=config)

    return client


@dataclass(frozen=True, slots=True)
class BedrockOptions:
    guardrail_id: str = ""
    guardrail_version: str = ""
    cache_points: bool = False  # only some models take them


class BedrockModel:
    """Converse of one region; safe to share between threads."""

    def __init__(self, client: Clients, options: BedrockOptions | None = None) -> None:
        self._client, self._options = client, options or BedrockOptions()

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        return with_retries(request, lambda: self._attempt(request))

    def _attempt(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        try:
            yield from self._ask(request)
        except ModelRefusedError as error:
            if request.response_schema is None or str(error) != "ValidationException":
                raise
            # Not every model can be made to use a tool; asked in words it may still answer.
            system = "\n\n".join(filter(None, (request.system, schema_instruction(request.response_schema))))
            yield from self._ask(request.model_copy(update={"system": system, "response_schema": None}))

    def _ask(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        wanted = converse_request(request, self._options)
        client = self._client(_read_seconds(request))
        with _errors(request):
            if request.purpose != "turn":
                yield from _whole(request, client.converse(**wanted))
                return
            answer = client.converse_stream(**wanted)
            with _until_deadline(request, answer["stream"]):
                yield from _streamed(request, answer["stream"])


# the request
def converse_request(request: ModelRequest, options: BedrockOptions) -> dict[str, Any]:
    wanted: dict[str, Any] = {
        "modelId": request.model_id,
        "messages": _messages(request.messages),
        "inferenceConfig": {"maxTokens": request.max_tokens},
    }
    if system := _system(request, options):
        wanted["system"] = system
    if tools := _tools(request, options):
        wanted["toolConfig"] = tools
    if options.guardrail_id:
        wanted["guardrailConfig"] = {
            "guardrailIdentifier": options.guardrail_id,
            "guardrailVersion": options.guardrail_version or "DRAFT",
        }
    return wanted


def _system(request: ModelRequest, options: BedrockOptions) -> list[dict[str, Any]]:
    """The system prompt, what may be cached, and behind it what changes from turn to turn."""
    blocks: list[dict[str, Any]] = [{"text": request.system}] if request.system else []
    if blocks and options.cache_points:
        blocks.append({"cachePoint": {"type": "default"}})
    return blocks + [{"text": part} for part in (request.memory, request.summary) if part]


def _tools(request: ModelRequest, options: BedrockOptions) -> dict[str, Any]:
    if request.response_schema:
        return {
            "tools": [_spec(ANSWER_TOOL, "Takes the answer.", request.response_schema)],
            "toolChoice": {"tool": {"name": ANSWER_TOOL}},
        }
    specs: list[dict[str, Any]] = [
        _spec(tool.name, tool.description or tool.name, tool.parameters or {"type": "object"}) for tool in request.tools
    ]
    if not specs:
        # Converse refuses calls in the history of a request that offers no tool.
        called = dict.fromkeys(call.name for message in request.messages for call in message.tool_calls)
        specs = [_spec(name, name, {"type": "object"}) for name in called]
    elif options.cache_points:
        specs.append({"cachePoint": {"type": "default"}})
    return {"tools": specs} if specs else {}


def _spec(name: str, description: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"toolSpec": {"name": name, "description": description, "inputSchema": {"json": schema}}}


def _messages(messages: Sequence[ModelMessage]) -> list[dict[str, Any]]:
    """Roles in turn, as Converse wants them: neighbours of one role become one message, tool results are the user's."""
    made: list[dict[str, Any]] = []
    for message in messages:
        role = "assistant" if message.role == "assistant" else "user"
        if not made and role == "assistant":
            made.append({"role": "user", "content": [{"text": BEGINNING}]})
        if made and made[-1]["role"] == role:
            made[-1]["content"] += _blocks(message)
        else:
            made.append({"role": role, "content": _blocks(message)})
    return made


def _blocks(message: ModelMessage) -> list[dict[str, Any]]:
    text = words(message)
    if message.role == "tool":
        return [{"toolResult": {"toolUseId": message.tool_call_id or "", "content": [{"text": text if text.strip() else EMPTY}]}}]
    if message.name and text.strip():
        text = NAME.format(name=message.name, words=text)
    uses = [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}} for call in message.tool_calls]
    said = [{"text": text}] if text.strip() else []
    return [*said, *uses] or [{"text": EMPTY}]


# the answer
@dataclass
class _Parts:
    """An answer as it comes together."""

    texts: list[str] = field(default_factory=list)
    calls: list[tuple[str, str, list[str]]] = field(default_factory=list)
    stop: str | None = None
    usage: Mapping[str, int] = field(default_factory=dict)

    def response(self, request: ModelRequest) -> ModelResponse:
        """Raises the error that a stop reason stands for."""
        _check_stop(self.stop)
        calls = calls_of((call_id, name, "".join(arguments)) for call_id, name, arguments in self.calls)
        text = "".join(self.texts)
        if request.response_schema and calls:
            text, calls = json.dumps(calls[0].arguments, ensure_ascii=False), ()
        if not text and not calls:
            raise ModelMalformedError("an empty answer")
        reason: FinishReason = "tool_calls" if calls else "length" if self.stop == "max_tokens" else "stop"
        return ModelResponse(
            text=text, tool_calls=calls, finish_reason=reason, usage=self._usage(request, text, calls), model=request.model_id
        )

    def _usage(self, request: ModelRequest, text: str, calls: Sequence[ToolCall]) -> Usage:
        if not self.usage:
            factor = lookup(request.model_id).factor
            said = text + "".join(json.dumps(call.arguments) for call in calls)
            return Usage(input_tokens=tokenizer.count_request(request, factor), output_tokens=tokenizer.count(said, factor))
        read = sum(self.usage.get(name) or 0 for name in ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"))
        return Usage(input_tokens=read, output_tokens=self.usage.get("outputTokens") or 0)


def _check_stop(stop: str | None) -> None:
    if stop in REFUSED_STOPS:
        raise ModelRefusedError("the model refused to answer")
    if stop == "model_context_window_exceeded":
        raise ModelContextTooLongError("the request does not fit the model's window")
    if stop in MALFORMED_STOPS:
        raise ModelMalformedError("the model's answer could not be read")


def _whole(request: ModelRequest, answer: Mapping[str, Any]) -> Iterator[TextDelta | ModelResponse]:
    parts = _Parts(stop=answer.get("stopReason"), usage=answer.get("usage") or {})
    for block in (answer.get("output") or {}).get("message", {}).get("content", []):
        if "text" in block:
            parts.texts.append(block["text"])
        if "toolUse" in block:
            use = block["toolUse"]
            parts.calls.append((use["toolUseId"], use["name"], [json.dumps(use["input"])]))
    response = parts.response(request)
    if response.text:
        yield TextDelta(text=response.text)
    yield response


def _streamed(request: ModelRequest, stream: Iterator[Mapping[str, Any]]) -> Iterator[TextDelta | ModelResponse]:
    parts = _Parts()
    open_calls: dict[int, list[str]] = {}
    for event in stream:
        if text := _collect(event, parts, open_calls):
            parts.texts.append(text)
            if not request.response_schema:
                yield TextDelta(text=text)
    if parts.stop is None:
        raise ModelUnavailableError("the stream was cut")
    response = parts.response(request)
    if request.response_schema:
        yield TextDelta(text=response.text)
    yield response


def _collect(event: Mapping[str, Any], parts: _Parts, open_calls: dict[int, list[str]]) -> str:
    """Puts an event where it belongs; the text that it brings."""
    if "contentBlockStart" in event:
        started = event["contentBlockStart"]
        use = started.get("start", {}).get("toolUse")
        if use:
            arguments: list[str] = []
            open_calls[started["contentBlockIndex"]] = arguments
            parts.calls.append((use["toolUseId"], use["name"], arguments))
    elif "contentBlockDelta" in event:
        delta = event["contentBlockDelta"]["delta"]
        if "toolUse" in delta:
            pieces = open_calls.get(event["contentBlockDelta"]["contentBlockIndex"])
            if pieces is None:
                raise ModelMalformedError("a piece of a call that was not begun")
            pieces.append(delta["toolUse"].get("input", ""))
        return str(delta.get("text", ""))
    elif "messageStop" in event:
        parts.stop = event["messageStop"]["stopReason"]
    elif "metadata" in event:
        parts.usage = event["metadata"].get("usage") or {}
    return ""


# errors
@contextmanager
def _errors(request: ModelRequest) -> Iterator[None]:
    try:
        yield
    except ClientError as exc:
        raise _error(exc, request) from exc
    except (BotoCoreError, HTTPClientError, HTTPError, OSError, AttributeError) as exc:
        if isinstance(exc, AttributeError) and (seconds_left(request.deadline) or 1) > 0:
            raise  # only a stream that was closed at its deadline fails like this
        raise ModelUnavailableError("the model cannot be reached or did not answer in time") from exc


def _error(exc: ClientError, request: ModelRequest | None) -> ModelError:
    code = str(exc.response.get("Error", {}).get("Code", ""))
    code = code[:1].upper() + code[1:]  # inside a stream they begin in lower case
    status = exc.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    if code in THROTTLED or status == 429:
        throttled = ModelThrottledError(code)
        throttled.retry_after = _retry_after(exc)
        return throttled
    if code in UNAVAILABLE or status >= 500:
        return ModelUnavailableError(code)
    if code == "ValidationException" and request is not None and _is_over(request):
        return ModelContextTooLongError(code)
    return ModelRefusedError(code)


def _retry_after(exc: ClientError) -> float | None:
    value = exc.response.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("retry-after", "")
    with suppress(ValueError):
        return max(0.0, float(value))
    return None


def _is_over(request: ModelRequest) -> bool:
    info = lookup(request.model_id)
    return tokenizer.count_request(request, info.factor) + request.max_tokens > info.context_window


# time
def _read_seconds(request: ModelRequest) -> int:
    left = seconds_left(request.deadline)
    if left is None:
        return READ_SECONDS[-1]
    if left <= 0:
        raise ModelUnavailableError("no time is left to ask the model")
    return max((seconds for seconds in READ_SECONDS if seconds <= left), default=READ_SECONDS[0])


@contextmanager
def _until_deadline(request: ModelRequest, stream: Any) -> Iterator[None]:
    """Ends a stream with the deadline, however slowly it drips."""
    left = seconds_left(request.deadline)
    timer = threading.Timer(max(0.0, READ_SECONDS[-1] if left is None else left), stream.close)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        stream.close()


# embeddings
COHERE_BATCH = 96
PARALLEL = 8  # Titan takes one text a call
LONGEST_TEXT = 6_000  # characters; both models read 8,192 tokens or fewer, and the beginning says what a text is about
DIMENSIONS = {"amazon.titan-embed-text-v2:0": 1024, "cohere.embed-english-v3": 1024, "cohere.embed-multilingual-v3": 1024}
TITAN_DIMENSIONS = (256, 512, 1024)


class BedrockEmbedder(RemoteEmbedder):
    """Titan Text Embeddings v2 and Cohere Embed."""

    def __init__(self, client: Clients, model_id: str, dimension: int | None = None) -> None:
        super().__init__(model_id, dimension or DIMENSIONS.get(model_id))
        self._client = client

    def embed_query(self, text: str) -> list[float]:
        return self._embed([text], "search_query")[0]

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        return self._embed(texts, "search_document")

    def _embed(self, texts: Sequence[str], use: str) -> list[list[float]]:
        clean = [text[:LONGEST_TEXT] if text.strip() else EMPTY_TEXT for text in texts]
        if "cohere." in self._model:
            batches = [clean[start : start + COHERE_BATCH] for start in range(0, len(clean), COHERE_BATCH)]
            return [vector for batch in batches for vector in self._cohere(batch, use)]
        if len(clean) <= 1:
            return [self._titan(text) for text in clean]
        with ThreadPoolExecutor(min(PARALLEL, len(clean))) as pool:
            return list(pool.map(self._titan, clean))

    def _titan(self, text: str) -> list[float]:
        size = {"dimensions": self._dimension} if self._dimension in TITAN_DIMENSIONS else {}
        return unit(self._invoke({"inputText": text, "normalize": True, **size}).get("embedding"))

    def _cohere(self, texts: list[str], use: str) -> list[list[float]]:
        found = self._invoke({"texts": texts, "input_type": use, "truncate": "END"}).get("embeddings")
        rows = found.get("float") if isinstance(found, dict) else found
        if not isinstance(rows, list) or len(rows) != len(texts):
            raise ModelMalformedError("another number of vectors than of texts")
        return [unit(row) for row in rows]

    def _invoke(self, body: dict[str, Any]) -> dict[str, Any]:
        try:
            answer = self._client(READ_SECONDS[1]).invoke_model(
                modelId=self._model, body=json.dumps(body), contentType="application/json", accept="application/json"
            )
            data = answer["body"].read()
        except ClientError as exc:
            raise _error(exc, None) from exc
        except (BotoCoreError, HTTPClientError, OSError) as exc:
            raise ModelUnavailableError("the embedder cannot be reached") from exc
        return json_object(data)
