"""Any server that speaks OpenAI's chat completions and embeddings.

Errors are told apart by status and code, never by their sentences. What a server does not know of OpenAI's newer parameters is found out
once and left out from then on.
"""

import json
import socket
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, cast

import httpx

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

CONNECT_SECONDS = 5.0
LONGEST_SECONDS = 180.0  # of a call without a deadline
EMBEDDING_BATCH = 64
EMBEDDING_SECONDS = 20.0
TOO_LONG = frozenset(
    (
        "context_length_exceeded",
        "context_window_exceeded",
        "model_context_window_exceeded",
        "exceed_context_size_error",
        "string_above_max_length",
    )
)
FILTERED = frozenset(("content_filter", "content_policy_violation"))
OPTIONAL = ("stream_options", "response_format")
# Dimensions of well-known models; of any other one it is learned from its first vector.
DIMENSIONS = {"text-embedding-3-small": 1536, "text-embedding-3-large": 3072, "text-embedding-ada-002": 1536}


class _Unknown(Exception):
    """The server refuses a parameter that can be left out; `parameters` are the ones to try without."""

    def __init__(self, parameters: frozenset[str], error: ModelError) -> None:
        super().__init__(*parameters)
        self.parameters, self.error = parameters, error


class OpenAICompatibleModel:
    """Chat completions of one base URL; safe to share between threads."""

    def __init__(self, base_url: str, api_key: str = "") -> None:
        self._http = _client(base_url, api_key)
        self._without: frozenset[str] = frozenset()

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        return with_retries(request, lambda: self._attempt(request))

    def _attempt(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]:
        while True:
            try:
                yield from self._ask(request, self._without)
            except _Unknown as found:
                if found.parameters <= self._without:
                    raise found.error from None
                self._without |= found.parameters
            else:
                return

    def _ask(self, request: ModelRequest, without: frozenset[str]) -> Iterator[TextDelta | ModelResponse]:
        body = request_body(request, without)
        with _errors(request.deadline), _answering(self._http, body, request.deadline) as response:
            if response.status_code != 200:
                raise _failure(response, body)
            if body.get("stream") and "text/event-stream" in response.headers.get("content-type", ""):
                yield from _streamed(request, response)
            else:
                yield from _whole(request, response)


# the request
def request_body(request: ModelRequest, without: frozenset[str] = frozenset()) -> dict[str, Any]:
    """The request as chat completions have it. A turn is streamed; everything else is asked for at once."""
    schema = request.response_schema
    body: dict[str, Any] = {
        "model": request.model_id,
        "messages": _messages(request, schema if schema and "response_format" in without else None),
        "max_completion_tokens" if "max_tokens" in without else "max_tokens": request.max_tokens,
    }
    if request.tools:
        body["tools"] = [
            {
                "type": "function",
                "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters or {"type": "object"}},
            }
            for tool in request.tools
        ]
    if schema and "response_format" not in without:
        body["response_format"] = {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema, "strict": True}}
    if request.purpose == "turn":
        body["stream"] = True
        if "stream_options" not in without:
            body["stream_options"] = {"include_usage": True}
    return body


def _messages(request: ModelRequest, schema: dict[str, Any] | None) -> list[dict[str, Any]]:
    head = (request.system, request.memory, request.summary, schema_instruction(schema) if schema else None)
    return [*({"role": "system", "content": part} for part in head if part), *map(_message, request.messages)]


def _message(message: ModelMessage) -> dict[str, Any]:
    made: dict[str, Any] = {"role": message.role, "content": words(message)}
    if message.name and message.role != "tool":
        made["name"] = _name(message.name)
    if message.tool_call_id:
        made["tool_call_id"] = message.tool_call_id
    if message.tool_calls:
        made["content"] = message.content or None
        made["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": json.dumps(call.arguments, ensure_ascii=False)},
            }
            for call in message.tool_calls
        ]
    return made


def _name(name: str) -> str:
    """The speaker as OpenAI takes it: any script, but no white space and none of < | \\ / >."""
    return "".join("_" if character.isspace() or character in "<|\\/>" else character for character in name)[:64]


