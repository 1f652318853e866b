"""Tenants and their memory settings."""

from collections.abc import Callable
from typing import Any

from tidemark.clock import iso, now
from tidemark.errors import NotFoundError
from tidemark.etags import check, etag
from tidemark.ids import is_id, new_id
from tidemark.requests import merged
from tidemark.storage import keys, table
from tidemark.storage.table import Item
from tidemark.tenancy import audit
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import (
    DEFAULT_SITE_SETTINGS,
    Agent,
    MemorySettings,
    MemorySettingsPatch,
    MemorySiteSettings,
    SiteSettings,
    StoredTenant,
    Tenant,
    memory_settings,
)

Changes = Callable[[StoredTenant], dict[str, Any]]


def public(tenant: StoredTenant) -> Tenant:
    return Tenant.model_validate(tenant.model_dump(include=set(Tenant.model_fields)))


class TenantService:
    """What the platform's administrator does with tenants, and what a tenant's does with its settings."""

    def create(self, caller: Caller, name: str) -> Tenant:
        """A new tenant with its default agent."""
        caller.need_platform()
        at = now()
        agent = Agent(id=new_id("agt"), name="Default", enable_memory=True, is_default=True, created_at=at, updated_at=at)
        tenant = StoredTenant(id=new_id("ten"), name=name, created_at=at, default_agent_id=agent.id)
        with table.transaction() as write:
            write.save(self._item(tenant, 0), condition=Item.pk.does_not_exist())
            write.save(table.item((keys.agents(tenant.id), agent.id), agent, kind="agent", version=0))
            write.save(audit.entry_item(caller, tenant.id, "tenant.create", tenant.id, "allow", {}))
        return public(tenant)

    @staticmethod
    def _item(tenant: StoredTenant, version: int) -> Item:
        return table.item(
            keys.tenant(tenant.id),
            tenant,
            kind="tenant",
            version=version,
            gsi2pk=keys.tenant_list(),
            gsi2sk=f"{iso(tenant.created_at)}#{tenant.id}",
        )

    def _stored(self, tenant_id: str) -> Item:
        found = table.get(keys.tenant(tenant_id)) if is_id(tenant_id, "ten") else None
        if found is None:
            raise NotFoundError
        return found

    def stored(self, tenant_id: str) -> StoredTenant:
        return self._stored(tenant_id).read(StoredTenant)

    def get(self, caller: Caller, tenant_id: str) -> Tenant:
        caller.need_platform()
        return public(self.stored(tenant_id))

    def page(self, caller: Caller, limit: int, after: str | None) -> tuple[list[Tenant], str | None]:
        """In the order of their making."""
        caller.need_platform()
        condition = Item.gsi2sk > after if after else None
        found = list(Item.by_tenant.query(keys.tenant_list(), condition, limit=limit + 1))
        return [public(item.read(StoredTenant)) for item in found[:limit]], found[limit - 1].gsi2sk if len(found) > limit else None

    def rename(self, caller: Caller, tenant_id: str, name: str, if_match: str | None) -> Tenant:
        caller.need_platform()

        def changes(stored: StoredTenant) -> dict[str, Any]:
            check(if_match, etag(public(stored)))
            return {"name": name}

        tenant = self._change(tenant_id, changes)
        audit.record(caller, "tenant.rename", tenant_id, tenant_id=tenant_id)
        return public(tenant)

    def _change(self, tenant_id: str, changes: Changes) -> StoredTenant:
        def attempt() -> StoredTenant:
            item = self._stored(tenant_id)
            stored = item.read(StoredTenant)
            changed = stored.model_copy(update=changes(stored))
            table.put(self._item(changed, int(item.version or 0) + 1), Item.version == item.version)
            return changed

        return table.retried(attempt, "Somebody else is changing this tenant.", 5)

    def close(self, tenant_id: str) -> None:
        """From now on no token of the tenant opens anything. Raises NotFoundError."""
        self._change(tenant_id, lambda stored: {"state": "deleting"})

    def erase(self, tenant_id: str) -> int:
        table.delete(keys.tenant(tenant_id))
        return 1

    def raise_token_factor(self, tenant_id: str, model_id: str, factor: float) -> None:
        """Remembers that a model's provider counts more tokens than was known. It never falls: a count is rather over than under."""

        def changes(stored: StoredTenant) -> dict[str, Any]:
            return {"token_factors": {**stored.token_factors, model_id: max(factor, stored.token_factors.get(model_id, 0.0))}}

        self._change(tenant_id, changes)

    # settings
    def settings(self, tenant_id: str) -> MemorySettings:
        """The memory settings in force."""
        return memory_settings(self.stored(tenant_id).memory_settings, site_settings())

    def read_settings(self, caller: Caller, tenant_id: str) -> MemorySettings:
        caller.need_administrator(tenant_id)
        return self.settings(tenant_id)

    def patch_settings(self, caller: Caller, tenant_id: str, patch: MemorySettingsPatch, if_match: str | None) -> MemorySettings:
        caller.need_administrator(tenant_id)
        given = patch.model_dump(exclude_unset=True)

        def changes(stored: StoredTenant) -> dict[str, Any]:
            check(if_match, etag(memory_settings(stored.memory_settings, site_settings())))
            return {"memory_settings": merged(stored.memory_settings, given)}

        tenant = self._change(tenant_id, changes)
        audit.record(caller, "memory_settings.change", f"{tenant_id}/memory-settings", tenant_id=tenant_id, fields=sorted(given))
        return memory_settings(tenant.memory_settings, site_settings())


def site_settings() -> MemorySiteSettings:
    return table.read(keys.site_settings("memory"), MemorySiteSettings) or DEFAULT_SITE_SETTINGS


def put_site_settings(caller: Caller, body: SiteSettings, if_match: str | None) -> SiteSettings:
    caller.need_platform()
    check(if_match, etag(SiteSettings(category=body.category, settings=site_settings())))
    table.put(table.item(keys.site_settings(body.category), body.settings, kind="site_settings"))
    audit.record(caller, "site_settings.change", f"site-settings/{body.category}")
    return body
