"""What people see and set of a conversation's context: usage, preferences, compaction by hand, frames, recall."""

from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tidemark.clock import Time
from tidemark.conversations import branch
from tidemark.conversations.access import ConversationAccess
from tidemark.conversations.budget import SAFETY_MARGIN, TRIGGER_RATIO
from tidemark.conversations.compaction import Compactor, weigh
from tidemark.conversations.history import Base, History, head
from tidemark.conversations.model import (
    Compaction,
    ConversationState,
    Frame,
    Preferences,
    StoredCompaction,
    StoredMessage,
)
from tidemark.conversations.requests import CompactBody, PreferencesPatch, RecallBody
from tidemark.conversations.store import ConversationStore
from tidemark.conversations.summary import SummaryFailedError
from tidemark.conversations.turns import NOTICE_FAILED, NOTICE_USELESS, TurnService
from tidemark.errors import NotFoundError
from tidemark.etags import check, etag
from tidemark.storage import table
from tidemark.tenancy.caller import Caller

ATTEMPTS = 20
RECALL_CHARACTERS = 16_000


class Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class UsageParts(Record):
    system: int
    tools: int
    memory: int
    summary: int
    tail: int


class ContextUsage(Record):
    """The request that the next turn would start from, in tokens."""

    model: str
    context_window: int
    output_reserve: int
    safety_margin: int
    input_budget: int
    trigger_budget: int
    trigger_ratio: float
    total_tokens: int
    utilization: float
    parts: UsageParts


class CompactAnswer(Record):
    compacted: bool
    compaction: Compaction | None
    skip_reason: Literal["nothing_to_compact", "would_not_shrink", "in_progress"] | None


class RecallItem(Record):
    id: str
    role: str
    name: str | None
    kind: str
    content: str
    created_at: Time
    compaction_id: str | None
    score: float | None = None


