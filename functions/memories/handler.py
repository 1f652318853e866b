"""Durable memory: entities, relations, graph, search, explicit memory, extraction jobs."""

from typing import Annotated

from aws_lambda_powertools.event_handler import Response
from aws_lambda_powertools.event_handler.openapi.params import Body, Query
from tidemark import bootstrap
from tidemark.clock import Time
from tidemark.errors import InvalidError
from tidemark.http.app import Handler, IfMatch, MemoryReader, MemoryWriter, answer, api, created, tagged
from tidemark.memory.entities import entity_tag
from tidemark.memory.extraction import Job, State
from tidemark.memory.graph import MAX_SEEDS, Bounds, Direction
from tidemark.memory.model import EntityType, RelationType
from tidemark.memory.records import (
    BatchDeleteBody,
    BatchDeleted,
    Deleted,
    Entity,
    EntityBody,
    EntityList,
    EntityPut,
    EntityView,
    ForgetBody,
    Forgotten,
    Graph,
    HistoryEntry,
    Relation,
    RelationBody,
    RememberBody,
    Remembered,
    RestoreBody,
)
from tidemark.memory.search import SearchAnswer, SearchBody
from tidemark.pages import Page
from tidemark.storage import keys

app = api()
handler = Handler(app, bootstrap.settings, bootstrap.idempotency)

Limit = Annotated[int, Query(ge=1, le=100)]
Cursor = Annotated[str | None, Query()]


@app.get("/v1/memories/entities")
def list_entities(
    caller: MemoryReader,
    entity_type: Annotated[list[EntityType] | None, Query()] = None,
    q: Annotated[str | None, Query(max_length=1000)] = None,
    include_expired: Annotated[bool, Query()] = False,
    page: Annotated[int, Query(ge=1, le=1_000_000)] = 1,
    page_size: Limit = 20,
) -> Response[EntityList]:
    found = bootstrap.entities().found(caller, types=entity_type or (), q=q, include_expired=include_expired)
    items = found[(page - 1) * page_size : page * page_size]
    public = [entity.public() for entity in items]
    return answer(EntityList(items=public, total=len(found), page=page, page_size=page_size))


@app.post("/v1/memories/entities")
def upsert(body: Annotated[EntityBody, Body()], caller: MemoryWriter) -> Response[Entity]:
    entity, fresh = bootstrap.entities().upsert(caller, body)
    return tagged(entity.public(), 201 if fresh else 200, entity_tag(entity))


@app.get("/v1/memories/entities/<entity_id>")
def get(
    entity_id: str,
    caller: MemoryReader,
    include_expired: Annotated[bool, Query()] = False,
    as_of: Annotated[Time | None, Query()] = None,
) -> Response[EntityView]:
    view, tag = bootstrap.entities().get(caller, entity_id, include_expired=include_expired, as_of=as_of)
    return tagged(view, tag=tag)


@app.put("/v1/memories/entities/<entity_id>")
def put(entity_id: str, body: Annotated[EntityPut, Body()], caller: MemoryWriter, if_match: IfMatch) -> Response[Entity]:
    entity = bootstrap.entities().put(caller, entity_id, body, if_match)
    return tagged(entity.public(), tag=entity_tag(entity))


@app.delete("/v1/memories/entities/<entity_id>")
def delete(entity_id: str, caller: MemoryWriter, if_match: IfMatch) -> Response[Deleted]:
    return answer(bootstrap.entities().delete(caller, entity_id, if_match))


@app.post("/v1/memories/entities/batch-delete")
def batch_delete(body: Annotated[BatchDeleteBody, Body()], caller: MemoryWriter) -> Response[BatchDeleted]:
    return answer(bootstrap.entities().batch_delete(caller, body))


@app.get("/v1/memories/entities/<entity_id>/history")
def history(entity_id: str, caller: MemoryReader, limit: Limit = 20, cursor: Cursor = None) -> Response[Page[HistoryEntry]]:
    of = (caller.tenant_id, "history", entity_id)
    start = int(bootstrap.cursors().read(cursor, *of) or 0)
    told = bootstrap.entities().history(caller, entity_id)
    more = bootstrap.cursors().write(str(start + limit), *of) if len(told) > start + limit else None
    return answer(Page(items=told[start : start + limit], next_cursor=more))


