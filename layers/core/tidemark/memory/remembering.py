"""Explicit memory: what somebody asked to remember, stored and searchable before the answer."""

from tidemark.clock import now
from tidemark.errors import ConflictError, InvalidError
from tidemark.memory import explicit
from tidemark.memory.access import MemoryAccess
from tidemark.memory.entities import NeedSource
from tidemark.memory.explicit import ExplicitRequest
from tidemark.memory.indexing import Indexing
from tidemark.memory.learning import Learned, Learning
from tidemark.memory.model import SourceMessage
from tidemark.memory.records import RememberBody, Remembered
from tidemark.memory.scope import Scope
from tidemark.memory.store import MemoryStore, View
from tidemark.tenancy.caller import Actor, Caller
from tidemark.tenancy.model import MemorySettings


class Remembering:
    def __init__(self, store: MemoryStore, learning: Learning, indexing: Indexing, access: MemoryAccess, need_source: NeedSource) -> None:
        self._store, self._learning, self._indexing, self._access = store, learning, indexing, access
        self._need_source = need_source

    def remember(self, caller: Caller, body: RememberBody) -> Remembered:
        """Stores the facts of a text. Raises ConflictError without a scope or with retention none, InvalidError without content."""
        settings = self._access.settings(caller)
        scope = self._access.scope(caller, settings)
        if settings.retention == "none":
            raise ConflictError("This tenant stores no memories.", code="retention_none")
        self._need_source(caller, body.source_conversation_id, None)
        request = explicit.request_of(body.text)
        if request is None:
            raise InvalidError.field("/text", "There is nothing to remember in this text.")
        message = SourceMessage(
            id="", conversation_id=body.source_conversation_id or "", role="user", content=body.text, at=now(), trust="explicit"
        )
        learned = self.store(caller.tenant_id, scope, request, message, caller.actor, settings)
        if not learned.entities and learned.refused:
            raise InvalidError.field("/text", "Credentials are not remembered.", code="secret_refused")
        return Remembered(
            entities=[entity.public() for entity in learned.entities],
            relations=[relation.public() for relation in learned.relations],
            confirmation=explicit.confirmation(request),
        )

    def store(
        self,
        tenant_id: str,
        scope: Scope,
        request: ExplicitRequest,
        message: SourceMessage,
        actor: Actor,
        settings: MemorySettings,
    ) -> Learned:
        statements = explicit.statements(request, message, self.known(tenant_id, scope), settings.secrets)
        messages = {message.id: message}
        learned = self._learning.learn(tenant_id, scope, statements, messages, actor, settings)
        if not statements:
            learned.refused += 1  # the whole of it was a credential
        self._indexing.put_now(tenant_id, learned.changed)
        return learned

    def known(self, tenant_id: str, scope: Scope) -> dict[str, str]:
        """What persons of this scope are called: names, and the roles that are known of them."""
        found: dict[str, str] = {}
        for entity in self._store.entities(View(tenant_id, scope), now()):
            if entity.entity_type == "person":
                found[entity.name] = entity.name
            role, person = entity.properties.get("role"), entity.properties.get("person")
            if isinstance(role, str) and isinstance(person, str):
                found[role] = person
        return found