class ContextService:
    def __init__(
        self,
        store: ConversationStore,
        history: History,
        access: ConversationAccess,
        compactor: Compactor,
        turns: TurnService,
    ) -> None:
        self._store, self._history, self._access = store, history, access
        self._compactor, self._turns = compactor, turns

    # preferences and usage
    def preferences(self, caller: Caller, conversation_id: str) -> Preferences:
        return self._access.find(caller, conversation_id).preferences

    def patch_preferences(self, caller: Caller, conversation_id: str, body: PreferencesPatch, if_match: str | None) -> Preferences:
        """A partial change; null takes a value back to its default."""
        given = body.model_dump(exclude_unset=True)
        defaults = Preferences().model_dump()
        values = {name: defaults[name] if value is None else value for name, value in given.items()}

        def attempt() -> Preferences:
            state = self._access.find(caller, conversation_id)
            check(if_match, etag(state.preferences))
            return self._store.update(state, preferences=state.preferences.model_copy(update=values)).preferences

        return table.retried(attempt, "Somebody else is changing this conversation.", ATTEMPTS)

    def usage(self, caller: Caller, conversation_id: str) -> ContextUsage:
        state = self._access.find(caller, conversation_id)
        setting = self._access.setting(caller, state)
        base = head(state)
        parts = weigh(setting, state, base, self._history.compaction(state, base.path))
        figures = setting.budget
        return ContextUsage(
            model=setting.model.id,
            context_window=figures.window,
            output_reserve=figures.output_reserve,
            safety_margin=SAFETY_MARGIN,
            input_budget=figures.input_budget,
            trigger_budget=figures.trigger_budget,
            trigger_ratio=TRIGGER_RATIO,
            total_tokens=parts.total,
            utilization=parts.total / figures.window,
            parts=UsageParts(
                system=parts.system + parts.uncounted, tools=parts.tools, memory=parts.memory, summary=parts.summary, tail=parts.tail
            ),
        )

    # compaction
    def compact(self, caller: Caller, conversation_id: str, body: CompactBody, deadline: datetime) -> CompactAnswer:
        """Compacts now, or gives up before `deadline`. Raises SummaryFailedError when the model gave no summary; nothing has moved then."""
        state = self._access.find(caller, conversation_id)
        setting = self._access.setting(caller, state)
        base = head(state)

        def reread() -> tuple[ConversationState, Base]:
            fresh = self._access.find(caller, conversation_id)
            return fresh, head(fresh)

        parts = weigh(setting, state, base, self._history.compaction(state, base.path))
        try:
            outcome = self._compactor.compact(
                setting, state, base, parts, "manual", focus=body.focus or None, deadline=deadline, reread=reread
            )
        except SummaryFailedError:
            self._turns.notice(caller, conversation_id, NOTICE_FAILED)
            raise
        if outcome.skip_reason == "would_not_shrink":
            self._turns.notice(caller, conversation_id, NOTICE_USELESS)
        record = outcome.compaction if outcome.skip_reason is None else None
        return CompactAnswer(
            compacted=record is not None,
            compaction=record.public() if record else None,
            skip_reason=outcome.skip_reason,
        )

    def compactions(self, caller: Caller, conversation_id: str, limit: int, before: str | None) -> tuple[list[Compaction], str | None]:
        """Newest first."""
        state = self._access.find(caller, conversation_id)
        found = self._store.compactions(state, limit + 1, before)
        return [one.public() for one in found[:limit]], found[limit - 1].id if len(found) > limit else None

    # frames
    def frames(self, caller: Caller, conversation_id: str, limit: int, before: str | None) -> tuple[list[Frame], str | None]:
        """Newest first."""
        state = self._access.find(caller, conversation_id)
        found = self._store.frames(state, limit + 1, before)
        return found[:limit], found[limit - 1].id if len(found) > limit else None

    def frame(self, caller: Caller, conversation_id: str, frame_id: str) -> Frame:
        state = self._access.find(caller, conversation_id)
        found = self._store.frame(state, frame_id)
        if found is None:
            raise NotFoundError
        return found

    # recall
    def recalled(self, caller: Caller, conversation_id: str, body: RecallBody) -> list[RecallItem]:
        """Everything that a recall by ids stands for, oldest first. Raises NotFoundError for an unknown or foreign id."""
        state = self._access.find(caller, conversation_id)
        found: dict[str, StoredMessage] = {}
        for id in dict.fromkeys(body.ids or ()):
            if id.startswith("cmp_"):
                found |= {message.id: message for message in self._replaced(state, id)}
                continue
            message = self._store.message(state, id)
            if message is None:
                raise NotFoundError
            found[id] = message
        ordered = sorted(found.values(), key=lambda message: message.sequence)
        return self.items(state, ordered)

    def items(self, state: ConversationState, messages: Sequence[StoredMessage]) -> list[RecallItem]:
        """Messages as they were recorded, each with the first compaction that replaced it."""
        marks = self._first_marks(state)
        loaded = self._store.load(state.tenant_id, messages)
        return [
            RecallItem(
                id=message.id,
                role=message.role,
                name=message.name,
                kind=message.kind,
                content=message.content,
                created_at=message.created_at,
                compaction_id=_replaced_by(state, marks, message),
            )
            for message in loaded
        ]

    def _replaced(self, state: ConversationState, compaction_id: str) -> list[StoredMessage]:
        """What a compaction and those before it replaced."""
        record = self._store.compaction(state, compaction_id)
        if record is None:
            raise NotFoundError
        path = branch.path_to(state.segments, record.upto)
        walked = self._store.walk(state, path, upto=record.to_message_id)
        return [message for message in walked if message.role != "notice"]

    def _first_marks(self, state: ConversationState) -> list[StoredCompaction]:
        return list(reversed(self._store.compactions(state, 10_000, None)))


def _replaced_by(state: ConversationState, marks: Sequence[StoredCompaction], message: StoredMessage) -> str | None:
    """The oldest compaction whose branch, up to its end, holds the message."""
    for mark in marks:
        if branch.on_path(branch.path_to(state.segments, mark.upto), message.position):
            return mark.id
    return None


def pages(items: Sequence[RecallItem], start: int, offset: int) -> tuple[list[RecallItem], tuple[int, int] | None]:
    """At most 16,000 characters from the item `start`, whose first `offset` characters were told; and where to go on.

    A long item is cut and continues on the next page.
    """
    page: list[RecallItem] = []
    room = RECALL_CHARACTERS
    for place in range(start, len(items)):
        item = items[place]
        rest = item.content[offset:]
        if len(rest) > room:
            if room > 0:
                page.append(item.model_copy(update={"content": rest[:room]}))
            return page, (place, offset + room)
        page.append(item.model_copy(update={"content": rest}))
        room -= len(rest)
        offset = 0
    return page, None
