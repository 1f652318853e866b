"""Tenants, keys, agents, knowledge bases, settings, audit, usage; and every path that no other function has."""

from datetime import datetime, timedelta
from typing import Annotated, Any, Literal
from urllib.parse import urlencode

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from tidemark import bootstrap
from tidemark.errors import InvalidError
from tidemark.http.app import (
    Administrator,
    AnyCaller,
    Handler,
    IfMatch,
    answer,
    api,
    created,
    deadline,
    no_content,
    subject_of,
    tagged,
)
from tidemark.http.reference import docs_page, openapi_file
from tidemark.memory.records import Deleted, Graph, ManagedList
from tidemark.pages import Page
from tidemark.privacy import operations
from tidemark.privacy.export import next_line
from tidemark.tenancy import audit as audit_log
from tidemark.tenancy import tenants as tenancy
from tidemark.tenancy import usage as usage_log
from tidemark.tenancy.caller import Caller
from tidemark.tenancy.model import (
    Agent,
    AgentBody,
    AgentPatch,
    ApiKey,
    ApiKeyBody,
    AuditEntry,
    CreatedApiKey,
    KnowledgeBase,
    KnowledgeBaseBody,
    KnowledgeBasePatch,
    MemorySettings,
    MemorySettingsPatch,
    Operation,
    SiteSettings,
    Tenant,
    TenantBody,
    UsageAnswer,
)

app = api()
handler = Handler(app, bootstrap.settings, bootstrap.idempotency)

Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str | None, Query()]
Words = Annotated[str | None, Query(max_length=1000)]
MARGIN = timedelta(seconds=8)
Offset = Annotated[int, Query(ge=0, le=100_000_000)]


# open to everybody
@app.get("/health")
def health() -> dict[str, str]:
    return {"status": "ok"}


@app.get("/openapi.json")
def openapi() -> Response[Any]:
    return Response(200, content_type="application/json", body=openapi_file())


@app.get("/docs")
def docs() -> Response[Any]:
    return Response(200, content_type="text/html; charset=utf-8", body=docs_page())


# tenants
@app.post("/v1/tenants")
def create_tenant(body: Annotated[TenantBody, Body()], caller: AnyCaller) -> Response[Tenant]:
    return created(bootstrap.tenants().create(caller, body.name))


@app.get("/v1/tenants")
def list_tenants(caller: AnyCaller, limit: Limit = 20, cursor: Cursor = None) -> Response[Page[Tenant]]:
    return answer(bootstrap.cursors().page(cursor, ("tenants",), lambda place: bootstrap.tenants().page(caller, limit, place)))


@app.get("/v1/tenants/<tenant_id>")
def get_tenant(tenant_id: str, caller: AnyCaller) -> Response[Tenant]:
    return tagged(bootstrap.tenants().get(caller, tenant_id))


@app.patch("/v1/tenants/<tenant_id>")
def rename_tenant(tenant_id: str, body: Annotated[TenantBody, Body()], caller: AnyCaller, if_match: IfMatch) -> Response[Tenant]:
    return tagged(bootstrap.tenants().rename(caller, tenant_id, body.name, if_match))


@app.get("/v1/tenants/<tenant_id>/memory-settings")
def memory_settings(tenant_id: str, caller: AnyCaller) -> Response[MemorySettings]:
    return tagged(bootstrap.tenants().read_settings(caller, tenant_id))


@app.patch("/v1/tenants/<tenant_id>/memory-settings")
def patch_memory_settings(
    tenant_id: str, body: Annotated[MemorySettingsPatch, Body()], caller: AnyCaller, if_match: IfMatch
) -> Response[MemorySettings]:
    return tagged(bootstrap.tenants().patch_settings(caller, tenant_id, body, if_match))


@app.get("/v1/tenants/<tenant_id>/memories")
def tenant_memories(tenant_id: str, caller: AnyCaller, q: Words = None, limit: Limit = 20, offset: Offset = 0) -> Response[ManagedList]:
    memory = bootstrap.managed_memory()
    return answer(memory.page(memory.tenant_view(caller, tenant_id), q, limit, offset))


@app.get("/v1/tenants/<tenant_id>/memories/graph")
def tenant_graph(tenant_id: str, caller: AnyCaller) -> Response[Graph]:
    memory = bootstrap.managed_memory()
    return answer(memory.graph(memory.tenant_view(caller, tenant_id)))


