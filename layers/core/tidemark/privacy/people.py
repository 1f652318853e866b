"""What one person is in the tables: conversations, a memory scope, and what they put into restricted knowledge bases."""

from collections.abc import Iterator
from dataclasses import dataclass

from tidemark.clock import now
from tidemark.conversations.model import ConversationState
from tidemark.memory.records import StoredEntity
from tidemark.memory.scope import Scope
from tidemark.memory.store import MemoryStore, View
from tidemark.storage import keys
from tidemark.storage.table import Item


@dataclass(frozen=True, slots=True)
class Person:
    tenant_id: str
    external_subject_id: str

    @property
    def scope(self) -> Scope:
        return Scope(kind="subject", external_subject_id=self.external_subject_id)

    def conversations(self) -> Iterator[ConversationState]:
        """All of them, those that are being deleted included."""
        pk = keys.conversations_of(self.tenant_id, keys.owner(self.external_subject_id))
        for item in Item.by_owner.query(pk):
            yield item.read(ConversationState)

    def shared(self, store: MemoryStore, conversations: list[ConversationState]) -> Iterator[StoredEntity]:
        """Memories of restricted knowledge bases that came from this person's conversations."""
        mine = {one.id for one in conversations}
        for base in {one.knowledge_base_id for one in conversations if one.knowledge_base_id}:
            scope = Scope(kind="knowledge_base", knowledge_base_id=base)
            for entity in store.entities(View(self.tenant_id, scope), now(), include_expired=True):
                if any(source.conversation_id in mine for source in entity.provenance):
                    yield entity
