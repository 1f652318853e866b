"""Memory as its keepers see it: search and forgetting over a view, and the management lists of a tenant or a restricted knowledge base."""

from collections.abc import Sequence

from tidemark.clock import now
from tidemark.errors import ConflictError, NotFoundError
from tidemark.memory.access import MemoryAccess
from tidemark.memory.entities import EntityService
from tidemark.memory.graph import Bounds
from tidemark.memory.indexing import Indexing
from tidemark.memory.records import Deleted, ForgetBody, Forgotten, Graph, ManagedList, StoredEntity
from tidemark.memory.scope import TENANT, Scope
from tidemark.memory.search import MemorySearch, SearchAnswer, SearchBody
from tidemark.memory.store import MemoryStore, View
from tidemark.tenancy import audit
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.registry import KnowledgeBases

FORGET_CANDIDATES = 10
FORGET_SHARE = 0.6  # of the best hit's score: what is less like the query is not meant


class ManagedMemory:
    def __init__(
        self,
        entities: EntityService,
        access: MemoryAccess,
        knowledge_bases: KnowledgeBases,
        search: MemorySearch,
        store: MemoryStore,
        indexing: Indexing,
    ) -> None:
        self._entities, self._access, self._bases = entities, access, knowledge_bases
        self._search, self._store, self._indexing = search, store, indexing

    # search and forgetting
    def search(self, caller: Caller, body: SearchBody) -> SearchAnswer:
        """What answers a question in the caller's memory; without a scope it abstains."""
        settings = self._access.settings(caller)
        view = self._access.view(caller, settings)
        scopes = self._scopes(view)
        owners = [(scope.key, scope.key) for scope in scopes if scope.kind != "knowledge_base"]
        return self._search.search(view, scopes, owners, body, settings)

    def _scopes(self, view: View) -> list[Scope]:
        """The scopes that a view covers."""
        if view.scope is None:
            return []
        if not view.whole_tenant:
            return [view.scope]
        found = {entity.scope.key: entity.scope for entity in self._store.entities(view, now())}
        return list({TENANT.key: TENANT, **found}.values())

    def forget(self, caller: Caller, body: ForgetBody) -> Forgotten:
        """What a query or ids stand for, and with dry_run false its deletion; both runs choose alike."""
        self._access.scope(caller)
        if body.ids is not None:
            chosen = self._entities.living(self._access.view(caller), body.ids)
        else:
            chosen = self._by_query(caller, body.query or "")
        deleted = 0
        if not body.dry_run and chosen:
            deleted = self._entities.remove(caller.tenant_id, caller.actor, chosen).deleted
            self._unindex(caller.tenant_id, chosen)
        return Forgotten(dry_run=body.dry_run, candidates=[entity.public() for entity in chosen], deleted=deleted)

    def _by_query(self, caller: Caller, query: str) -> list[StoredEntity]:
        settings = self._access.settings(caller)
        view = self._access.view(caller, settings)
        hits = self._search.memories(view.tenant_id, self._scopes(view), self._search.question(query), settings, limit=FORGET_CANDIDATES)
        best = max((hit.ranked.similarity for hit in hits), default=0.0)
        return [hit.entity for hit in hits if hit.ranked.similarity >= FORGET_SHARE * best]

    def _unindex(self, tenant_id: str, entities: Sequence[StoredEntity]) -> None:
        self._indexing.remove_quietly(tenant_id, [entity.id for entity in entities])

    # the management routes
    def tenant_view(self, caller: Caller, tenant_id: str) -> View:
        caller.need_administrator(tenant_id)
        self._access.need_tenant(tenant_id)
        return View(tenant_id, TENANT, whole_tenant=True)

    def base_view(self, caller: Caller, knowledge_base_id: str) -> View:
        """Raises ConflictError unless the knowledge base has a scope of its own."""
        caller.need("admin")
        base = self._bases.find(caller.tenant_id, knowledge_base_id)
        if base.kbMemoryMode != "kb_restricted":
            raise ConflictError("This knowledge base has no memory of its own.", code="knowledge_base_not_restricted")
        return View(caller.tenant_id, Scope(kind="knowledge_base", knowledge_base_id=base.id))

    def page(self, view: View, q: str | None, limit: int, offset: int) -> ManagedList:
        found = self._entities.listed(view, q=q)
        page = found[offset : offset + limit]
        return ManagedList(items=[entity.public() for entity in page], total=len(found), limit=limit, offset=offset)

    def graph(self, view: View) -> Graph:
        return self._entities.graph(view, [], Bounds(max_nodes=100, max_relations=500))

    def delete(self, caller: Caller, view: View, memory_id: str) -> Deleted:
        """Deletes one memory of a view. Raises NotFoundError."""
        found = self._entities.living(view, [memory_id])
        if not found:
            raise NotFoundError
        done = self._entities.remove(view.tenant_id, caller.actor, found)
        self._unindex(view.tenant_id, found)
        audit.record(caller, "memory.delete", memory_id, tenant_id=view.tenant_id)
        return done
