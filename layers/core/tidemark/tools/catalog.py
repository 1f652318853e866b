"""Memory and past sessions as tools: what an agent may do with them, each with the scope that its token needs.

Every tool is a service call that a route makes too; names stand where a route takes ids, because a model knows names.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from tidemark.conversations.context import ContextService, pages
from tidemark.conversations.requests import RecallBody
from tidemark.conversations.service import ConversationService
from tidemark.conversations.session_search import SearchScope, SessionSearch
from tidemark.errors import InvalidError, NotFoundError, TidemarkError
from tidemark.http.problems import from_validation
from tidemark.memory.access import MemoryAccess
from tidemark.memory.entities import EntityService
from tidemark.memory.graph import MAX_SEEDS, Bounds, Direction
from tidemark.memory.managed import ManagedMemory
from tidemark.memory.model import EntityType, RelationType
from tidemark.memory.names import fold
from tidemark.memory.records import EntityBody, EntityPut, ForgetBody, RelationBody, RememberBody, StoredEntity
from tidemark.memory.remembering import Remembering
from tidemark.memory.search import SearchBody
from tidemark.requests import Body
from tidemark.tenancy.caller import Caller, Scope

Nature = Literal["reads", "adds", "changes", "deletes"]
Query = Annotated[str, Field(min_length=1, max_length=2000, pattern=r"\S", description="Words or a question, in any language.")]
ConversationId = Annotated[str, Field(description="Id of a conversation, cnv_...")]
EntityRef = Annotated[str, Field(min_length=1, max_length=255, description="Name or id of an entity.")]


class SessionSearchArguments(Body):
    query: Query
    conversation_id: Annotated[str, Field(description="The conversation that is searched from.")]
    scope: Annotated[SearchScope, Field(description="Wider scopes need user_intent.")] = "session"
    user_intent: Annotated[str | None, Field(max_length=2000, description="What the user asked for that needs older sessions.")] = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10


class SessionSummaryArguments(Body):
    conversation_id: ConversationId


class ContextFrameArguments(Body):
    conversation_id: ConversationId
    frame_id: Annotated[str | None, Field(description="A frame, frm_...; without it the newest one is read.")] = None


class RecallArguments(Body):
    conversation_id: ConversationId
    ids: Annotated[list[str] | None, Field(min_length=1, max_length=100, description="Messages or compactions, oldest first.")] = None
    query: Annotated[str | None, Field(min_length=1, max_length=2000, description="Words; the best messages come first.")] = None
    limit: Annotated[int, Field(ge=1, le=50)] = 10
    place: Annotated[str | None, Field(pattern=r"^\d{1,9}:\d{1,9}$", description="`next` of the page before.")] = None

    @model_validator(mode="after")
    def _one(self) -> "RecallArguments":
        RecallBody(ids=self.ids, query=self.query, limit=self.limit)
        return self


class SearchMemoryArguments(Body):
    query: Query
    top_k: Annotated[int, Field(ge=1, le=50)] = 5
    time_window_days: Annotated[int | None, Field(ge=1, le=36_500)] = None
    entity_type: EntityType | None = None


class SubgraphArguments(Body):
    entities: Annotated[list[EntityRef], Field(min_length=1, max_length=MAX_SEEDS)]
    max_depth: Annotated[int, Field(ge=1, le=3)] = 1
    direction: Direction = "both"
    relation_types: list[RelationType] | None = None


class RelationArguments(Body):
    source: EntityRef
    target: EntityRef
    relation_type: RelationType
    description: Annotated[str, Field(max_length=4000)] = ""


class UpdateArguments(Body):
    entity: EntityRef
    description: Annotated[str | None, Field(max_length=4000)] = None
    properties: dict[str, Any] | None = None


class CreateArguments(Body):
    name: Annotated[str, Field(min_length=1, max_length=255)]
    entity_type: EntityType
    description: Annotated[str, Field(max_length=4000)] = ""
    properties: Annotated[dict[str, Any], Field(default_factory=dict)]


class RememberArguments(Body):
    text: Annotated[str, Field(min_length=1, max_length=20_000, description="What to remember, in one or a few sentences.")]


class ForgetArguments(Body):
    query: Annotated[str | None, Field(min_length=1, max_length=2000)] = None
    ids: Annotated[list[str] | None, Field(min_length=1, max_length=100)] = None
    dry_run: Annotated[bool, Field(description="true only lists what would be deleted.")] = True


@dataclass(frozen=True, slots=True)
class Tool:
    name: str
    title: str
    description: str
    arguments: type[BaseModel]
    scope: Scope
    nature: Nature
    run: Callable[[Caller, Any], dict[str, Any]]


class Tools:
    def __init__(
        self,
        sessions: SessionSearch,
        conversations: ConversationService,
        context: ContextService,
        entities: EntityService,
        access: MemoryAccess,
        managed: ManagedMemory,
        remembering: Remembering,
    ) -> None:
        self._sessions, self._conversations, self._context = sessions, conversations, context
        self._entities, self._access, self._managed, self._remembering = entities, access, managed, remembering
        self._tools = {tool.name: tool for tool in self._catalog()}

    def offered(self, caller: Caller) -> list[Tool]:
        """The tools that the caller's token may use."""
        return [tool for tool in self._tools.values() if tool.scope in caller.scopes]

    def named(self, names: Sequence[str]) -> list[Tool]:
        return [self._tools[name] for name in names]

    def call(self, caller: Caller, name: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """What the tool answers. Raises the error of wrong arguments, and those of the service."""
        tool = self._tools.get(name)
        if tool is None:
            raise NotFoundError("There is no such tool.", code="unknown_tool")
        caller.need(tool.scope)
        try:
            given = tool.arguments.model_validate(arguments)
        except ValidationError as exc:
            raise _invalid(exc) from exc
        try:
            return tool.run(caller, given)
        except ValidationError as exc:  # a body that asks more of an argument than the tool's own schema says
            raise _invalid(exc) from exc

    def _catalog(self) -> Sequence[Tool]:
        return (
            Tool(
                "session_search", "Search past sessions",
                "Finds messages of this or earlier conversations by distinctive words. An empty result means that nothing matched.",
                SessionSearchArguments, "chat", "reads", self._session_search,
            ),
            Tool(
                "session_read_summary", "Read a session's overview",
                "Title, times, message ids and the last excerpts of a conversation.",
                SessionSummaryArguments, "chat", "reads", self._summary,
            ),
            Tool(
                "session_read_context_frame", "Read what a turn was made of",
                "The sources that stood in the request of one turn, and what was left out.",
                ContextFrameArguments, "chat", "reads", self._frame,
            ),
            Tool(
                "recall_context", "Recall replaced messages",
                "The original messages that a summary replaced: by ids of messages or compactions, or by words.",
                RecallArguments, "chat", "reads", self._recall,
            ),
            Tool(
                "search_memory", "Search memory",
                "Finds remembered facts, people, places and projects that answer a question. `abstained` means that nothing does.",
                SearchMemoryArguments, "memory:read", "reads", self._search,
            ),
            Tool(
                "get_memory_subgraph", "Read the memory graph",
                "The entities around up to five known ones, and how they are related.",
                SubgraphArguments, "memory:read", "reads", self._subgraph,
            ),
            Tool(
                "create_memory_entity", "Create an entity",
                "Stores an entity; one of the same name and type is merged with it.",
                CreateArguments, "memory:write", "adds", self._create,
            ),
            Tool(
                "create_memory_relation", "Relate two entities",
                "Stores how one known entity is related to another.",
                RelationArguments, "memory:write", "adds", self._relate,
            ),
            Tool(
                "update_memory_entity", "Update an entity",
                "Replaces an entity's description and merges its properties; the earlier version stays in its history.",
                UpdateArguments, "memory:write", "changes", self._update,
            ),
            Tool(
                "remember", "Remember",
                "Stores what the user explicitly asked to remember; it can be found at once.",
                RememberArguments, "memory:write", "adds", self._remember,
            ),
            Tool(
                "forget", "Forget",
                "Deletes memories by ids or by words. Lists the candidates unless dry_run is false.",
                ForgetArguments, "memory:write", "deletes", self._forget,
            ),
        )  # fmt: skip

    # sessions
    def _session_search(self, caller: Caller, given: SessionSearchArguments) -> dict[str, Any]:
        hits, decision = self._sessions.search(caller, given.query, given.conversation_id, given.scope, given.user_intent, None)
        return {"items": [_json(hit) for hit in hits[: given.limit]], "scope": given.scope, "decision": decision}

    def _summary(self, caller: Caller, given: SessionSummaryArguments) -> dict[str, Any]:
        return _json(self._conversations.summary(caller, given.conversation_id))

    def _frame(self, caller: Caller, given: ContextFrameArguments) -> dict[str, Any]:
        if given.frame_id is not None:
            return _json(self._context.frame(caller, given.conversation_id, given.frame_id))
        frames, _ = self._context.frames(caller, given.conversation_id, 1, None)
        if not frames:
            raise NotFoundError("This conversation has had no turn yet.")
        return _json(frames[0])

    def _recall(self, caller: Caller, given: RecallArguments) -> dict[str, Any]:
        if given.query is not None:
            items = self._sessions.recall(caller, given.conversation_id, given.query, given.limit)
        else:
            items = self._context.recalled(caller, given.conversation_id, RecallBody(ids=given.ids))
        start, offset = (int(number) for number in (given.place or "0:0").split(":"))
        page, more = pages(items, start, offset)
        return {"items": [_json(item) for item in page], "next": f"{more[0]}:{more[1]}" if more else None}

    # memory
    def _search(self, caller: Caller, given: SearchMemoryArguments) -> dict[str, Any]:
        types = [given.entity_type] if given.entity_type else None
        body = SearchBody(query=given.query, top_k=given.top_k, time_window_days=given.time_window_days, entity_types=types)
        return _json(self._managed.search(caller, body))

    def _subgraph(self, caller: Caller, given: SubgraphArguments) -> dict[str, Any]:
        seeds = [self._entity(caller, reference).id for reference in given.entities]
        bounds = Bounds(given.max_depth, given.direction, frozenset(given.relation_types or ()), 30, 100, None)
        return _json(self._entities.graph(self._access.view(caller), list(dict.fromkeys(seeds)), bounds))

    def _create(self, caller: Caller, given: CreateArguments) -> dict[str, Any]:
        entity, fresh = self._entities.upsert(caller, EntityBody(**given.model_dump()))
        return {"entity": _json(entity.public()), "created": fresh}

    def _relate(self, caller: Caller, given: RelationArguments) -> dict[str, Any]:
        self._access.scope(caller)
        body = RelationBody(
            source_entity_id=self._entity(caller, given.source).id,
            target_entity_id=self._entity(caller, given.target).id,
            relation_type=given.relation_type,
            description=given.description,
        )
        relation, fresh = self._entities.relate(caller, body)
        return {"relation": _json(relation.public()), "created": fresh}

    def _update(self, caller: Caller, given: UpdateArguments) -> dict[str, Any]:
        self._access.scope(caller)
        changes = {name: value for name in ("description", "properties") if (value := getattr(given, name)) is not None}
        entity = self._entities.put(caller, self._entity(caller, given.entity).id, EntityPut(**changes), None)
        return {"entity": _json(entity.public())}

    def _remember(self, caller: Caller, given: RememberArguments) -> dict[str, Any]:
        return _json(self._remembering.remember(caller, RememberBody(text=given.text)))

    def _forget(self, caller: Caller, given: ForgetArguments) -> dict[str, Any]:
        return _json(self._managed.forget(caller, ForgetBody(**given.model_dump())))

    def _entity(self, caller: Caller, reference: str) -> StoredEntity:
        """The entity of an id, or the one of that name. Raises NotFoundError, and InvalidError where several have the name."""
        wanted = fold(reference)
        found = [entity for entity in self._entities.found(caller) if entity.id == reference or fold(entity.name) == wanted]
        if not found:
            raise NotFoundError(f"No entity is called {reference!r}.", code="entity_not_found")
        exact = [entity for entity in found if entity.id == reference]
        if len(found) > 1 and not exact:
            ids = ", ".join(f"{entity.id} ({entity.entity_type})" for entity in found[:10])
            raise InvalidError(f"Several entities are called {reference!r}: {ids}. Name one by its id.", code="ambiguous_name")
        return (exact or found)[0]


def _json(made: BaseModel) -> dict[str, Any]:
    return made.model_dump(mode="json")


def _invalid(exc: ValidationError) -> TidemarkError:
    return from_validation([{"loc": ("body", *one["loc"]), "msg": one["msg"]} for one in exc.errors()])
