"""Conversations and their messages in DynamoDB.

Messages that are appended together share an item, so that an import of 100 messages and the conversation's new head are one
transaction of at most 100 items. The item's key is the first 25 digits of its messages' ids, and new keys sort behind old ones: one
range read gives a stretch of the conversation, and an id gives its item.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import TypeVar

from pydantic import BaseModel, TypeAdapter
from pynamodb.transactions import TransactWrite

from tidemark import ids
from tidemark.clock import iso, now
from tidemark.concurrency import side_by_side
from tidemark.conversations import branch
from tidemark.conversations.branch import Position
from tidemark.conversations.model import (
    ConversationState,
    Draft,
    Frame,
    StoredCompaction,
    StoredMessage,
    TurnRecord,
)
from tidemark.conversations.sittings import sitting
from tidemark.errors import ConflictError
from tidemark.models.ports import Attachment
from tidemark.privacy import traces
from tidemark.storage import keys, table
from tidemark.storage.blobs import Blobs
from tidemark.storage.table import Item

INLINE_BYTES = 30_000  # a larger message goes to the bucket: 100 smaller ones fit one transaction's 4 MB
ITEM_BYTES = 100_000  # of the messages that share one item
ITEMS_PER_APPEND = 90  # of the 100 actions of a transaction; the others are the conversation, its turn and its frame
_MESSAGES = TypeAdapter(list[StoredMessage])
R = TypeVar("R", bound=BaseModel)


class _Blob(BaseModel):
    content: str
    attachments: list[Attachment]


class ConversationStore:
    def __init__(self, blobs: Blobs) -> None:
        self._blobs = blobs

    # the conversation itself
    def create(self, state: ConversationState) -> None:
        table.put(self._meta(state), Item.pk.does_not_exist())

    def get(self, tenant_id: str, conversation_id: str) -> ConversationState | None:
        if not ids.is_id(conversation_id, "cnv"):
            return None
        return table.read((keys.conversation(tenant_id, conversation_id), keys.META), ConversationState)

    def update(self, state: ConversationState, /, **changes: object) -> ConversationState:
        """Writes the conversation anew unless somebody else did since it was read. Raises StaleError."""
        changed = state.model_copy(update={**changes, "version": state.version + 1})
        table.put(self._meta(changed), Item.version == state.version)
        return changed

    def change(self, write: TransactWrite, state: ConversationState, /, **changes: object) -> None:
        """The same as a part of a transaction."""
        changed = state.model_copy(update={**changes, "version": state.version + 1})
        write.save(self._meta(changed), condition=Item.version == state.version)

    @staticmethod
    def _meta(state: ConversationState) -> Item:
        activity = f"{iso(state.last_activity_at)}#{state.id}"
        due = {"gsi3pk": keys.due(state.tenant_id), "gsi3sk": f"{iso(state.extract_at)}#{state.id}"} if state.extract_at else {}
        return table.item(
            (keys.conversation(state.tenant_id, state.id), keys.META),
            state,
            kind="conversation",
            version=state.version,
            gsi1pk=keys.conversations_of(state.tenant_id, keys.owner(state.external_subject_id)),
            gsi1sk=activity,
            gsi2pk=keys.conversations(state.tenant_id),
            gsi2sk=activity,
            **due,
        )

    def recent(
        self,
        tenant_id: str,
        owner: str | None,
        accept: Callable[[ConversationState], bool],
        limit: int,
        before: str | None,
    ) -> tuple[list[ConversationState], str | None]:
        """Newest activity first; the second value is where the next page begins."""
        page, more = table.newest(
            keys.conversations_of(tenant_id, owner) if owner is not None else None,
            keys.conversations(tenant_id),
            ConversationState,
            lambda state: state.state == "active" and accept(state),
            limit,
            before,
        )
        last = f"{iso(page[-1].last_activity_at)}#{page[-1].id}" if more else None
        return page, last

    def delete(self, state: ConversationState) -> int:
        """Erases everything of a conversation, and tells how many stored answers went. Its own item goes last: a retry goes on."""
        pk = keys.conversation(state.tenant_id, state.id)
        answers = traces.erase(state.tenant_id, pk, self._blobs)
        self._blobs.delete_prefix(f"{state.tenant_id}/{state.id}/")
        for prefix in (keys.MESSAGES, keys.TURNS, keys.FRAMES, keys.COMPACTIONS, keys.JOBS):
            table.delete_partition(pk, prefix)
        table.delete((pk, keys.META))
        return answers

    # messages
    def append(
        self,
        state: ConversationState,
        parent: Position | None,
        parent_id: str | None,
        drafts: Sequence[Draft],
        *,
        turn_id: str | None = None,
        also: Callable[[TransactWrite, Sequence[StoredMessage]], None] | None = None,
        branch_tokens: int = 0,
        first_key: str | None = None,
        changes: Mapping[str, object] | None = None,
    ) -> tuple[ConversationState, list[StoredMessage]]:
        """Appends behind `parent`, moves the head, and does `also` in the same transaction. Raises StaleError when another was first.

        `branch_tokens` are those of the branch up to and with `parent`; `first_key` is a key from new_key() that the messages are to have.
        """
        first = state.message_count + 1
        segments, number = branch.extended(state.segments, parent, first, state.message_count + len(drafts))
        if len(segments) > branch.MAX_SEGMENTS:
            raise ConflictError(f"A conversation has at most {branch.MAX_SEGMENTS} branches.", code="too_many_branches")
        batches = list(_batches(drafts))
        stored: list[StoredMessage] = []
        items: list[Item] = []
        key, above, tokens = state.last_item_key, parent_id, branch_tokens
        session, newest = state.session, state.last_message_at
        for batch in batches:
            key = first_key if first_key and not stored and first_key > (key or "") else ids.new_item_key(key)
            packed: list[StoredMessage] = []
            for place, draft in enumerate(batch):
                # a turn that another one overtook began before what it now stands behind
                at = draft.created_at if newest is None else max(draft.created_at, newest)
                session = sitting(session, newest, at)
                newest = at
                tokens += draft.tokens + draft.attachment_tokens
                message = StoredMessage(
                    id=ids.message_id(key, place),
                    conversation_id=state.id,
                    parent_id=above,
                    sequence=first + len(stored),
                    turn_id=turn_id,
                    segment=number,
                    branch_tokens=tokens,
                    session=session,
                    characters=len(draft.content),
                    **{**draft.model_dump(), "created_at": at},
                )
                above = message.id
                stored.append(message)
                packed.append(message)
            items.append(self._item(state, key, packed))
        head = stored[-1]
        changed = state.model_copy(
            update={
                "version": state.version + 1,
                "segments": segments,
                "head": head.position,
                "head_message_id": head.id,
                "last_item_key": key,
                "message_count": state.message_count + len(stored),
                "branch_tokens": tokens,
                "session": session,
                "last_message_at": newest,
                "open_calls": _open_calls(state, stored),
                "last_activity_at": max(now(), state.last_activity_at),
                **(changes or {}),
            }
        )
        with table.transaction() as write:
            write.save(self._meta(changed), condition=Item.version == state.version)
            for item in items:
                write.save(item, condition=Item.pk.does_not_exist())
            if also is not None:
                also(write, stored)
        return changed, stored

    def _item(self, state: ConversationState, key: str, messages: Sequence[StoredMessage]) -> Item:
        kept = [self._outsourced(state.tenant_id, message) for message in messages]
        return Item(
            keys.conversation(state.tenant_id, state.id),
            f"{keys.MESSAGES}{key}",
            kind="messages",
            data=_MESSAGES.dump_json(kept).decode(),
        )

    def _outsourced(self, tenant_id: str, message: StoredMessage) -> StoredMessage:
        text = _Blob(content=message.content, attachments=message.attachments).model_dump_json()
        if len(text.encode()) <= INLINE_BYTES:
            return message
        # written before the transaction: a crash leaves an object that nobody names, never a name without its object
        self._blobs.put(self._blob_key(tenant_id, message), text)
        return message.model_copy(update={"content": "", "attachments": [], "blob": True})

    @staticmethod
    def _blob_key(tenant_id: str, message: StoredMessage) -> str:
        return f"{tenant_id}/{message.conversation_id}/{message.id}"

    def load(self, tenant_id: str, messages: Sequence[StoredMessage]) -> list[StoredMessage]:
        """The messages with their texts, those from the bucket read side by side."""
        far = [message for message in messages if message.blob]
        if not far:
            return list(messages)
        texts = dict(zip((message.id for message in far), side_by_side(partial(self._fetch, tenant_id), far), strict=True))
        return [
            message.model_copy(update={"content": texts[message.id].content, "attachments": texts[message.id].attachments})
            if message.id in texts
            else message
            for message in messages
        ]

    def _fetch(self, tenant_id: str, message: StoredMessage) -> _Blob:
        return _Blob.model_validate_json(self._blobs.get(self._blob_key(tenant_id, message)))

    def message(self, state: ConversationState, message_id: str) -> StoredMessage | None:
        """One message of this conversation, without a text from the bucket."""
        found = self.messages(state.tenant_id, [(state.id, message_id)])
        return found[0] if found else None

    def messages(self, tenant_id: str, wanted: Sequence[tuple[str, str]]) -> list[StoredMessage]:
        """Those of the (conversation, message) ids that exist, in the given order."""
        known = [(conversation, id) for conversation, id in wanted if ids.is_id(id, "msg")]
        found: dict[str, StoredMessage] = {}
        for item in table.get_many([self._key(tenant_id, conversation, ids.item_key(id)) for conversation, id in known]):
            found.update((message.id, message) for message in read_messages(item))
        return [found[id] for conversation, id in known if id in found and found[id].conversation_id == conversation]

    @staticmethod
    def _key(tenant_id: str, conversation_id: str, item_key: str) -> tuple[str, str]:
        return keys.conversation(tenant_id, conversation_id), f"{keys.MESSAGES}{item_key}"

    def walk(
        self,
        state: ConversationState,
        path: branch.Path | None,
        *,
        after: str | None = None,
        upto: str | None = None,
        newest_first: bool = False,
        page: int | None = None,
    ) -> Iterator[StoredMessage]:
        """Messages on a path (or of the whole tree), behind `after`, up to and with `upto` (message ids), without the bucket's texts."""
        low = f"{keys.MESSAGES}{ids.item_key(after)}" if after else keys.MESSAGES
        high = f"{keys.MESSAGES}{ids.item_key(upto)}" if upto else f"{keys.MESSAGES}~"
        found = Item.query(
            keys.conversation(state.tenant_id, state.id),
            Item.sk.between(low, high),
            consistent_read=True,
            scan_index_forward=not newest_first,
            page_size=page,
        )
        for item in found:
            packed = read_messages(item)
            for message in reversed(packed) if newest_first else packed:
                inside = (after is None or message.id > after) and (upto is None or message.id <= upto)
                if inside and (path is None or branch.on_path(path, message.position)):
                    yield message

    # turns
    def put_turn(self, tenant_id: str, turn: TurnRecord) -> None:
        table.put(self.turn_item(tenant_id, turn))

    @staticmethod
    def turn_item(tenant_id: str, turn: TurnRecord) -> Item:
        return table.item((keys.conversation(tenant_id, turn.conversation_id), f"{keys.TURNS}{turn.turn_id}"), turn, kind="turn")

    def get_turn(self, tenant_id: str, conversation_id: str, turn_id: str) -> TurnRecord | None:
        if not ids.is_id(turn_id, "trn"):
            return None
        return table.read((keys.conversation(tenant_id, conversation_id), f"{keys.TURNS}{turn_id}"), TurnRecord)

    # frames
    @staticmethod
    def frame_item(tenant_id: str, frame: Frame) -> Item:
        return table.item((keys.conversation(tenant_id, frame.conversation_id), f"{keys.FRAMES}{frame.id}"), frame, kind="frame")

    def frames(self, state: ConversationState, limit: int, before: str | None) -> list[Frame]:
        """Newest first."""
        return self._page(state, keys.FRAMES, Frame, limit, before)

    def frame(self, state: ConversationState, frame_id: str) -> Frame | None:
        if not ids.is_id(frame_id, "frm"):
            return None
        return table.read((keys.conversation(state.tenant_id, state.id), f"{keys.FRAMES}{frame_id}"), Frame)

    # compactions
    def add_compaction(self, state: ConversationState, compaction: StoredCompaction, /, **changes: object) -> ConversationState:
        """The record and the watermark in one transaction. Raises StaleError when the conversation changed meanwhile."""
        changed = state.model_copy(update={**changes, "version": state.version + 1})
        new = table.item(
            (keys.conversation(state.tenant_id, state.id), f"{keys.COMPACTIONS}{compaction.id}"), compaction, kind="compaction"
        )
        with table.transaction() as write:
            write.save(self._meta(changed), condition=Item.version == state.version)
            write.save(new, condition=Item.pk.does_not_exist())
        return changed

    def compaction(self, state: ConversationState, compaction_id: str) -> StoredCompaction | None:
        if not ids.is_id(compaction_id, "cmp"):
            return None
        return table.read((keys.conversation(state.tenant_id, state.id), f"{keys.COMPACTIONS}{compaction_id}"), StoredCompaction)

    def compactions(self, state: ConversationState, limit: int, before: str | None) -> list[StoredCompaction]:
        """Newest first."""
        return self._page(state, keys.COMPACTIONS, StoredCompaction, limit, before)

    @staticmethod
    def _page(state: ConversationState, prefix: str, model: type[R], limit: int, before: str | None) -> list[R]:
        pk = keys.conversation(state.tenant_id, state.id)
        condition = Item.sk.between(prefix, f"{prefix}{before}") if before else Item.sk.startswith(prefix)
        found = Item.query(pk, condition, consistent_read=True, scan_index_forward=False, limit=limit + bool(before))
        return [item.read(model) for item in found if item.sk != f"{prefix}{before}"][:limit]


def _open_calls(state: ConversationState, stored: Sequence[StoredMessage]) -> list[str]:
    """The calls that wait at the new head; a notice changes nothing about them."""
    said = [message for message in stored if message.role != "notice"]
    if not said:
        return state.open_calls
    return [call.id for call in said[-1].tool_calls] if said[-1].kind == "tool_calls" else []


def read_messages(item: Item) -> list[StoredMessage]:
    return messages_in(item.data)


def messages_in(data: str) -> list[StoredMessage]:
    """The messages of an item's data, as they were appended."""
    return _MESSAGES.validate_json(data)


def _batches(drafts: Sequence[Draft]) -> Iterable[list[Draft]]:
    """Neighbours that share an item: as few together as the number of items allows, within an item's size."""
    most = min(ids.SLOTS, max(2, -(-len(drafts) // (ITEMS_PER_APPEND // 2))))
    batch: list[Draft] = []
    size = 0
    for draft in drafts:
        weight = min(INLINE_BYTES, 4 * len(draft.content) + 1000)
        if batch and (len(batch) == most or size + weight > ITEM_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(draft)
        size += weight
    if batch:
        yield batch