@app.delete("/v1/tenants/<tenant_id>/memories/<memory_id>")
def delete_tenant_memory(tenant_id: str, memory_id: str, caller: AnyCaller) -> Response[Deleted]:
    memory = bootstrap.managed_memory()
    return answer(memory.delete(caller, memory.tenant_view(caller, tenant_id), memory_id))


# API keys
@app.post("/v1/tenants/<tenant_id>/api-keys")
def create_key(tenant_id: str, body: Annotated[ApiKeyBody, Body()], caller: AnyCaller) -> Response[CreatedApiKey]:
    return created(bootstrap.api_keys().create(caller, tenant_id, body))


@app.get("/v1/tenants/<tenant_id>/api-keys")
def list_keys(tenant_id: str, caller: AnyCaller, limit: Limit = 20, cursor: Cursor = None) -> Response[Page[ApiKey]]:
    of = (tenant_id, "api-keys")
    return answer(bootstrap.cursors().page(cursor, of, lambda place: bootstrap.api_keys().page(caller, tenant_id, limit, place)))


@app.delete("/v1/tenants/<tenant_id>/api-keys/<key_id>")
def revoke_key(tenant_id: str, key_id: str, caller: AnyCaller) -> Response[None]:
    bootstrap.api_keys().revoke(caller, tenant_id, key_id)
    return no_content()


# knowledge bases
@app.post("/v1/knowledge-bases")
def create_base(body: Annotated[KnowledgeBaseBody, Body()], caller: Administrator) -> Response[KnowledgeBase]:
    return created(bootstrap.knowledge_bases().create(caller, body))


@app.get("/v1/knowledge-bases")
def list_bases(caller: Administrator, limit: Limit = 20, cursor: Cursor = None) -> Response[Page[KnowledgeBase]]:
    of = (caller.tenant_id, "knowledge-bases")
    return answer(bootstrap.cursors().page(cursor, of, lambda place: bootstrap.knowledge_bases().page(caller.tenant_id, limit, place)))


@app.get("/v1/knowledge-bases/<base_id>")
def get_base(base_id: str, caller: Administrator) -> Response[KnowledgeBase]:
    return tagged(bootstrap.knowledge_bases().find(caller.tenant_id, base_id))


@app.patch("/v1/knowledge-bases/<base_id>")
def patch_base(
    base_id: str, body: Annotated[KnowledgeBasePatch, Body()], caller: Administrator, if_match: IfMatch
) -> Response[KnowledgeBase]:
    return tagged(bootstrap.knowledge_bases().patch(caller, base_id, body, if_match))


@app.delete("/v1/knowledge-bases/<base_id>")
def delete_base(base_id: str, caller: Administrator, if_match: IfMatch) -> Response[None]:
    bootstrap.erasure().erase_base(caller, base_id, if_match, handover())
    return no_content()


@app.get("/v1/knowledge-bases/<base_id>/memories")
def base_memories(base_id: str, caller: Administrator, q: Words = None, limit: Limit = 20, offset: Offset = 0) -> Response[ManagedList]:
    memory = bootstrap.managed_memory()
    return answer(memory.page(memory.base_view(caller, base_id), q, limit, offset))


@app.get("/v1/knowledge-bases/<base_id>/memories/graph")
def base_graph(base_id: str, caller: Administrator) -> Response[Graph]:
    memory = bootstrap.managed_memory()
    return answer(memory.graph(memory.base_view(caller, base_id)))


@app.delete("/v1/knowledge-bases/<base_id>/memories/<memory_id>")
def delete_base_memory(base_id: str, memory_id: str, caller: Administrator) -> Response[Deleted]:
    memory = bootstrap.managed_memory()
    return answer(memory.delete(caller, memory.base_view(caller, base_id), memory_id))


# agents
@app.post("/v1/agents")
def create_agent(body: Annotated[AgentBody, Body()], caller: Administrator) -> Response[Agent]:
    return created(bootstrap.agents().create(caller, body))


@app.get("/v1/agents")
def list_agents(caller: Administrator, limit: Limit = 20, cursor: Cursor = None) -> Response[Page[Agent]]:
    of = (caller.tenant_id, "agents")
    return answer(bootstrap.cursors().page(cursor, of, lambda place: bootstrap.agents().page(caller.tenant_id, limit, place)))


