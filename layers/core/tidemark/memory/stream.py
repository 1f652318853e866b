"""The reader of the table's stream: brings what changed to the index, in order, as often as the stream repeats it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from aws_lambda_powertools.metrics import MetricUnit

from tidemark.clock import now
from tidemark.conversations.model import ConversationState, StoredMessage
from tidemark.conversations.store import ConversationStore, messages_in
from tidemark.memory.indexing import Indexing, entity_document, stored_document
from tidemark.memory.records import StoredEntity
from tidemark.observability import logger, measure, where
from tidemark.search.documents import EARLIER_TURNS
from tidemark.search.port import Document
from tidemark.work import Embed, WorkQueue

VECTOR_SECONDS = 3.0  # of one batch; the stream's next records wait behind it
EMBED_TOGETHER = 16


@dataclass(frozen=True, slots=True)
class Event:
    """One record of the stream: the item before and after, None where there is none; `written` is when the table took the change."""

    sequence: str
    old: Mapping[str, Any] | None
    new: Mapping[str, Any] | None
    written: datetime | None = None


@dataclass
class _Batch:
    """What a run of records comes to; a later record of the same thing stands for the earlier ones."""

    documents: dict[str, Document] = field(default_factory=dict)
    removed: dict[str, list[str]] = field(default_factory=dict)
    ended: list[tuple[str, StoredEntity]] = field(default_factory=list)
    conversations: list[tuple[str, str]] = field(default_factory=list)
    states: dict[tuple[str, str], ConversationState | None] = field(default_factory=dict)

    def put(self, document: Document) -> None:
        self.documents[document.id] = document
        if gone := self.removed.get(document.tenant_id):  # deleted and brought back
            self.removed[document.tenant_id] = [id for id in gone if id != document.id]

    def remove(self, tenant_id: str, id: str) -> None:
        self.documents.pop(id, None)
        self.removed.setdefault(tenant_id, []).append(id)

    def remove_conversation(self, tenant_id: str, conversation_id: str) -> None:
        self.documents = {id: one for id, one in self.documents.items() if one.conversation_id != conversation_id or one.kind == "memory"}
        self.conversations.append((tenant_id, conversation_id))


class StreamIndexer:
    """`ended` is told of each memory that the table dropped at its time: what it leaves behind has to go too."""

    def __init__(
        self,
        store: ConversationStore,
        indexing: Indexing,
        queue: WorkQueue,
        ended: Callable[[str, StoredEntity], None] = lambda tenant_id, entity: None,
    ) -> None:
        self._store, self._indexing, self._queue, self._ended = store, indexing, queue, ended

    def apply(self, events: Iterable[Event]) -> str | None:
        """Indexes a batch. The sequence of the first record that could not be read, from which the stream goes on; None when all were.

        Raises SearchUnavailableError while the index is away: the whole batch comes again.
        """
        batch, failed, written = _Batch(), None, list[datetime]()
        for event in events:
            try:
                self._read(event, batch)
            except Exception as exc:  # noqa: BLE001 - one poison record must not stop those in front of it
                logger.error("stream record not indexed", error=type(exc).__name__, where=where(exc), sequence=event.sequence)
                failed = event.sequence
                break
            if event.written is not None:
                written.append(event.written)
        late = self._indexing.put(list(batch.documents.values()), VECTOR_SECONDS)
        self._indexing.remove(batch.removed)
        for tenant_id, conversation_id in batch.conversations:
            self._indexing.remove_conversation(tenant_id, conversation_id)
        for tenant_id, entity in batch.ended:
            self._ended(tenant_id, entity)
        self._embed_later(late)
        if written:
            measure("IndexLag", max(0.0, (now() - min(written)).total_seconds()), MetricUnit.Seconds)
        return failed

    def _embed_later(self, documents: Sequence[Document]) -> None:
        """Hands on what lacks its vector, so that a long transcript does not hold up what comes behind it in the stream."""
        by_conversation: dict[tuple[str, str], list[str]] = {}
        for one in documents:
            by_conversation.setdefault((one.tenant_id, one.conversation_id), []).append(one.id)
        for (tenant_id, conversation_id), ids in by_conversation.items():
            for start in range(0, len(ids), EMBED_TOGETHER):
                part = ids[start : start + EMBED_TOGETHER]
                self._queue.send(Embed(tenant_id=tenant_id, conversation_id=conversation_id, message_ids=part))

    def embed(self, message: Embed) -> None:
        """Gives messages of one conversation their vectors."""
        state = self._store.get(message.tenant_id, message.conversation_id)
        if state is None or state.state != "active":
            return
        found = self._store.messages(message.tenant_id, [(state.id, id) for id in message.message_ids])
        documents = [stored_document(state, one, self._earlier(state, one)) for one in self._store.load(state.tenant_id, found)]
        self._indexing.put(documents)

    def _read(self, event: Event, batch: _Batch) -> None:
        item = event.new or event.old or {}
        tenant_id = str(item["pk"]).partition("#")[0]
        kind = item.get("kind")
        if kind == "entity":
            self._entity(tenant_id, event, batch)
        elif kind == "messages" and event.new is not None and event.old is None:
            self._messages(tenant_id, event.new, batch)
        elif kind == "conversation":
            conversation_id = str(item["pk"]).rpartition("#")[2]
            gone = event.new is None or ConversationState.model_validate_json(event.new["data"]).state == "deleting"
            if gone:
                batch.remove_conversation(tenant_id, conversation_id)

    @staticmethod
    def _entity(tenant_id: str, event: Event, batch: _Batch) -> None:
        entity = StoredEntity.model_validate_json((event.new or event.old or {})["data"])
        if event.new is None or entity.deleted_at is not None:
            batch.remove(tenant_id, entity.id)
            if event.new is None and not entity.alive(now()):  # dropped by TTL, thirty days after its end
                batch.ended.append((tenant_id, entity))
        elif event.old is None or event.old.get("data") != event.new.get("data"):  # else only a counter moved
            batch.put(entity_document(tenant_id, entity))

    def _messages(self, tenant_id: str, item: Mapping[str, Any], batch: _Batch) -> None:
        conversation_id = str(item["pk"]).rpartition("#")[2]
        state = self._state(tenant_id, conversation_id, batch)
        if state is None or state.state != "active":
            return
        stored = messages_in(str(item["data"]))
        earlier = self._earlier(state, stored[0])
        for message in self._store.load(tenant_id, stored):
            if message.role in ("user", "assistant") and message.content.strip():
                batch.put(stored_document(state, message, earlier))
                earlier = [*earlier, message][-EARLIER_TURNS:]

    def _state(self, tenant_id: str, conversation_id: str, batch: _Batch) -> ConversationState | None:
        key = (tenant_id, conversation_id)
        if key not in batch.states:
            batch.states[key] = self._store.get(tenant_id, conversation_id)
        return batch.states[key]

    def _earlier(self, state: ConversationState, first: StoredMessage) -> list[StoredMessage]:
        """The turns in front of a message on its branch, oldest first."""
        wanted: list[StoredMessage] = []
        above = first.parent_id
        while above is not None and len(wanted) < EARLIER_TURNS:
            message = self._store.message(state, above)
            if message is None:
                break
            if message.role in ("user", "assistant"):
                wanted.append(message)
            above = message.parent_id
        return self._store.load(state.tenant_id, wanted[::-1])
