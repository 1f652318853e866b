"""One question to one scope, as searches of OpenSearch; and their hits, scored as the embedded index scores them.

The engine finds and cuts; what a candidate's score is, is computed here from its words and from the scope's own statistics. So a score
tells nothing of other tenants, does not move with merges and replicas, and means the same as in the embedded index (decision 0007).
"""

import json
import math
from base64 import b64encode
from binascii import a2b_base64
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from tidemark.search.lexical import CONTEXT_WEIGHT, K1, MAX_TERMS, B, rarity
from tidemark.search.port import Candidate, Document, Query
from tidemark.search.text import fold, index_words, name_key, name_keys_in, query_words
from tidemark.search.times import instant, moment

COUNTS = round(1 / CONTEXT_WEIGHT)  # words of the text itself count so often, those of the context once: frequencies are whole numbers
_NEAREST = 100  # asked for at the least: HNSW loses several points of recall where it looks for only a few
_LONGEST_WORD = 100  # and of an exact value; what is longer is known by its hash
_LONGEST_VALUE = 500
_MOVED = 2.0  # of a cosine, so that 0 is free for "no vector"; the engine allows no negative score
_MOST_WORDS = 512  # of a question; Lucene takes 1,024 clauses
_SURE = 20  # lexical hits beyond the limit, because the engine weighs words by its shard, not by the scope

Hit = Mapping[str, Any]
Json = dict[str, Any]
_ANSWERED: Json = {"stored_fields": "_none_", "docvalue_fields": ["hit"]}


# Values


def key_of(*parts: str) -> str:
    """Parts from outside as one exact value, which no other parts give."""
    digest = sha256()
    for part in parts:
        encoded = part.encode("utf-8", "surrogatepass")
        digest.update(f"{len(encoded)}:".encode())
        digest.update(encoded)
    return digest.hexdigest()[:40]


def exact(value: str) -> str:
    return value if len(value) <= _LONGEST_VALUE and _encodable(value) else f"sha256:{key_of(value)}"


def word(value: str) -> str:
    return value if len(value) <= _LONGEST_WORD and _encodable(value) else f"sha256:{key_of(value)}"


def _encodable(value: str) -> bool:
    return value.isascii() or not any("\ud800" <= character <= "\udfff" for character in value)


def place(conversation: str, session: int, position: int) -> str:
    return f"{exact(conversation)}#{session}#{position}"


def unit(vector: Sequence[float] | None) -> list[float] | None:
    """A vector of length one. One of zeros has no direction: it counts as none."""
    length = math.sqrt(math.fsum(weight * weight for weight in vector)) if vector is not None else 0.0
    return [round(weight / length, 9) for weight in vector] if vector is not None and length > 0 else None


def stored(document: Document, own: str) -> Json:
    """A document as it lies in the index, without its vector. `hit` is what an answer needs of it, packed into one column: reading a
    few hundred sources out of their compressed blocks took five times as long as everything else of a search."""
    counts: dict[str, int] = {}
    for text, weight in ((own, COUNTS), (document.context, 1)):
        for token in index_words(text):
            counts[word(token)] = counts.get(word(token), 0) + weight
    words = " ".join(f"{token}|{count}" for token, count in counts.items())
    told = {
        "id": document.id,
        "conversation": exact(document.conversation_id),
        "position": document.position,
        "session": document.session,
        "occurred": instant(document.occurred_at),
        "updated": instant(document.updated_at),
        "length": round(sum(counts.values()) / COUNTS),
    }
    return told | {
        "key": key_of(document.tenant_id, document.id),
        "partition": partition(document),
        "tenant": exact(document.tenant_id),
        "scope": exact(document.scope),
        "kind": document.kind,
        "name_key": exact(name_key(document.name)),
        "entity_type": exact(document.entity_type),
        "workspace": exact(document.workspace_id),
        "speaker_key": exact(fold(document.speaker)),
        "role": exact(document.role),
        "place": place(document.conversation_id, document.session, document.position),
        "words": words,
        "hit": _packed(told | {"speaker": document.speaker, "words": words}),
    }


