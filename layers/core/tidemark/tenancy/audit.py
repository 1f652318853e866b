"""Who did what, and whether it was allowed. Append-only; ids and decisions, never content."""

from typing import Any

from tidemark.clock import now
from tidemark.ids import new_id
from tidemark.storage import keys, table
from tidemark.storage.table import Item
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import AuditEntry


def entry_item(caller: Caller, tenant_id: str | None, action: str, resource: str, decision: str, details: dict[str, Any]) -> Item:
    entry = AuditEntry(id=new_id("aud"), at=now(), actor=caller.actor, action=action, resource=resource, decision=decision, details=details)
    return table.item((keys.audit(tenant_id), entry.id), entry, kind="audit")


def record(caller: Caller, action: str, resource: str, *, decision: str = "allow", tenant_id: str | None = None, **details: Any) -> None:
    table.put(entry_item(caller, tenant_id or caller.tenant_id or None, action, resource, decision, details))


def entries(tenant_id: str, limit: int, after: str | None) -> tuple[list[AuditEntry], str | None]:
    """Newest first."""
    return table.page(keys.audit(tenant_id), AuditEntry, limit, after, newest_first=True)