@app.post("/v1/memories/entities/<entity_id>/restore")
def restore(entity_id: str, body: Annotated[RestoreBody, Body()], caller: MemoryWriter) -> Response[Entity]:
    entity = bootstrap.entities().restore(caller, entity_id, body.version)
    return tagged(entity.public(), tag=entity_tag(entity))


@app.get("/v1/memories/relations")
def list_relations(
    caller: MemoryReader,
    entity_id: Annotated[str | None, Query()] = None,
    relation_type: Annotated[RelationType | None, Query()] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response[Page[Relation]]:
    of = (caller.tenant_id, "relations", caller.external_subject_id, caller.knowledge_base_id, entity_id, relation_type)
    after = bootstrap.cursors().read(cursor, *of)
    found = bootstrap.entities().relations(caller, entity_id=entity_id, relation_type=relation_type)
    rest = [one for one in found if after is None or one.id > after]
    page = [one.public() for one in rest[:limit]]
    more = bootstrap.cursors().write(page[-1].id, *of) if len(rest) > limit else None
    return answer(Page(items=page, next_cursor=more))


@app.post("/v1/memories/relations")
def relate(body: Annotated[RelationBody, Body()], caller: MemoryWriter) -> Response[Relation]:
    relation, fresh = bootstrap.entities().relate(caller, body)
    return created(relation.public()) if fresh else answer(relation.public())


@app.delete("/v1/memories/relations/<relation_id>")
def unrelate(relation_id: str, caller: MemoryWriter) -> Response[Deleted]:
    return answer(bootstrap.entities().unrelate(caller, relation_id))


@app.get("/v1/memories/graph")
def graph(
    caller: MemoryReader,
    entity_ids: Annotated[list[str] | None, Query()] = None,
    max_depth: Annotated[int, Query(ge=1, le=3)] = 1,
    direction: Annotated[Direction, Query()] = "both",
    relation_types: Annotated[list[RelationType] | None, Query()] = None,
    max_nodes: Annotated[int, Query(ge=1, le=100)] = 30,
    max_relations: Annotated[int, Query(ge=1, le=500)] = 100,
    as_of: Annotated[Time | None, Query()] = None,
) -> Response[Graph]:
    seeds = entity_ids or []
    if len(seeds) > MAX_SEEDS:
        raise InvalidError.field("entity_ids", f"At most {MAX_SEEDS} seeds are allowed.")
    bounds = Bounds(max_depth, direction, frozenset(relation_types or ()), max_nodes, max_relations, as_of)
    return answer(bootstrap.entities().graph(bootstrap.memory_access().view(caller), seeds, bounds))


@app.post("/v1/memories/search")
def search(body: Annotated[SearchBody, Body()], caller: MemoryReader) -> Response[SearchAnswer]:
    return answer(bootstrap.managed_memory().search(caller, body))


@app.post("/v1/memories/remember")
def remember(body: Annotated[RememberBody, Body()], caller: MemoryWriter) -> Response[Remembered]:
    return created(bootstrap.remembering().remember(caller, body))


@app.post("/v1/memories/forget")
def forget(body: Annotated[ForgetBody, Body()], caller: MemoryWriter) -> Response[Forgotten]:
    return answer(bootstrap.managed_memory().forget(caller, body))


@app.get("/v1/extractions")
def extractions(
    caller: MemoryReader,
    conversation_id: Annotated[str | None, Query()] = None,
    state: Annotated[State | None, Query()] = None,
    limit: Limit = 20,
    cursor: Cursor = None,
) -> Response[Page[Job]]:
    def accept(job: Job) -> bool:
        return conversation_id in (None, job.conversation_id) and state in (None, job.state)

    of = (caller.tenant_id, "extractions", caller.external_subject_id, conversation_id, state)
    owner = None if caller.lists_whole_tenant else keys.owner(caller.external_subject_id)
    return answer(
        bootstrap.cursors().page(cursor, of, lambda place: bootstrap.extraction().jobs(caller.tenant_id, owner, accept, limit, place))
    )