def _packed(told: Json) -> str:
    return b64encode(json.dumps(told, ensure_ascii=False).encode("utf-8", "surrogatepass")).decode()


def _unpacked(columns: Iterable[str]) -> list[Json]:
    """The engine gives columns without padding; which of the two alphabets, its versions do not agree on. Parsed as one list, which
    takes half as long as some hundreds of documents one by one."""
    told = (a2b_base64(f"{column.replace('-', '+').replace('_', '/')}==") for column in columns)
    found: list[Json] = json.loads(b"[" + b",".join(told) + b"]")
    return found


def partition(of: Document | Query) -> str:
    return key_of(of.tenant_id, of.scope, of.kind)


def route(of: Document | Query) -> str:
    return key_of(of.tenant_id, of.scope)


# Asking


@dataclass(frozen=True, slots=True)
class Engine:
    """What differs between the engines of the k-NN plugin."""

    name: str

    def method(self) -> Json:
        """Vectors have length one, so the inner product is the cosine; faiss knows no other in older versions."""
        return {"name": "hnsw", "engine": self.name, "space_type": "cosinesimil" if self.name == "lucene" else "innerproduct"}

    def cosine(self, score: float) -> float:
        if self.name == "lucene":
            return 2.0 * score - 1.0
        return score - 1.0 if score >= 1.0 else 1.0 - 1.0 / score


@dataclass(slots=True)
class Found:
    """Hits by document, each with its cosine where the two vectors are known."""

    sources: dict[str, Hit] = field(default_factory=dict)
    cosines: dict[str, float] = field(default_factory=dict)
    _read: dict[str, Hit] = field(default_factory=dict)  # by column: both arms often find the same

    def add(self, hits: Sequence[Hit], cosine: Callable[[float], float | None] | None) -> list[str]:
        """The ids of hits in their order; `cosine` reads a score."""
        ids = []
        columns: list[str] = [hit["fields"]["hit"][0] for hit in hits]
        new = [column for column in dict.fromkeys(columns) if column not in self._read]
        self._read.update(zip(new, _unpacked(new), strict=True))
        for hit, column in zip(hits, columns, strict=True):
            source = self._read[column]
            ids.append(source["id"])
            self.sources.setdefault(source["id"], source)
            value = cosine(hit["_score"]) if cosine is not None else None
            if value is not None:
                self.cosines.setdefault(source["id"], value)
        return ids


