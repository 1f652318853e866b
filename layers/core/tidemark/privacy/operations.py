"""Long jobs: what they do, how far they are, and the receipt of what they did."""

from typing import Literal

from tidemark.clock import now
from tidemark.errors import NotFoundError
from tidemark.ids import is_id, new_id
from tidemark.storage import keys, table
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import Operation, Receipt

Kind = Literal["erase_subject", "erase_knowledge_base", "erase_tenant"]


class StoredOperation(Operation):
    """An operation with whom it is about, so that another worker can go on with it."""

    tenant_id: str
    external_subject_id: str | None = None
    knowledge_base_id: str | None = None

    @property
    def home(self) -> str | None:
        """The tenant whose operation it is; a tenant's own erasure is the platform's."""
        return None if self.kind == "erase_tenant" else self.tenant_id

    def public(self) -> Operation:
        return Operation.model_validate(self.model_dump(include=set(Operation.model_fields)))


def new(kind: Kind, tenant_id: str, **about: str) -> StoredOperation:
    """An operation that is not saved yet. `about`: external_subject_id or knowledge_base_id."""
    return StoredOperation.model_validate(
        {
            "id": new_id("op"),
            "kind": kind,
            "state": "running",
            "receipt": Receipt(counts={}),
            "created_at": now(),
            "tenant_id": tenant_id,
            **about,
        }
    )


def save(operation: StoredOperation) -> None:
    table.put(table.item((keys.operations(operation.home), operation.id), operation, kind="operation"))


def find(tenant_id: str | None, operation_id: str) -> StoredOperation | None:
    if not is_id(operation_id, "op"):
        return None
    return table.read((keys.operations(tenant_id), operation_id), StoredOperation)


def get(caller: Caller, operation_id: str) -> Operation:
    """An operation of the caller's tenant, or the platform's. Raises NotFoundError."""
    if not caller.is_platform:
        caller.need("admin")
    found = find(None if caller.is_platform else caller.tenant_id, operation_id)
    if found is None:
        raise NotFoundError
    return found.public()
