"""Keeping the derived index true to the table: what a stored thing looks like as a document, and how it gets there."""

import json
import math
import time
from collections.abc import Callable, Mapping, Sequence

from tidemark.conversations.model import ConversationState, StoredMessage
from tidemark.memory.records import StoredEntity
from tidemark.models.ports import Embedder, ModelError
from tidemark.observability import measure
from tidemark.search.documents import EARLIER_TURNS, Turn, memory_document, message_document, with_vectors
from tidemark.search.port import Document, IndexModelMismatchError, SearchIndex, SearchUnavailableError
from tidemark.storage import keys

AWAY = (SearchUnavailableError, IndexModelMismatchError)
# What users ask for by a word that the statement about them leaves out: "lives at 12 Harbour Street" is a home address.
ASKED_BY = {
    "home": "home address",
    "employer": "employer",
    "job": "occupation",
    "name": "name",
    "age": "age",
    "civil status": "marital status",
}
CHUNK = 8  # vectors made and stored together


def entity_document(tenant_id: str, entity: StoredEntity) -> Document:
    source = entity.provenance[-1] if entity.provenance else None
    subject = entity.subject.name if entity.subject and entity.subject.name else ""
    return memory_document(
        id=entity.id,
        tenant_id=tenant_id,
        scope=entity.scope.key,
        name=entity.name,
        description=entity.description,
        entity_type=entity.entity_type,
        aliases=entity.aliases,
        about=ASKED_BY.get(entity.exclusive or "", "") if entity.subject and entity.subject.kind == "user" else "",
        subject=subject,
        properties=json.dumps(entity.properties, ensure_ascii=False) if entity.properties else "",
        speaker=(source.speaker or "") if source else "",
        conversation_id=entity.source_conversation_id or "",
        occurred_at=entity.valid_from or entity.created_at,
        updated_at=entity.updated_at,
    )


def turn_of(message: StoredMessage) -> Turn:
    return Turn(speaker=message.name or message.role, text=message.content)


def stored_document(state: ConversationState, message: StoredMessage, earlier: Sequence[StoredMessage]) -> Document:
    """A message with the turns of its own sitting that stand in front of it."""
    sitting = [one for one in earlier if one.session == message.session][-EARLIER_TURNS:]
    return message_document(
        id=message.id,
        tenant_id=state.tenant_id,
        scope=keys.owner(state.external_subject_id),
        text=message.content,
        speaker=message.name or message.role,
        role=message.role,
        created_at=message.created_at,
        conversation_id=message.conversation_id,
        sequence=message.sequence,
        session=message.session,
        workspace_id=state.workspace_id or "",
        earlier=[turn_of(one) for one in sitting],
    )


class Indexing:
    def __init__(self, index: Callable[[], SearchIndex], embedder: Callable[[], Embedder]) -> None:
        self._index, self._embedder = index, embedder

    def put(self, documents: Sequence[Document], seconds: float = math.inf, *, at_once: bool = False) -> list[Document]:
        """Stores documents, findable by their words at once, then their vectors, memories first.

        Vectors are made for about so many seconds; those that still lack theirs are returned. `at_once` for who must find them with
        the very next search. Raises SearchUnavailableError.
        """
        if not documents:
            return []
        index = self._index()
        index.upsert(documents)
        waiting = sorted(documents, key=lambda one: one.kind)  # a memory is short and asked for first
        started = time.monotonic()
        while waiting and time.monotonic() - started < seconds:
            index.upsert(with_vectors(waiting[:CHUNK], self._embedder()), at_once=at_once)
            waiting = waiting[CHUNK:]
        return waiting

    def put_now(self, tenant_id: str, entities: Sequence[StoredEntity]) -> None:
        """On the request path, for what has to be found by the very next request. The stream brings it again where this fails."""
        try:
            self.put([entity_document(tenant_id, entity) for entity in entities if entity.deleted_at is None], at_once=True)
        except (*AWAY, ModelError):
            measure("IndexingDeferred", len(entities))

    def remove_quietly(self, tenant_id: str, ids: Sequence[str]) -> None:
        """On the request path: the table has forgotten already, the stream's reader finishes what fails here."""
        try:
            self._index().delete(tenant_id, ids)
        except AWAY:
            measure("IndexingDeferred", len(ids))

    def remove(self, removed: Mapping[str, Sequence[str]]) -> None:
        """Removes documents by tenant."""
        for tenant_id, ids in removed.items():
            self._index().delete(tenant_id, ids)

    def remove_conversation(self, tenant_id: str, conversation_id: str) -> None:
        self._index().delete_conversation(tenant_id, conversation_id)

    def remove_scope(self, tenant_id: str, scope: str | None) -> None:
        self._index().delete_scope(tenant_id, scope)
