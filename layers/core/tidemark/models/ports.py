"""What a language model and an embedder are to the rest of the product."""

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict, Field

Purpose = Literal["turn", "summary", "extraction"]
FinishReason = Literal["stop", "length", "tool_calls"]


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class ToolCall(Frozen):
    """One call that a model asks its caller to make."""

    id: str
    name: str
    arguments: dict[str, Any] = Field(default_factory=dict)


class ToolDefinition(Frozen):
    name: str
    description: str = ""
    parameters: dict[str, Any] = Field(default_factory=dict)  # JSON Schema


class Attachment(Frozen):
    source_id: str
    title: str
    text: str


class ModelMessage(Frozen):
    """One message as a model reads it. `tool` messages answer the call `tool_call_id`."""

    role: Literal["user", "assistant", "tool"]
    content: str
    name: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str | None = None
    attachments: tuple[Attachment, ...] = ()


class ModelRequest(Frozen):
    """Everything one call of a model reads.

    `memory` and `summary` are finished, delimited and escaped blocks: an adapter puts them behind the system prompt and in front of
    the messages, in this order, and never edits them. `max_tokens` caps the answer. `response_schema` asks for one JSON object of that
    JSON Schema. `deadline` is the moment after which nobody waits for the answer any more.
    """

    purpose: Purpose
    model_id: str
    system: str = ""
    memory: str | None = None
    summary: str | None = None
    messages: tuple[ModelMessage, ...]
    tools: tuple[ToolDefinition, ...] = ()
    max_tokens: int
    response_schema: dict[str, Any] | None = None
    deadline: datetime | None = None


class Usage(Frozen):
    input_tokens: int
    output_tokens: int


class TextDelta(Frozen):
    text: str


class ModelResponse(Frozen):
    text: str
    tool_calls: tuple[ToolCall, ...] = ()
    finish_reason: FinishReason
    usage: Usage
    model: str
    first_input_tokens: int | None = None  # of the first of several calls that made this response; None for one call

    @property
    def request_tokens(self) -> int:
        """What the provider counted of the request as it was first sent."""
        return self.usage.input_tokens if self.first_input_tokens is None else self.first_input_tokens


class Model(Protocol):
    """A language model. `stream` yields the text in pieces and, last, the whole response; it raises a ModelError."""

    def stream(self, request: ModelRequest) -> Iterator[TextDelta | ModelResponse]: ...


def complete(model: Model, request: ModelRequest) -> ModelResponse:
    """The whole response of a model, its pieces drained."""
    response: ModelResponse | None = None
    for event in model.stream(request):
        if isinstance(event, ModelResponse):
            response = event
    if response is None:
        raise ModelMalformedError("the model ended without an answer")
    return response


class ModelError(Exception):
    """A model call that gave no usable answer; `retryable` tells whether the same call may succeed later."""

    code = "model_error"
    retryable = False
    retry_after: float | None = None  # seconds that the provider asks to wait


class ModelUnavailableError(ModelError):
    code = "model_unavailable"
    retryable = True


class ModelThrottledError(ModelError):
    code = "model_throttled"
    retryable = True


class ModelContextTooLongError(ModelError):
    code = "model_context_too_long"


class ModelRefusedError(ModelError):
    code = "model_refused"


class ModelMalformedError(ModelError):
    code = "model_malformed"
    retryable = True


class Embedder(Protocol):
    """Texts to unit vectors of `dimension` floats; the answer has exactly one vector a text, in order."""

    @property
    def model_id(self) -> str: ...

    @property
    def dimension(self) -> int: ...

    def embed_query(self, text: str) -> list[float]: ...

    def embed_passages(self, texts: Sequence[str]) -> list[list[float]]: ...