class Question:
    def __init__(self, query: Query, engine: Engine) -> None:
        self._query, self._engine = query, engine
        self._vector = unit(query.vector)
        words = list(query_words(query.text).items())[:_MOST_WORDS]
        self._words = {word(token): weight for token, weight in words}
        self._names = [exact(name) for name in name_keys_in(query.text)] if query.kind == "memory" else []
        self._filters = _filters(query)
        self.routing = route(query)
        self._found = Found()
        self._best: set[str] = set()  # whose neighbours are asked for

    # the first round: each arm by itself, and the scope's statistics
    def searches(self) -> list[Json]:
        return [search for search in (self._nearest(), self._lexical(), self._named()) if search]

    def _nearest(self) -> Json | None:
        if self._vector is None:
            return None
        wanted = {"vector": self._vector, "k": max(self._query.limit, _NEAREST), "filter": {"bool": {"filter": self._filters}}}
        return {"size": self._query.limit, "query": {"knn": {"vector": wanted}}, "track_total_hits": False, **_ANSWERED}

    def _lexical(self) -> Json | None:
        if not self._words:
            return None
        terms = [{"term": {"words": {"value": token, "boost": weight}}} for token, weight in self._words.items()]
        asked = {"bool": {"filter": self._filters, "should": terms, "minimum_should_match": 1}}
        return self._with_cosines({"query": asked, "size": self._query.limit + max(_SURE, self._query.limit // 2)})

    def _named(self) -> Json | None:
        """Names are looked for among what the filters leave; words are counted in the whole scope."""
        if not self._words and not self._names:
            return None
        search: Json = {"query": {"bool": {"filter": self._filters[:1]}}, "size": self._query.limit if self._names else 0}
        if self._names:
            search["post_filter"] = {"bool": {"filter": [*self._filters[1:], {"terms": {"name_key": self._names}}]}}
        if self._words:
            counted = {str(number): {"term": {"words": token}} for number, token in enumerate(self._words)}
            search["aggs"] = {"length": {"stats": {"field": "length"}}, "words": {"filters": {"filters": counted}}}
        return self._with_cosines(search)

    def _with_cosines(self, search: Json) -> Json:
        """The hits' order is not needed any more: their score becomes the cosine."""
        search |= {"track_total_hits": False, **_ANSWERED}
        if self._vector is not None and search["size"]:
            search["rescore"] = {
                "window_size": search["size"],
                "query": {"rescore_query": self._scored({"match_all": {}}), "query_weight": 0, "rescore_query_weight": 1},
            }
        return search

    def _scored(self, query: Json) -> Json:
        """A query whose score is the cosine, moved so that 0 is free for "no vector"."""
        script = {
            "source": f"doc['vector'].size() == 0 ? 0 : {_MOVED} + cosineSimilarity(params.query_value, doc['vector'])",
            "params": {"query_value": self._vector},
        }
        return {"script_score": {"query": query, "script": script}}

    # the second round: the turns beside what was found
    def neighbours(self) -> Json | None:
        reach = self._query.neighbours
        if reach <= 0:
            return None
        here = {(one["conversation"], one["session"], one["position"]) for one in self._found.sources.values()}
        best = [self._found.sources[id] for id in self._best]
        around = {
            (one["conversation"], one["session"], one["position"] + step)
            for one in best
            for step in range(-reach, reach + 1)
            if one["position"] + step >= 0
        }
        beside = sorted(place(*one) for one in around - here)
        if not beside:
            return None
        asked: Json = {"bool": {"filter": [*self._filters, {"terms": {"place": beside}}]}}
        # all of them are answered: scoring them at once takes half as long as a rescoring of what was found
        query = asked if self._vector is None else self._scored(asked)
        return {"query": query, "size": min(len(beside), 10_000), "track_total_hits": False, **_ANSWERED}

    # reading the answers
    def read(self, answers: Sequence[Json]) -> "Scored":
        given = iter(answers)
        nearest = self._found.add(next(given)["hits"]["hits"], self._engine.cosine) if self._vector is not None else []
        lexical = self._add(next(given)) if self._words else []
        named: list[str] = []
        statistics = Statistics(self._words)
        if self._words or self._names:
            answer = next(given)
            named = self._add(answer)
            statistics = Statistics.read(self._words, answer.get("aggregations"))
        scored = Scored(self._found, statistics, frozenset(named))
        said = scored.best(lexical, self._query.limit)
        kept = {*nearest, *said, *named}
        self._found.sources = {id: source for id, source in self._found.sources.items() if id in kept}
        self._best = {*nearest[: self._query.neighbours_of], *said[: self._query.neighbours_of]}
        return scored

    def read_neighbours(self, answer: Json) -> None:
        self._add(answer)

    def _add(self, answer: Json) -> list[str]:
        return self._found.add(answer["hits"]["hits"], _rescored if self._vector is not None else None)


def _rescored(score: float) -> float | None:
    return score - _MOVED if score else None


def _filters(query: Query) -> list[Json]:
    """The scope first; then whatever else is asked for."""
    filters: list[Json] = [{"term": {"partition": partition(query)}}]
    if query.entity_types:
        filters.append({"terms": {"entity_type": sorted(map(exact, query.entity_types))}})
    if query.conversation_ids:
        filters.append({"terms": {"conversation": sorted(map(exact, query.conversation_ids))}})
    if query.speaker is not None:
        filters.append({"term": {"speaker_key": exact(fold(query.speaker))}})
    if query.session is not None:
        filters.append({"term": {"session": query.session}})
    bounds = (("occurred", "gte", query.occurred_from), ("occurred", "lt", query.occurred_to), ("updated", "gte", query.updated_from))
    return filters + [{"range": {name: {comparison: instant(at)}}} for name, comparison, at in bounds if at is not None]


# Scoring


class Statistics:
    """How often the scope's documents hold the words of a question, and how long they are."""

    def __init__(self, words: Mapping[str, float], containing: Sequence[int] = (), documents: int = 0, length: float = 0.0) -> None:
        counts = dict(zip(words, containing, strict=False))
        weights = {token: weight * rarity(documents, counts.get(token, 0)) for token, weight in words.items()}
        held = sorted((token for token, count in counts.items() if count), key=lambda token: -weights[token])
        self.weights = {token: weights[token] for token in held[:MAX_TERMS]}
        self.total = sum(weights.values())
        self.average = max(1.0, length / max(1, documents))

    @classmethod
    def read(cls, words: Mapping[str, float], aggregations: Json | None) -> "Statistics":
        if not aggregations:
            return cls(words)
        containing = [aggregations["words"]["buckets"][str(number)]["doc_count"] for number in range(len(words))]
        return cls(words, containing, aggregations["length"]["count"], aggregations["length"]["sum"])


class Scored:
    def __init__(self, found: Found, statistics: Statistics, named: Collection[str]) -> None:
        self._found, self._statistics, self._named = found, statistics, named
        self._asked = [(f" {token}|", weight) for token, weight in statistics.weights.items()]
        self._shortest, self._longer = K1 * (1 - B), K1 * B / statistics.average
        self._told: dict[str, tuple[float | None, float]] = {}

    def best(self, ids: Collection[str], limit: int) -> list[str]:
        """Those that say some of the words, best first."""
        scores = {id: bm25 for id in ids if (bm25 := self._lexical(self._found.sources[id])[0]) is not None}
        return sorted(scores, key=lambda id: -scores[id])[:limit]

    def candidates(self) -> list[Candidate]:
        return [self._candidate(source) for source in self._found.sources.values()]

    def _candidate(self, source: Hit) -> Candidate:
        id = source["id"]
        bm25, coverage = self._lexical(source)
        occurred, updated = source["occurred"], source["updated"]
        at = moment(occurred)
        return Candidate(
            id=id,
            cosine=self._found.cosines.get(id),
            bm25=bm25,
            coverage=coverage,
            name_match=id in self._named,
            conversation_id=source["conversation"],
            speaker=source["speaker"],
            position=source["position"],
            session=source["session"],
            occurred_at=at,
            updated_at=at if updated == occurred else moment(updated),
            length=source["length"],
        )

    def _lexical(self, source: Hit) -> tuple[float | None, float]:
        """BM25 and coverage, as search/lexical.py defines them."""
        if (told := self._told.get(source["id"])) is None:
            told = self._told[source["id"]] = self._score(source)
        return told

    def _score(self, source: Hit) -> tuple[float | None, float]:
        words = f" {source['words']} "
        shortness = self._shortest + self._longer * source["length"]
        bm25 = weights = 0.0
        for token, weight in self._asked:
            start = words.find(token)
            if start >= 0:
                start += len(token)
                frequency = int(words[start : words.index(" ", start)]) / COUNTS
                bm25 += weight * frequency * (K1 + 1) / (frequency + shortness)
                weights += weight
        return (bm25, min(1.0, weights / self._statistics.total)) if weights else (None, 0.0)
