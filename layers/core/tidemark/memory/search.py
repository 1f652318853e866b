"""Recall: hybrid search over facts and raw messages of one scope, ranked, with abstention.

The index only proposes. Every hit is read again from DynamoDB before it is used, so that what was deleted, closed, expired or belongs to
somebody else can never be answered, however late the index is.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

from tidemark.clock import Time, now
from tidemark.concurrency import side_by_side
from tidemark.conversations.branch import Path
from tidemark.conversations.history import in_tail
from tidemark.conversations.model import ConversationState, StoredMessage
from tidemark.conversations.store import ConversationStore
from tidemark.memory.calibration import Calibration
from tidemark.memory.dates import TimeFilter, time_filter
from tidemark.memory.graph import MAX_SEEDS, Bounds, Direction, Edges, walk
from tidemark.memory.model import EntityType
from tidemark.memory.questions import is_doubtful
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
REACH = 4  # times as many hits as are answered are looked at: some repeat others, and some names belong to closed statements only
Span = tuple[datetime, datetime]  # from, inclusive; to, exclusive
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

    def question(
        self, text: str, last_sitting: Callable[[], Span | None] = lambda: None, at: datetime | None = None, said: str | None = None
    ) -> Question:
        """Without an embedder the words alone are searched, and so it is with a question of signs: to a model that reads language they
        are near to everything short. `last_sitting` is asked where the text speaks of the last session. `said` is the part of the text
        that may name a time, where earlier turns stand in front of it."""
        moment = at or now()
        vector: list[float] | None = None
        try:
            if any(character.isalpha() for character in text):
                vector = self._embedder().embed_query(text)
        except (SearchUnavailableError, ModelError):
            measure("EmbedderUnavailable")
        span = time_filter(text if said is None else said, moment)
        if span is not None and span.session is not None and span.session < 0:
            known = last_sitting()
            span = replace(span, start=known[0], end=known[1], session=None) if known else None
        return Question(text, moment, vector, span)

    def last_sitting(self, tenant_id: str, owner: str | None, besides: str | None = None) -> Span | None:
        """From when to when the newest conversation was last talked in: of one owner or, without one, of the tenant. `besides` is the
        conversation that asks."""
        found, _ = self._conversations.recent(tenant_id, owner, lambda state: state.id != besides and state.head is not None, 1, None)
        if not found:
            return None
        said = self._conversations.walk(found[0], None, newest_first=True, page=50)
        times = [message.created_at for message in takewhile(lambda message: message.session == found[0].session, said)]
        return (times[-1], times[0] + timedelta(milliseconds=1)) if times else None

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

        def asked(scope: Scope) -> tuple[list[Candidate], dict[str, StoredEntity]]:
            query = Query(
                tenant_id, scope.key, "memory", question.text, MEMORY_CANDIDATES, question.vector,
                entity_types=types, updated_from=since, speaker=speaker,
            )  # fmt: skip
            found = asking.candidates(self._index, query)
            visible = _visible(self._store.many(tenant_id, scope, [one.id for one in found]), at, since)
            return [one for one in found if one.id in visible], visible

        candidates: list[Candidate] = []
        entities: dict[str, StoredEntity] = {}
        for found, visible in side_by_side(asked, scopes):
            entities |= visible
            candidates += found
        named = holding(question.text, {one.id: _words_of(entities[one.id]) for one in candidates})
        candidates = [one for one in candidates if not named or one.id in named]
        calibration = self._calibration()
        weights = MemoryWeights(settings.half_life_days, settings.recency_weight, min_score, doubtful=is_doubtful(question.text))
        fresh = [_dated(one, entities[one.id].updated_at) for one in candidates]
        ranked = rank_memories(fresh, calibration, calibration.background_of(question.vector), question.at, weights)
        texts = {id: f"{entity.name} {entity.description}" for id, entity in entities.items()}
        spoken_of = self._still_named(tenant_id, ranked[: limit * REACH], entities, at)
        return [Hit(entities[one.candidate.id], one) for one in select(spoken_of, texts, limit)]

    def _still_named(self, tenant_id: str, ranked: Sequence[Ranked], entities: Mapping[str, StoredEntity], at: datetime) -> list[Ranked]:
        """Without the names that only closed or deleted statements name. One of which nothing was ever said is found by its own name."""

        def silent(entity: StoredEntity) -> bool:
            relations = self._store.relations_at(tenant_id, entity.scope, entity.id)
            current = [relation for relation in relations if relation.holds(at)]
            return bool(relations) and not self._store.visible(tenant_id, entity.scope, current, now())

        names = [entity for one in ranked if (entity := entities[one.candidate.id]).mention]
        closed = {entity.id for entity, gone in zip(names, side_by_side(silent, names), strict=True) if gone}
        return [one for one in ranked if one.candidate.id not in closed]

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
        owner = owners[0][0] if len(owners) == 1 else None
        question = self.question(body.query, lambda: self.last_sitting(view.tenant_id, owner))
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
        with ThreadPoolExecutor(1) as beside:
            counted = beside.submit(self.count_access, view.tenant_id, hits)
            subgraph = self.subgraph(view.tenant_id, hits, body.max_depth, body.direction, body.as_of, body.time_window_days)
            counted.result()
        span = question.span
        return SearchAnswer(
            items=[_item(hit) for hit in hits],
            messages=[_message_hit(one) for one in found],
            subgraph=subgraph,
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
        around = partial(self._store.relations_at, tenant_id, scope)
        relations = {one.id: one for found in side_by_side(around, seeds) for one in found}
        frontier = {end for one in relations.values() for end in (one.source_entity_id, one.target_entity_id)} - set(seeds)
        for _ in range(depth - 1):
            more = {one.id: one for found in side_by_side(around, sorted(frontier)) for one in found}
            frontier = {end for one in more.values() for end in (one.source_entity_id, one.target_entity_id)} - frontier - set(seeds)
            relations |= more
        needed = {id for one in relations.values() for id in one.rests_on}
        since = clock - timedelta(days=window_days) if window_days else None
        entities = {
            id: entity
            for id, entity in self._store.many(tenant_id, scope, {*seeds, *needed}).items()
            if entity.alive(clock) and (since is None or entity.updated_at >= since)
        }
        bounds = Bounds(max_depth=depth, direction=direction, as_of=as_of)
        return walk([seed for seed in seeds if seed in entities], entities, Edges(relations.values()), bounds, as_of or clock)

    def unsaid(self, state: ConversationState, path: Path, hits: Sequence[Hit]) -> list[Hit]:
        """The facts that a conversation's next request does not hold anyway, in the very words in which they were said."""
        here = [hit for hit in hits if all(one.conversation_id == state.id and one.message_id for one in hit.entity.provenance)]
        sources = {one.message_id: hit for hit in here for one in hit.entity.provenance if one.message_id}
        read = self._conversations.messages(state.tenant_id, [(state.id, id) for id in sources])
        held = {message.id for message in read if in_tail(state, path, message)}
        said = {hit.entity.id for hit in here if {one.message_id for one in hit.entity.provenance} <= held}
        return [hit for hit in hits if hit.entity.id not in said]

    def count_access(self, tenant_id: str, hits: Sequence[Hit]) -> None:
        """Counted for what was answered; a hit that was deleted meanwhile costs the count, never the answer."""
        if hits:
            with suppress(StaleError):
                self._store.count_access(tenant_id, [hit.entity for hit in hits], now())


def _visible(stored: Mapping[str, StoredEntity], at: datetime, since: datetime | None) -> dict[str, StoredEntity]:
    """What lives now, holds at that time and is new enough."""
    clock = now()
    return {
        id: entity
        for id, entity in stored.items()
        if entity.alive(clock) and entity.holds(at) and (since is None or entity.updated_at >= since)
    }


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
