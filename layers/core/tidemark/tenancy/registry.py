"""Agents and knowledge bases: small named things of a tenant that are made, read, listed, changed in part and deleted alike."""

from typing import Any, ClassVar, Generic, TypeVar

from tidemark.clock import now
from tidemark.errors import ConflictError, NotFoundError
from tidemark.etags import check, etag
from tidemark.ids import is_id, new_id
from tidemark.requests import merged
from tidemark.storage import keys, table
from tidemark.storage.table import Item
from tidemark.tenancy import audit
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import Agent, AgentBody, AgentPatch, KnowledgeBase, KnowledgeBaseBody, KnowledgeBasePatch

R = TypeVar("R", Agent, KnowledgeBase)


class Registry(Generic[R]):
    model: type[R]
    prefix: ClassVar[str]
    noun: ClassVar[str]

    def _pk(self, tenant_id: str) -> str:
        raise NotImplementedError

    def find(self, tenant_id: str, id: str) -> R:
        """Raises NotFoundError for a missing and for a foreign id alike."""
        return self._item(tenant_id, id).read(self.model)

    def _item(self, tenant_id: str, id: str) -> Item:
        found = table.get((self._pk(tenant_id), id)) if is_id(id, self.prefix) else None
        if found is None:
            raise NotFoundError
        return found

    def page(self, tenant_id: str, limit: int, after: str | None) -> tuple[list[R], str | None]:
        return table.page(self._pk(tenant_id), self.model, limit, after)

    def _create(self, caller: Caller, values: dict[str, Any]) -> R:
        caller.need("admin")
        at = now()
        made = self.model.model_validate({**values, "id": new_id(self.prefix), "created_at": at, "updated_at": at})
        table.put(table.item((self._pk(caller.tenant_id), made.id), made, kind=self.noun, version=0), Item.pk.does_not_exist())
        audit.record(caller, f"{self.noun}.create", made.id)
        return made

    def _patch(self, caller: Caller, id: str, changes: dict[str, Any], if_match: str | None) -> R:
        caller.need("admin")

        def attempt() -> R:
            item = self._item(caller.tenant_id, id)
            stored = item.read(self.model)
            check(if_match, etag(stored))
            changed = self.model.model_validate({**merged(stored.model_dump(), changes), "updated_at": now()})
            table.put(
                table.item((item.pk, item.sk), changed, kind=self.noun, version=int(item.version or 0) + 1), Item.version == item.version
            )
            return changed

        changed = table.retried(attempt, "Somebody else is changing this.", 5)
        audit.record(caller, f"{self.noun}.change", id, fields=sorted(changes))
        return changed

    def check(self, caller: Caller, id: str, if_match: str | None) -> None:
        """Raises where delete() would."""
        caller.need("admin")
        stored = self.find(caller.tenant_id, id)
        check(if_match, etag(stored))
        self._may_go(stored)

    def delete(self, caller: Caller, id: str, if_match: str | None) -> None:
        self.check(caller, id, if_match)
        table.delete((self._pk(caller.tenant_id), id))
        audit.record(caller, f"{self.noun}.delete", id)

    def _may_go(self, stored: R) -> None:
        """Raises where the thing has to stay."""


class Agents(Registry[Agent]):
    model = Agent
    prefix = "agt"
    noun = "agent"

    def _pk(self, tenant_id: str) -> str:
        return keys.agents(tenant_id)

    def create(self, caller: Caller, body: AgentBody) -> Agent:
        return self._create(caller, merged({}, body.model_dump(exclude_unset=True)))

    def patch(self, caller: Caller, id: str, body: AgentPatch, if_match: str | None) -> Agent:
        return self._patch(caller, id, body.model_dump(exclude_unset=True), if_match)

    def _may_go(self, stored: Agent) -> None:
        if stored.is_default:
            raise ConflictError("The default agent of a tenant stays.", code="default_agent")


class KnowledgeBases(Registry[KnowledgeBase]):
    model = KnowledgeBase
    prefix = "kb"
    noun = "knowledge_base"

    def _pk(self, tenant_id: str) -> str:
        return keys.knowledge_bases(tenant_id)

    def create(self, caller: Caller, body: KnowledgeBaseBody) -> KnowledgeBase:
        return self._create(caller, {**merged({}, body.model_dump(exclude_unset=True)), "tenant_id": caller.tenant_id})

    def patch(self, caller: Caller, id: str, body: KnowledgeBasePatch, if_match: str | None) -> KnowledgeBase:
        return self._patch(caller, id, body.model_dump(exclude_unset=True), if_match)
