"""Reading the part of a branch that a request is made of."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice

from tidemark.conversations import branch
from tidemark.conversations.branch import Position
from tidemark.conversations.budget import newest_that_fit
from tidemark.conversations.model import CompactionMark, ConversationState, StoredCompaction, StoredMessage
from tidemark.conversations.store import ConversationStore
from tidemark.errors import NotFoundError

RECENT = 8  # messages in which the words are looked for that a turn leans on


@dataclass(frozen=True, slots=True)
class Base:
    """Where a turn continues: the message behind which it is appended, and that message's branch."""

    parent: Position | None
    parent_id: str | None
    tokens: int  # of the branch up to and with the parent
    path: dict[int, int]
    open_calls: tuple[str, ...] = ()
    follows_head: bool = False  # no parent was named: whatever is newest when the turn is stored


@dataclass(frozen=True, slots=True)
class Window:
    """What of a branch a request holds: the newest summary on it, the words kept beside it, and the messages behind it."""

    compaction: StoredCompaction | None
    kept: tuple[StoredMessage, ...]
    tail: tuple[StoredMessage, ...]
    dropped: tuple[StoredMessage, ...] = ()  # kept words for which this request has no room


def without_room(window: Window, tokens: int) -> Window:
    """The window with no more kept words than fit so many tokens."""
    kept = tuple(newest_that_fit(window.kept, tokens))
    dropped = tuple(message for message in window.kept if message not in kept)
    return replace(window, kept=kept, dropped=dropped)


def head(state: ConversationState) -> Base:
    """The active branch."""
    path = branch.path_to(state.segments, state.head)
    return Base(state.head, state.head_message_id, state.branch_tokens, path, tuple(state.open_calls), follows_head=True)


def _newest_mark(state: ConversationState, path: branch.Path) -> CompactionMark | None:
    return next((mark for mark in reversed(state.compactions) if branch.on_path(path, mark.upto)), None)


def in_tail(state: ConversationState, path: branch.Path, message: StoredMessage) -> bool:
    """Whether the next request of a branch holds a message word for word, behind the newest summary."""
    mark = _newest_mark(state, path)
    return branch.on_path(path, message.position) and (mark is None or message.sequence > mark.upto.sequence)


class History:
    def __init__(self, store: ConversationStore) -> None:
        self._store = store

    def base(self, state: ConversationState, given: bool, parent_id: str | None) -> Base:
        """The branch of a named parent (None, given, starts a new root), else the active one. Raises NotFoundError."""
        if not given:
            return head(state)
        if parent_id is None:
            return Base(None, None, 0, {})
        parent = self._store.message(state, parent_id)
        if parent is None:
            raise NotFoundError
        path = branch.path_to(state.segments, parent.position)
        return Base(parent.position, parent.id, parent.branch_tokens, path, self._open_calls(state, parent, path))

    def _open_calls(self, state: ConversationState, parent: StoredMessage, path: branch.Path) -> tuple[str, ...]:
        """The calls of the round in which a message stands that it and those before it did not answer."""
        answered: set[str] = set()
        for message in self._store.walk(state, path, upto=parent.id, newest_first=True, page=8):
            if message.kind == "tool_calls":
                return tuple(call.id for call in message.tool_calls if call.id not in answered)
            if message.role == "tool" and message.tool_call_id:
                answered.add(message.tool_call_id)
            elif message.role != "notice":
                break
        return ()

    def compaction(self, state: ConversationState, path: branch.Path) -> StoredCompaction | None:
        """The newest compaction whose end lies on the branch; those of other branches do not count."""
        mark = _newest_mark(state, path)
        return self._store.compaction(state, mark.id) if mark else None

    def window(self, state: ConversationState, base: Base, compaction: StoredCompaction | None) -> Window:
        """The summary's words and the messages behind it, with their texts, without notices."""
        after = compaction.to_message_id if compaction else None
        tail = [] if base.parent_id is None else self._tail(state, base, after)
        kept = self._store.messages(state.tenant_id, [(state.id, id) for id in compaction.kept_message_ids]) if compaction else []
        loaded = self._store.load(state.tenant_id, [*kept, *tail])
        return Window(compaction, tuple(loaded[: len(kept)]), tuple(loaded[len(kept) :]))

    def recent(self, state: ConversationState, base: Base) -> Iterator[StoredMessage]:
        """The newest messages of users and assistants on a branch, with their texts, newest first."""
        if base.parent_id is None:
            return
        found = self._store.walk(state, base.path, upto=base.parent_id, newest_first=True, page=RECENT)
        spoken = [message for message in islice(found, RECENT) if message.role in ("user", "assistant")]
        yield from self._store.load(state.tenant_id, spoken)

    def _tail(self, state: ConversationState, base: Base, after: str | None) -> list[StoredMessage]:
        found = self._store.walk(state, base.path, after=after, upto=base.parent_id)
        return [message for message in found if message.role != "notice"]
