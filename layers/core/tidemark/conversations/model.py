"""Conversations and messages: what is stored, and what is answered."""

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from tidemark.clock import Time
from tidemark.conversations.branch import Position, Segment
from tidemark.models.ports import Attachment, ToolCall

Role = Literal["user", "assistant", "tool", "notice"]
MessageKind = Literal["text", "tool_calls", "tool_result", "memory_confirmation", "notice"]
FinishReason = Literal["stop", "length", "tool_calls", "memory_confirmation"]


class Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Conversation(Record):
    """A conversation as it is answered."""

    id: str
    tenant_id: str
    external_subject_id: str | None
    knowledge_base_id: str | None
    agent_id: str
    workspace_id: str | None
    title: str | None
    metadata: dict[str, str]
    head_message_id: str | None = None
    message_count: int = 0
    state: Literal["active", "deleting"] = "active"
    created_at: Time
    updated_at: Time
    last_activity_at: Time


class Preferences(Record):
    automatic_compaction: bool = True
    autocompact_pct: float | None = None
    keep_user_chars: int = 80_000


class CompactionMark(Record):
    """How far a compaction reaches: everything on its branch up to `upto`."""

    id: str
    upto: Position


class Rollback(Record):
    to_message_id: str
    left: Position  # the head that was left
    to: Position
    created_at: Time


class ConversationState(Conversation):
    """The conversation's one item: everything that a turn must know before it reads a message.

    It is written with a condition on `version`, so that of two writers one starts again from what the other left.
    """

    version: int = 0
    segments: list[Segment] = Field(default_factory=list)
    head: Position | None = None
    last_item_key: str | None = None
    last_message_at: Time | None = None
    branch_tokens: int = 0  # tokens of all messages of the active branch
    open_calls: list[str] = Field(default_factory=list)  # tool calls at the head that wait for their results
    session: int = 0  # the sitting that the newest message belongs to
    preferences: Preferences = Preferences()
    compactions: list[CompactionMark] = Field(default_factory=list)
    rollback: Rollback | None = None
    pending_turns: int = 0  # user messages that may be learned from and were not read yet
    extracted_key: str | None = None  # item key up to which extraction has read
    extract_at: Time | None = None  # when the pending messages are due
    uncounted: int = 0  # tokens of the active branch that its model's provider counted beyond ours

    def public(self) -> Conversation:
        return Conversation.model_validate(self.model_dump(include=set(Conversation.model_fields)))


class Message(Record):
    """A message as it is answered."""

    id: str
    conversation_id: str
    parent_id: str | None
    sequence: int
    turn_id: str | None
    role: Role
    name: str | None = None
    kind: MessageKind = "text"
    content: str
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tool_call_id: str | None = None
    attachments: list[Attachment] = Field(default_factory=list)
    tokens: int
    created_at: Time


class StoredMessage(Message):
    """A message with what only the service reads of it."""

    segment: int
    branch_tokens: int  # tokens of its branch up to and with this message
    session: int = 1
    zone_minutes: int = 0  # the offset from UTC in which it was said; relative dates are resolved in it
    scope: str | None = None  # the memory scope that may learn from it; fixed when it is stored
    trust: Literal["user", "import"] = "user"
    derived: bool = False  # an answer that recalled memory: it repeats what is remembered, and is not recalled itself
    characters: int  # of the content, also where it lies in the bucket
    attachment_tokens: int = 0
    blob: bool = False  # content and attachments lie in the bucket

    @property
    def weight(self) -> int:
        """Tokens that the message takes in a request, its attachments included."""
        return self.tokens + self.attachment_tokens

    @property
    def position(self) -> Position:
        return Position(segment=self.segment, sequence=self.sequence)

    def public(self) -> Message:
        return Message.model_validate(self.model_dump(include=set(Message.model_fields)))


class Draft(Record):
    """A message that is about to be stored."""

    role: Role
    content: str
    kind: MessageKind = "text"
    name: str | None = None
    tool_calls: list[ToolCall] = Field(default_factory=list)
    tool_call_id: str | None = None
    attachments: list[Attachment] = Field(default_factory=list)
    tokens: int
    attachment_tokens: int = 0
    created_at: datetime
    zone_minutes: int = 0
    scope: str | None = None
    trust: Literal["user", "import"] = "user"
    derived: bool = False


class TokenUsage(Record):
    input_tokens: int
    output_tokens: int


class AnswerMetadata(Record):
    memory_used: bool
    compacted: bool
    model: str
    usage: TokenUsage
    finish_reason: FinishReason


class TurnAnswer(Record):
    message: Message
    conversation_id: str
    turn_id: str
    metadata: AnswerMetadata


class TurnRecord(Record):
    """A turn as it is stored: its answer's message is read from the messages."""

    turn_id: str
    conversation_id: str
    state: Literal["running", "completed", "failed"]
    answer_message_id: str | None = None
    metadata: AnswerMetadata | None = None
    problem: dict[str, Any] | None = None
    created_at: Time
    completed_at: Time | None = None
    deadline: Time


class Turn(Record):
    turn_id: str
    conversation_id: str
    state: Literal["running", "completed", "failed"]
    answer: TurnAnswer | None
    problem: dict[str, Any] | None
    created_at: Time
    completed_at: Time | None


class FrameItem(Record):
    kind: Literal["system", "tools", "memory", "summary", "message", "attachment"]
    source_id: str | None
    role: str | None
    included: bool
    reason: str
    tokens: int


class FrameTotals(Record):
    items: int
    included_items: int
    included_tokens: int
    excluded_tokens: int


class Frame(Record):
    """What one turn's request was assembled from; the first 50 items are listed, the totals count all."""

    id: str
    conversation_id: str
    turn_id: str
    model: str
    created_at: Time
    totals: FrameTotals
    items: list[FrameItem]


class Compaction(Record):
    id: str
    conversation_id: str
    trigger: Literal["auto", "manual"]
    focus: str | None
    from_message_id: str
    to_message_id: str
    replaced_count: int
    kept_user_messages: int
    previous_compaction_id: str | None
    summary: str
    summary_tokens: int
    before_tokens: int
    after_tokens: int
    model: str
    created_at: Time


class StoredCompaction(Compaction):
    upto: Position
    kept_message_ids: list[str]
    kept_tokens: int
    branch_tokens: int  # of the branch up to and with the last replaced message

    def public(self) -> Compaction:
        return Compaction.model_validate(self.model_dump(include=set(Compaction.model_fields)))