@app.get("/v1/agents/<agent_id>")
def get_agent(agent_id: str, caller: Administrator) -> Response[Agent]:
    return tagged(bootstrap.agents().find(caller.tenant_id, agent_id))


@app.patch("/v1/agents/<agent_id>")
def patch_agent(agent_id: str, body: Annotated[AgentPatch, Body()], caller: Administrator, if_match: IfMatch) -> Response[Agent]:
    return tagged(bootstrap.agents().patch(caller, agent_id, body, if_match))


@app.delete("/v1/agents/<agent_id>")
def delete_agent(agent_id: str, caller: Administrator, if_match: IfMatch) -> Response[None]:
    bootstrap.agents().delete(caller, agent_id, if_match)
    return no_content()


# people and long jobs
def handover() -> datetime:
    """When a long job has to hand over to the queue."""
    return deadline(app) - MARGIN


def named(caller: Caller) -> str:
    """The subject that the query names; without one there is nobody to export or erase."""
    if caller.external_subject_id is None:
        raise InvalidError.field("external_subject_id", "The person is named in the path or here.")
    return caller.external_subject_id


def exported(caller: Caller, subject: str, cursor: str | None, **query: str) -> Response[Any]:
    """A page of a person's export. Where it is not the last one, its last line and `Link` say how to go on."""
    of = (caller.tenant_id, "export", subject)
    page = bootstrap.exporter().export(caller, subject, bootstrap.cursors().read(cursor, *of))
    headers: dict[str, str | list[str]] = {}
    if page.next is not None:
        more = bootstrap.cursors().write(page.next, *of)
        page.lines.append(next_line(more))
        headers["Link"] = f'<?{urlencode({**query, "cursor": more})}>; rel="next"'
    return Response(200, content_type="application/x-ndjson", body="".join(f"{line}\n" for line in page.lines), headers=headers)


def operation(found: Operation) -> Response[Operation]:
    return answer(found, 202 if found.state == "running" else 200)


@app.get("/v1/subjects/export")
def export_named(caller: Administrator, cursor: Cursor = None) -> Response[Any]:
    return exported(caller, named(caller), cursor, external_subject_id=named(caller))


@app.get("/v1/subjects/<external_subject>/export")
def export_subject(external_subject: str, caller: Administrator, cursor: Cursor = None) -> Response[Any]:
    return exported(caller, subject_of(external_subject), cursor)


@app.delete("/v1/subjects")
def erase_named(caller: Administrator) -> Response[Operation]:
    return operation(bootstrap.erasure().erase_subject(caller, named(caller), handover()))


@app.delete("/v1/subjects/<external_subject>")
def erase_subject(external_subject: str, caller: Administrator) -> Response[Operation]:
    return operation(bootstrap.erasure().erase_subject(caller, subject_of(external_subject), handover()))


@app.delete("/v1/tenants/<tenant_id>")
def erase_tenant(tenant_id: str, caller: AnyCaller) -> Response[Operation]:
    return operation(bootstrap.erasure().erase_tenant(caller, tenant_id, handover()))


@app.get("/v1/operations/<operation_id>")
def get_operation(operation_id: str, caller: AnyCaller) -> Response[Operation]:
    return tagged(operations.get(caller, operation_id))


# platform settings, audit, usage
@app.get("/v1/admin/site-settings")
def site_settings(category: Annotated[Literal["memory"], Query()], caller: AnyCaller) -> Response[SiteSettings]:
    caller.need_platform()
    return tagged(SiteSettings(category=category, settings=tenancy.site_settings()))


@app.put("/v1/admin/site-settings")
def put_site_settings(
    body: Annotated[SiteSettings, Body()],
    caller: AnyCaller,
    if_match: IfMatch,
    category: Annotated[Literal["memory"] | None, Query()] = None,
) -> Response[SiteSettings]:
    return tagged(tenancy.put_site_settings(caller, body, if_match))


@app.get("/v1/audit")
def audit(caller: Administrator, limit: Limit = 20, cursor: Cursor = None) -> Response[Page[AuditEntry]]:
    of = (caller.tenant_id, "audit")
    return answer(bootstrap.cursors().page(cursor, of, lambda place: audit_log.entries(caller.tenant_id, limit, place)))


@app.get("/v1/usage")
def usage(caller: Administrator) -> Response[UsageAnswer]:
    return answer(UsageAnswer(items=usage_log.days(caller.tenant_id)))
