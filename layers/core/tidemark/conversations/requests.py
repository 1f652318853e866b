"""Bodies of the chat and context routes."""

from typing import Annotated, Any, Literal, Protocol, TypeVar

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import to_json

from tidemark.clock import Time
from tidemark.requests import Body, Identifier, Number, Subject

Content = Annotated[str, StringConstraints(min_length=1, max_length=200_000)]
Text = Annotated[str, StringConstraints(max_length=200_000)]
Title = Annotated[str, StringConstraints(min_length=1, max_length=500)]
MetadataText = Annotated[str, StringConstraints(max_length=1000)]


class Named(Protocol):
    @property
    def name(self) -> str: ...


T = TypeVar("T", bound=Named)


def _few(metadata: dict[str, str]) -> dict[str, str]:
    if len(metadata) > 16:
        raise ValueError("at most 16 keys are allowed")
    return metadata


Metadata = Annotated[dict[Identifier, MetadataText], AfterValidator(_few)]


class ConversationBody(Body):
    external_subject_id: Subject | None = None
    knowledge_base_id: str | None = None
    agent_id: str | None = None
    workspace_id: Identifier | None = None
    title: Title | None = None
    metadata: Metadata = Field(default_factory=dict)


class ConversationPatch(Body):
    title: Title | None = None
    workspace_id: Identifier | None = None
    metadata: Metadata | None = None


class AttachmentBody(Body):
    source_id: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    title: Annotated[str, StringConstraints(max_length=1000)]
    text: Text


def _whole(parameters: dict[str, Any]) -> dict[str, Any]:
    """Refuses what no model can be sent: half characters, and nesting that no encoder takes. Raises ValueError."""
    try:
        to_json(parameters)
    except ValueError as exc:
        raise ValueError("whole characters in JSON of a usual depth are expected") from exc
    return parameters


Parameters = Annotated[dict[str, Any], AfterValidator(_whole)]


class ToolBody(Body):
    name: Annotated[str, StringConstraints(min_length=1, max_length=64, pattern=r"^[a-zA-Z0-9_-]+$")]
    description: Annotated[str, StringConstraints(max_length=20_000)] = ""
    parameters: Parameters = Field(default_factory=dict)


def distinct_tools(tools: list[T]) -> list[T]:
    """Refuses tools of one name: nobody could say which of them a call means. Raises ValueError."""
    if len({tool.name for tool in tools}) < len(tools):
        raise ValueError("every tool needs a name of its own")
    return tools


class ToolResultBody(Body):
    tool_call_id: Annotated[str, StringConstraints(min_length=1, max_length=255)]
    content: Text
    is_error: bool = False


class TurnBody(Body):
    """One turn: the user's words, or the results of the tools that the model called, or both."""

    content: Content | None = None
    name: Identifier | None = None
    parent_id: str | None = None
    attachments: list[AttachmentBody] = Field(default_factory=list, max_length=20)
    tools: Annotated[list[ToolBody], AfterValidator(distinct_tools)] = Field(default_factory=list, max_length=128)
    tool_results: list[ToolResultBody] = Field(default_factory=list, max_length=128)
    max_tokens: int | None = Field(default=None, ge=1, le=1_000_000)
    stream: bool = False
    memory: Literal["auto", "off"] = "auto"

    @model_validator(mode="after")
    def _says_something(self) -> "TurnBody":
        if self.content is None and (not self.tool_results or "content" in self.model_fields_set):
            raise ValueError("content is needed, or tool_results")
        return self


class EarlierWords(Body):
    content: Content
    name: Identifier | None = None


class CompletionTurn(TurnBody):
    """A turn of the OpenAI routes: with instructions of its own, and words in front of the last ones that were not stored yet."""

    instructions: str = ""
    earlier: list[EarlierWords] = Field(default_factory=list, max_length=100)


class ImportedMessage(Body):
    role: Literal["user", "assistant"]
    content: Content
    name: Identifier | None = None
    created_at: Time | None = None


class ImportBody(Body):
    messages: list[ImportedMessage] = Field(min_length=1, max_length=100)


class RollbackBody(Body):
    to_message_id: str


class PreferencesPatch(Body):
    automatic_compaction: bool = True
    autocompact_pct: Number | None = Field(default=None, ge=0.5, le=0.95)
    keep_user_chars: int = Field(default=80_000, ge=0, le=10_000_000)


class CompactBody(Body):
    focus: Annotated[str, StringConstraints(max_length=2000)] | None = None


class RecallBody(Body):
    ids: list[str] | None = Field(default=None, min_length=1, max_length=100)
    query: Annotated[str, StringConstraints(min_length=1, max_length=2000)] | None = None
    limit: int = Field(default=10, ge=1, le=50)
    cursor: str | None = None

    @model_validator(mode="after")
    def _one(self) -> "RecallBody":
        if (self.ids is None) == (self.query is None):
            raise ValueError("exactly one of ids and query is needed")
        if self.query is not None and not self.query.strip():
            raise ValueError("the query is empty")
        return self