# the answer
def _whole(request: ModelRequest, response: httpx.Response) -> Iterator[TextDelta | ModelResponse]:
    response.read()
    found = json_object(response.content)
    if "error" in found:
        raise _told(found["error"], response)
    choice = _choice(found)
    message = choice.get("message")
    if not isinstance(message, dict):
        raise ModelMalformedError("an answer without a message")
    text = _text(message.get("content"))
    calls = _Calls()
    calls.add(message.get("tool_calls"))
    response_made = _response(request, found, text, calls.read(), choice.get("finish_reason"), _usage(found), _text(message.get("refusal")))
    if text:
        yield TextDelta(text=text)
    yield response_made


def _streamed(request: ModelRequest, response: httpx.Response) -> Iterator[TextDelta | ModelResponse]:
    texts: list[str] = []
    refusals: list[str] = []
    calls = _Calls()
    last: dict[str, Any] = {}
    usage: Usage | None = None
    finish: str | None = None
    done = False
    for data in _events(response):
        if data == b"[DONE]":
            done = True
            break
        last = json_object(data)
        if last.get("error"):
            raise _told(last["error"], response)
        usage = _usage(last) or usage
        if not last.get("choices"):
            continue
        choice = _choice(last)
        delta = choice.get("delta") or {}
        finish = choice.get("finish_reason") or finish
        calls.add(delta.get("tool_calls"))
        refusals.append(_text(delta.get("refusal")))
        if text := _text(delta.get("content")):
            texts.append(text)
            yield TextDelta(text=text)
    if not done and finish is None:
        raise ModelUnavailableError("the stream was cut")
    yield _response(request, last, "".join(texts), calls.read(), finish, usage, "".join(refusals))


def _response(
    request: ModelRequest,
    found: Mapping[str, Any],
    text: str,
    calls: tuple[ToolCall, ...],
    finish: str | None,
    usage: Usage | None,
    refusal: str,
) -> ModelResponse:
    if finish == "content_filter" or (refusal and not text):
        raise ModelRefusedError("the model refused to answer")
    if not text and not calls:
        raise ModelMalformedError("an empty answer")
    reason: FinishReason = "tool_calls" if calls else "length" if finish == "length" else "stop"
    model = found.get("model")
    return ModelResponse(
        text=text,
        tool_calls=calls,
        finish_reason=reason,
        usage=usage or _counted(request, text, calls),
        model=model if isinstance(model, str) and model else request.model_id,
    )


def _counted(request: ModelRequest, text: str, calls: Sequence[ToolCall]) -> Usage:
    """Our own count, where the server tells no usage."""
    factor = lookup(request.model_id).factor
    said = text + "".join(call.name + json.dumps(call.arguments, ensure_ascii=False) for call in calls)
    return Usage(input_tokens=tokenizer.count_request(request, factor), output_tokens=tokenizer.count(said, factor))


def _events(response: httpx.Response) -> Iterator[bytes]:
    """The data of each server-sent event. Lines end at line feeds only: an answer may hold any other separator."""
    rest, data = b"", list[bytes]()
    for chunk in response.iter_bytes():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            plain = line.removesuffix(b"\r")
            if plain.startswith(b"data:"):
                data.append(plain[5:].removeprefix(b" "))
            elif not plain and data:
                yield b"\n".join(data)
                data = []
    if rest.startswith(b"data:"):
        data.append(rest[5:].strip())
    if data:
        yield b"\n".join(data)


@dataclass
class _Call:
    id: str = ""
    name: str = ""
    arguments: list[str] = field(default_factory=list)


