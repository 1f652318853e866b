"""Which view of memory a call has: the settings of its tenant, the mode of its knowledge base, and what it names."""

from tidemark.errors import ConflictError
from tidemark.memory.scope import Scope, resolve
from tidemark.memory.store import View
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import MemorySettings
from tidemark.tenancy.registry import KnowledgeBases
from tidemark.tenancy.tenants import TenantService


class MemoryAccess:
    def __init__(self, tenants: TenantService, knowledge_bases: KnowledgeBases) -> None:
        self._tenants, self._bases = tenants, knowledge_bases

    def need_tenant(self, tenant_id: str) -> None:
        """Raises NotFoundError for a tenant that is not there, which only the platform's administrator can name."""
        self._tenants.stored(tenant_id)

    def settings(self, caller: Caller) -> MemorySettings:
        return self._tenants.settings(caller.tenant_id)

    def view(self, caller: Caller, settings: MemorySettings | None = None) -> View:
        """What the call may read. Raises NotFoundError for a knowledge base that is not there."""
        settings = settings or self.settings(caller)
        base = self._bases.find(caller.tenant_id, caller.knowledge_base_id) if caller.knowledge_base_id is not None else None
        scope = resolve(
            dashboard=caller.is_dashboard,
            external_subject_id=caller.external_subject_id,
            knowledge_base_id=caller.knowledge_base_id,
            kb_mode=base.kbMemoryMode if base else None,
            mode=settings.mode,
        )
        whole = scope is not None and scope.kind == "tenant"
        return View(caller.tenant_id, scope, whole)

    def scope(self, caller: Caller, settings: MemorySettings | None = None) -> Scope:
        """Where the call writes. Raises ConflictError where durable memory is skipped for this caller."""
        scope = self.view(caller, settings).scope
        if scope is None:
            raise ConflictError("There is no durable memory for this caller here.", code="memory_scope_unavailable")
        return scope
