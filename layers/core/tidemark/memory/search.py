"""Recall: hybrid search over facts and raw messages of one scope, ranked, with abstention.

The index only proposes. Every hit is read again from DynamoDB before it is used, so that what was deleted, closed, expired or belongs to
somebody else can never be answered, however late the index is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tidemark.clock import Time, now
from tidemark.conversations.model import StoredMessage
from tidemark.conversations.store import ConversationStore
from tidemark.memory.calibration import Calibration
from tidemark.memory.dates import TimeFilter, time_filter
from tidemark.memory.graph import MAX_SEEDS, Bounds, Direction, Edges, walk
from tidemark.memory.model import EntityType
from tidemark.memory.ranking import (
    MEMORY_CANDIDATES,
    MESSAGE_CANDIDATES,
    MESSAGE_NEIGHBOURS,
    MatchedBy,
    MemoryWeights,
    MessageWeights,
    Ranked,
    rank_memories,
    rank_messages,
    select,
)
from tidemark.memory.records import Entity, Graph, StoredEntity
from tidemark.memory.scope import Scope
from tidemark.memory.store import MemoryStore, View
from tidemark.models.ports import Embedder, ModelError
from tidemark.observability import measure
from tidemark.requests import Body, Number
from tidemark.search import asking
from tidemark.search.port import Candidate, Query, SearchIndex, SearchUnavailableError
from tidemark.storage.table import StaleError
from tidemark.tenancy.model import MemorySettings

IDENTIFIER = re.compile(r"(?=.*\d)[\w.@:/#+-]+|[\w.+-]+@[\w.-]+")
QueryText = Annotated[str, StringConstraints(min_length=1, max_length=20_000, pattern=r"\S")]


class SearchBody(Body):
    query: QueryText
    top_k: int = Field(default=10, ge=1, le=50)
    time_window_days: int | None = Field(default=None, ge=1, le=36_500)
    entity_types: list[EntityType] | None = None
    max_depth: int = Field(default=1, ge=1, le=3)
    direction: Direction = "both"
    as_of: Time | None = None
    min_score: Number | None = Field(default=None, ge=0, le=1)
    sources: list[Literal["memories", "messages"]] | None = Field(default=None, min_length=1, max_length=2)
    speaker: Annotated[str, StringConstraints(min_length=1, max_length=255)] | None = None


class Record(BaseModel):
    model_config = ConfigDict(frozen=True)


class SearchItem(Record):
    entity: Entity
    score: float
    similarity: float
    lexical: float
    recency: float
    matched_by: list[MatchedBy]


class MessageHit(Record):
    message_id: str
    conversation_id: str
    role: str
    name: str | None
    created_at: Time
    text: str
    score: float
    matched_by: list[MatchedBy]


class TimeSpan(Record):
    model_config = ConfigDict(frozen=True, serialize_by_alias=True, validate_by_name=True)

    start: Time | None = Field(default=None, alias="from")
    end: Time | None = Field(default=None, alias="to")
    phrase: str


class SearchAnswer(Record):
    items: list[SearchItem]
    messages: list[MessageHit]
    subgraph: Graph
    abstained: bool
    time_filter: TimeSpan | None


@dataclass(frozen=True, slots=True)
class Hit:
    """A ranked fact, read from the table."""

    entity: StoredEntity
    ranked: Ranked


@dataclass(frozen=True, slots=True)
class MessageFound:
    message: StoredMessage
    ranked: Ranked


@dataclass(frozen=True, slots=True)
class Question:
    """One query, embedded once."""

    text: str
    at: datetime
    vector: list[float] | None = None
    span: TimeFilter | None = None
    excluded_conversations: frozenset[str] = field(default_factory=frozenset)


class MemorySearch:
    def __init__(
        self,
        index: Callable[[], SearchIndex],
        embedder: Callable[[], Embedder],
        calibration: Callable[[], Calibration],
        store: MemoryStore,
        conversations: ConversationStore,
    ) -> None:
        self._index, self._embedder, self._calibration = index, embedder, calibration
        self._store, self._conversations = store, conversations

    def question(self, text: str, at: datetime | None = None) -> Question:
        """Without an embedder the words alone are searched."""
        moment = at or now()
        vector: list[float] | None = None
        try:
            vector = self._embedder().embed_query(text)
        except (SearchUnavailableError, ModelError):
            measure("EmbedderUnavailable")
        span = time_filter(text, moment)
        if span is not None and span.session is not None and span.session < 0:
            span = None  # counted from the end, which needs the sessions of one conversation
        return Question(text, moment, vector, span)

    # facts
    def memories(
        self,
        tenant_id: str,
        scopes: Sequence[Scope],
        question: Question,
        settings: MemorySettings,
        *,
        limit: int,
        types: Sequence[EntityType] = (),
        time_window_days: int | None = None,
        as_of: datetime | None = None,
        min_score: float = 0.0,
        speaker: str | None = None,
    ) -> list[Hit]:
        """The facts that answer a question, best first; empty is abstention."""
        at = as_of or question.at
        window = time_window_days or settings.time_window_days
        since = question.at - timedelta(days=window) if window else None
        candidates: list[Candidate] = []
        entities: dict[str, StoredEntity] = {}
        for scope in scopes:
            found = asking.candidates(
                self._index,
                Query(
                    tenant_id, scope.key, "memory", question.text, MEMORY_CANDIDATES, question.vector,
                    entity_types=types, updated_from=since, speaker=speaker,
                )
            )  # fmt: skip
            stored = self._store.many(tenant_id, scope, [one.id for one in found])
            visible = self._visible(tenant_id, scope, stored, at, as_of is not None, since)
            entities |= visible
            candidates += [one for one in found if one.id in visible]
        named = holding(question.text, {one.id: _words_of(entities[one.id]) for one in candidates})
        candidates = [one for one in candidates if not named or one.id in named]
        calibration = self._calibration()
        weights = MemoryWeights(settings.half_life_days, settings.recency_weight, min_score)
        fresh = [_dated(one, entities[one.id].updated_at) for one in candidates]
        ranked = rank_memories(fresh, calibration, calibration.background_of(question.vector), question.at, weights)
        texts = {id: f"{entity.name} {entity.description}" for id, entity in entities.items()}
        return [Hit(entities[one.candidate.id], one) for one in select(ranked, texts, limit)]

    def _visible(
        self,
        tenant_id: str,
        scope: Scope,
        stored: Mapping[str, StoredEntity],
        at: datetime,
        past: bool,
        since: datetime | None,
    ) -> dict[str, StoredEntity]:
        clock = now()
        visible: dict[str, StoredEntity] = {}
        for id, entity in stored.items():
            if not entity.alive(clock) or not entity.holds(at) or (since is not None and entity.updated_at < since):
                continue
            if entity.mention and not self._still_named(tenant_id, scope, entity, at):
                continue
            visible[id] = entity
        return visible

    def _still_named(self, tenant_id: str, scope: Scope, entity: StoredEntity, at: datetime) -> bool:
        """Whether a statement that names the entity holds; one that nothing was ever said of is found by its own name."""
        relations = self._store.relations_at(tenant_id, scope, entity.id)
        return not relations or any(relation.holds(at) for relation in relations)

    # raw messages
    def messages(
        self, tenant_id: str, owners: Sequence[tuple[str, str]], question: Question, *, limit: int, speaker: str | None = None
    ) -> list[MessageFound]:
        """Messages that answer a question, best first. `owners` are pairs of whose messages are searched and which memory scope they
        have to belong to: what was said without memory is not recalled by it."""
        calibration, span = self._calibration(), question.span
        found: list[MessageFound] = []
        for owner, scope in owners:
            candidates = asking.candidates(
                self._index,
                Query(
                    tenant_id, owner, "message", question.text, MESSAGE_CANDIDATES, question.vector,
                    speaker=speaker, neighbours=MESSAGE_NEIGHBOURS,
                    occurred_from=span.start if span else None, occurred_to=span.end if span else None,
                    session=span.session if span else None,
                )
            )  # fmt: skip
            # a question about a time is answered from that time, whatever its words
            weights = MessageWeights(abstain=span is None)
            ranked = rank_messages(candidates, question.text, calibration, calibration.background_of(question.vector), weights)
            found += self._read(tenant_id, scope, question, ranked, limit)
        return sorted(found, key=lambda one: -one.ranked.score)[:limit]

    def _read(self, tenant_id: str, scope: str, question: Question, ranked: Sequence[Ranked], limit: int) -> list[MessageFound]:
        """The messages behind the hits, as the table has them."""
        wanted = [one for one in ranked if one.candidate.conversation_id not in question.excluded_conversations][: limit * 2]
        stored = self._conversations.messages(tenant_id, [(one.candidate.conversation_id, one.candidate.id) for one in wanted])
        forgotten = self._store.forgotten(tenant_id, scope, [message.id for message in stored])
        mine = {message.id: message for message in stored if message.scope == scope and not message.derived and message.id not in forgotten}
        kept = [one for one in wanted if one.candidate.id in mine][:limit]
        loaded = self._conversations.load(tenant_id, [mine[one.candidate.id] for one in kept])
        return [MessageFound(message, one) for message, one in zip(loaded, kept, strict=True)]

    # the whole answer of POST /v1/memories/search
    def search(
        self, view: View, scopes: Sequence[Scope], owners: Sequence[tuple[str, str]], body: SearchBody, settings: MemorySettings
    ) -> SearchAnswer:
        sources = body.sources or ["memories"]
        question = self.question(body.query)
        hits: list[Hit] = []
        if "memories" in sources:
            hits = self.memories(
                view.tenant_id, scopes, question, settings,
                limit=body.top_k, types=body.entity_types or (), time_window_days=body.time_window_days,
                as_of=body.as_of, min_score=body.min_score or 0.0, speaker=body.speaker,
            )  # fmt: skip
        found: list[MessageFound] = []
        if "messages" in sources:
            found = self.messages(view.tenant_id, owners, question, limit=body.top_k, speaker=body.speaker)
            found = [one for one in found if one.ranked.score >= (body.min_score or 0.0)]
        self.count_access(view.tenant_id, hits)
        span = question.span
        return SearchAnswer(
            items=[_item(hit) for hit in hits],
            messages=[_message_hit(one) for one in found],
            subgraph=self.subgraph(view.tenant_id, hits, body.max_depth, body.direction, body.as_of, body.time_window_days),
            abstained=not hits and not found,
            time_filter=TimeSpan(start=span.start, end=span.end, phrase=span.phrase) if span else None,
        )

    def subgraph(
        self,
        tenant_id: str,
        hits: Sequence[Hit],
        depth: int,
        direction: Direction,
        as_of: datetime | None = None,
        window_days: int | None = None,
    ) -> Graph:
        """What stands around the best hits, within the caps; the time window holds for neighbours too."""
        if not hits:
            return Graph(entities=[], relations=[], truncated=False)
        clock = now()
        scope = hits[0].entity.scope
        seeds = [hit.entity.id for hit in hits if hit.entity.scope == scope][:MAX_SEEDS]
        relations = {one.id: one for seed in seeds for one in self._store.relations_at(tenant_id, scope, seed)}
        frontier = {end for one in relations.values() for end in (one.source_entity_id, one.target_entity_id)} - set(seeds)
        for _ in range(depth - 1):
            more = {one.id: one for end in frontier for one in self._store.relations_at(tenant_id, scope, end)}
            frontier = {end for one in more.values() for end in (one.source_entity_id, one.target_entity_id)} - frontier - set(seeds)
            relations |= more
        ends = {end for one in relations.values() for end in (one.source_entity_id, one.target_entity_id)}
        since = clock - timedelta(days=window_days) if window_days else None
        entities = {
            id: entity
            for id, entity in self._store.many(tenant_id, scope, {*seeds, *ends}).items()
            if entity.alive(clock) and (since is None or entity.updated_at >= since)
        }
        bounds = Bounds(max_depth=depth, direction=direction, as_of=as_of)
        return walk([seed for seed in seeds if seed in entities], entities, Edges(relations.values()), bounds, as_of or clock)

    def count_access(self, tenant_id: str, hits: Sequence[Hit]) -> None:
        """Counted for what was answered; a hit that was deleted meanwhile costs the count, never the answer."""
        if hits:
            with suppress(StaleError):
                self._store.count_access(tenant_id, [hit.entity for hit in hits], now())


def identifiers(query: str) -> list[str]:
    """The codes, addresses and numbers of a query that consists of nothing else."""
    words = query.split()
    return words if words and all(IDENTIFIER.fullmatch(word) for word in words) else []


def holding(query: str, texts: Mapping[str, str]) -> set[str]:
    """The texts that hold every identifier of a query of identifiers. Vectors put SMOKE-11 beside SMOKE-1; a reader does not."""
    wanted = [re.compile(rf"(?<![\w-]){re.escape(word)}(?![\w-])", re.IGNORECASE) for word in identifiers(query)]
    return {id for id, text in texts.items() if all(word.search(text) for word in wanted)} if wanted else set()


def _words_of(entity: StoredEntity) -> str:
    return "\n".join((entity.name, *entity.aliases, entity.description, str(entity.properties)))


def _dated(candidate: Candidate, updated_at: datetime) -> Candidate:
    """The candidate with the table's time, since the index may be a moment late."""
    return replace(candidate, updated_at=updated_at)


def _item(hit: Hit) -> SearchItem:
    ranked = hit.ranked
    return SearchItem(
        entity=hit.entity.public(),
        score=ranked.score,
        similarity=ranked.similarity,
        lexical=ranked.lexical,
        recency=ranked.recency,
        matched_by=list(ranked.matched_by),
    )


def _message_hit(found: MessageFound) -> MessageHit:
    message = found.message
    return MessageHit(
        message_id=message.id,
        conversation_id=message.conversation_id,
        role=message.role,
        name=message.name,
        created_at=message.created_at,
        text=message.content,
        score=min(1.0, max(0.0, found.ranked.score)),
        matched_by=list(found.ranked.matched_by),
    )