class _Calls:
    """Parallel tool calls put together from their pieces, by index. Servers differ in what they repeat and what they leave out."""

    def __init__(self) -> None:
        self._calls: list[_Call] = []
        self._places: dict[object, _Call] = {}

    def add(self, pieces: object) -> None:
        if pieces is None:
            return
        if not isinstance(pieces, list) or not all(isinstance(piece, dict) for piece in pieces):
            raise ModelMalformedError("tool calls that are no list of objects")
        for piece in pieces:
            self._add(piece)

    def _add(self, piece: Mapping[str, Any]) -> None:
        function = piece.get("function") or {}
        call_id, name, arguments = piece.get("id") or "", function.get("name") or "", function.get("arguments")
        call = self._call(piece.get("index"), call_id, name)
        call.id = call.id or call_id  # a repeated id is the same id, not a longer one
        if name and name != call.name:
            call.name += name
        if isinstance(arguments, dict):
            arguments = json.dumps(arguments)
        if arguments:
            call.arguments.append(arguments)

    def _call(self, index: object, call_id: str, name: str) -> _Call:
        """The call that a piece belongs to: by index; another id with a name of its own begins another call."""
        known = self._places.get(index) if index is not None else (self._calls[-1] if self._calls else None)
        if known is None or (call_id and known.id and call_id != known.id and name):
            known = _Call()
            self._calls.append(known)
        if index is not None:
            self._places[index] = known
        return known

    def read(self) -> tuple[ToolCall, ...]:
        return calls_of((call.id, call.name, "".join(call.arguments)) for call in self._calls)


def _choice(found: Mapping[str, Any]) -> dict[str, Any]:
    choices = found.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        raise ModelMalformedError("an answer without a choice")
    return cast(dict[str, Any], choices[0])


def _text(content: object) -> str:
    """Text, or the text parts of a list of parts."""
    if isinstance(content, list):
        return "".join(part["text"] for part in content if isinstance(part, dict) and isinstance(part.get("text"), str))
    return content if isinstance(content, str) else ""


def _usage(found: Mapping[str, Any]) -> Usage | None:
    usage = found.get("usage")
    if not isinstance(usage, dict):
        return None
    given, said = usage.get("prompt_tokens"), usage.get("completion_tokens")
    return Usage(input_tokens=given, output_tokens=said) if isinstance(given, int) and isinstance(said, int) else None


# errors
def _failure(response: httpx.Response, body: Mapping[str, Any]) -> Exception:
    """The error of an answer that is no 200; _Unknown where the request may pass without a parameter."""
    response.read()
    try:
        told = json.loads(response.content)
    except ValueError:
        told = None
    error = told.get("error", told) if isinstance(told, dict) else told
    made = _told(error, response)
    parameter = error.get("param") if isinstance(error, dict) else None
    if response.status_code not in (400, 422) or not isinstance(made, ModelRefusedError) or _codes(error) & FILTERED:
        return made
    if parameter == "max_tokens":
        return _Unknown(frozenset(("max_tokens",)), made)
    given = frozenset(name for name in OPTIONAL if name in body)
    named = frozenset(name for name in given if isinstance(parameter, str) and parameter.partition(".")[0] == name)
    return _Unknown(named or given, made) if given else made


def _told(error: object, response: httpx.Response) -> ModelError:
    codes, status = _codes(error), response.status_code
    if codes & TOO_LONG or status == 413:
        return ModelContextTooLongError("the request does not fit the model's window")
    if codes & FILTERED:
        return ModelRefusedError("the request was refused")
    if status == 429 or codes & {"rate_limit_exceeded", "429"}:
        throttled = ModelThrottledError("the model is throttled")
        throttled.retry_after = _retry_after(response.headers.get("retry-after"))
        return throttled
    if status >= 500 or status in (200, 408, 409, 425):
        unavailable = ModelUnavailableError(f"the model's server answered {status}")
        unavailable.retry_after = _retry_after(response.headers.get("retry-after"))
        return unavailable
    return ModelRefusedError(f"the model's server refused with {status}")


def _codes(error: object) -> frozenset[str]:
    if not isinstance(error, dict):
        return frozenset()
    return frozenset(str(error[name]) for name in ("code", "type") if error.get(name) is not None)


def _retry_after(value: str | None) -> float | None:
    """Seconds of a Retry-After header: a number, or a date."""
    if not value:
        return None
    with suppress(ValueError):
        return max(0.0, float(value))
    with suppress(ValueError, TypeError):
        return max(0.0, (parsedate_to_datetime(value) - datetime.now(UTC)).total_seconds())
    return None


@contextmanager
def _errors(deadline: datetime | None) -> Iterator[None]:
    """What the connection does, as errors of the port."""
    try:
        yield
    except httpx.TimeoutException as exc:
        raise ModelUnavailableError("the model did not answer in time") from exc
    except (httpx.HTTPError, httpx.StreamError, OSError) as exc:
        late = (seconds_left(deadline) or 1) <= 0
        raise ModelUnavailableError("the model did not answer in time" if late else "the connection to the model broke") from exc


# the connection
def _client(base_url: str, api_key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    return httpx.Client(base_url=base_url.rstrip("/") + "/", headers=headers, limits=httpx.Limits(max_connections=100))


@contextmanager
def _answering(http: httpx.Client, body: Mapping[str, Any], deadline: datetime | None) -> Iterator[httpx.Response]:
    """An open answer that ends with the deadline, however slowly it drips."""
    left = seconds_left(deadline)
    seconds = LONGEST_SECONDS if left is None else left
    if seconds <= 0:
        raise ModelUnavailableError("no time is left to ask the model")
    timeout = httpx.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
    with http.stream("POST", "chat/completions", json=body, timeout=timeout) as response:
        left = seconds_left(deadline)
        timer = threading.Timer(max(0.0, LONGEST_SECONDS if left is None else left), _break, (response,))
        timer.daemon = True
        timer.start()
        try:
            yield response
        finally:
            timer.cancel()


def _break(response: httpx.Response) -> None:
    """Ends a read that waits in another thread."""
    stream = response.extensions.get("network_stream")
    raw = stream.get_extra_info("socket") if stream else None
    if raw is not None:
        with suppress(OSError):
            socket.socket.shutdown(raw, socket.SHUT_RDWR)


# embeddings
class OpenAICompatibleEmbedder(RemoteEmbedder):
    """Embeddings of one base URL, made unit vectors. A dimension that is given is asked for; else it is the model's own."""

    def __init__(self, base_url: str, api_key: str, model_id: str, dimension: int | None = None) -> None:
        super().__init__(model_id, dimension or DIMENSIONS.get(model_id))
        self._http, self._wanted = _client(base_url, api_key), dimension

    def embed_query(self, text: str) -> list[float]:
        return self.embed_passages([text])[0]

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]:
        vectors: list[list[float]] = []
        for start in range(0, len(texts), EMBEDDING_BATCH):
            vectors += self._embed([text if text.strip() else EMPTY_TEXT for text in texts[start : start + EMBEDDING_BATCH]])
        return vectors

    def _embed(self, texts: list[str]) -> list[list[float]]:
        body = {"model": self._model, "input": texts, "encoding_format": "float", **({"dimensions": self._wanted} if self._wanted else {})}
        with _errors(None):
            response = self._http.post("embeddings", json=body, timeout=httpx.Timeout(EMBEDDING_SECONDS, connect=CONNECT_SECONDS))
        if response.status_code != 200:
            failure = _failure(response, {})
            raise failure
        return _vectors(json_object(response.content), len(texts), self._dimension)


def _vectors(found: Mapping[str, Any], count: int, dimension: int | None) -> list[list[float]]:
    """One unit vector a text, in the order of the texts. Raises ModelMalformedError."""
    rows = found.get("data")
    if not isinstance(rows, list) or len(rows) != count or not all(isinstance(row, dict) for row in rows):
        raise ModelMalformedError("another number of vectors than of texts")
    placed = {row.get("index", place): row.get("embedding") for place, row in enumerate(rows)}
    vectors = [unit(placed.get(place)) for place in range(count)]
    if len({len(vector) for vector in vectors} | ({dimension} if dimension else set())) > 1:
        raise ModelMalformedError("vectors of another dimension")
    return vectors
