"""The index on OpenSearch: k-NN and BM25 in one index, for as many tenants as there are.

An index is made for one embedding model and layout and says so in its name and its `_meta`; its alias is what searches ask. Writes go to
every index of the prefix, so that one that is being built, or one for another model, misses nothing (decision 0007).
"""

import json
import random
import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from opensearchpy import OpenSearch
from opensearchpy.exceptions import NotFoundError, RequestError

from tidemark.observability import logger
from tidemark.search.documents import own_words
from tidemark.search.opensearch_client import AT_ONCE_SECONDS, SEARCH_SECONDS, WRITE_SECONDS, Breaker
from tidemark.search.opensearch_question import Engine, Json, Question, exact, key_of, route, stored, unit
from tidemark.search.port import Candidate, Document, IndexModelMismatchError, Placed, Query, SearchUnavailableError
from tidemark.search.times import instant, moment, version

LAYOUT = "1"  # of fields and of the words in them; another one is another index
TEMPLATE = Path(__file__).parent / "templates" / "index.json"
TARGETS_SECONDS = 10.0  # how long a writer may not know of an index that is being built
_BULK = 200  # documents a request
_ATTEMPTS = 5
_FIRST_PAUSE = 0.2
_CONFLICT = 409
_RETIRED = "retired"
_BUSY = frozenset({429, 502, 503, 504})
_SWEEPS = 4  # of a deletion that met writes


@dataclass(frozen=True, slots=True)
class Options:
    prefix: str = "tidemark"
    engine: Literal["lucene", "faiss"] = "lucene"
    shards: int = 1


@dataclass(frozen=True, slots=True)
class Target:
    """An index that is written to. One of another model gets the words alone; its own vectors come from whoever builds it."""

    name: str
    shards: int
    takes_vectors: bool


class OpenSearchIndex:
    """Implements SearchIndex. Safe for several threads."""

    def __init__(self, client: OpenSearch, model_id: str, dimension: int, options: Options = Options(), only: str | None = None) -> None:
        """With `only` it writes to that one index, for who builds it."""
        self._client, self._options = client, options
        self._meta = {"model_id": model_id, "dimension": dimension, "layout": LAYOUT}
        self._engine = Engine(options.engine)
        self._breaker = Breaker()
        self._only = only
        self._lock = threading.Lock()
        self._targets: list[Target] = []
        self._known_until = 0.0

    # names
    @property
    def alias(self) -> str:
        model = key_of(str(self._meta["model_id"]), str(self._meta["dimension"]), LAYOUT)[:10]
        return f"{self._options.prefix}.{model}"

    @property
    def pattern(self) -> str:
        return f"{self._options.prefix}.*"

    # the port
    def upsert(self, documents: Sequence[Document], *, at_once: bool = False) -> None:
        for document in documents:
            self._check(document.vector)
        prepared = [(document, stored(document, own_words(document)), unit(document.vector)) for document in documents]
        for target in self._written() if prepared else []:
            self._store(target, prepared, at_once)

    def delete(self, tenant_id: str, ids: Collection[str]) -> None:
        keys = [key_of(tenant_id, id) for id in ids]
        for target in self._written() if keys else []:
            if target.shards == 1:  # any routing leads there, and a deletion by id needs no refreshed view
                self._bulk(target.name, [({"delete": {"_id": key, "routing": key}}, None) for key in keys], at_once=False)
            else:
                self._delete_where(target.name, {"terms": {"key": keys}})

    def delete_conversation(self, tenant_id: str, conversation_id: str) -> None:
        if conversation_id:
            self._delete_everywhere({"tenant": exact(tenant_id), "conversation": exact(conversation_id)})

    def delete_scope(self, tenant_id: str, scope: str | None) -> None:
        self._delete_everywhere({"tenant": exact(tenant_id)} | ({} if scope is None else {"scope": exact(scope)}))

    def search(self, query: Query) -> list[Candidate]:
        self._check(query.vector)
        if self._known_until == 0.0:  # only who writes has to look again and again
            self._written()
        question = Question(query, self._engine)
        searches = question.searches()
        if not searches:
            return []
        scored = question.read(self._ask(question, searches))
        if (beside := question.neighbours()) is not None:
            question.read_neighbours(self._ask(question, [beside])[0])
        return scored.candidates()

    # against the table
    def stale(self, documents: Sequence[Document]) -> list[Document]:
        """Of several indexes of our model each has to hold them."""
        wanted = {key_of(one.tenant_id, one.id): one for one in documents}
        stale: dict[str, Document] = {}
        for target in self._written() if wanted else []:
            if target.takes_vectors:
                good = self._current(target.name, {key: instant(one.updated_at) for key, one in wanted.items()})
                stale |= {key: one for key, one in wanted.items() if key not in good}
        return list(stale.values())

    def _current(self, name: str, updated: dict[str, int]) -> set[str]:
        vector = {"exists": {"field": "vector", "_name": "vector"}}
        query = {"bool": {"filter": {"terms": {"key": list(updated)}}, "should": [vector]}}
        body = {"size": len(updated), "query": query, "_source": ["key", "updated"]}
        hits = self._call(self._client.search, index=name, body=body)["hits"]["hits"]
        return {key for hit in hits if hit.get("matched_queries") and hit["_source"]["updated"] >= updated[key := hit["_source"]["key"]]}

    def sample(self, count: int) -> list[Placed]:
        self._written()
        query: Json = {"function_score": {"query": {"match_all": {}}, "random_score": {}}}
        body = {"size": count, "query": query, "_source": ["tenant", "scope", "kind", "conversation", "id", "updated"]}
        hits = self._call(self._client.search, index=self.alias, body=body)["hits"]["hits"]
        return [Placed(**{**hit["_source"], "updated": moment(hit["_source"]["updated"])}) for hit in hits]

    def refresh(self) -> None:
        """Everything written so far is seen by `stale` and `sample`."""
        for target in self._written():
            self._call(self._client.indices.refresh, index=target.name)

    def _check(self, vector: Sequence[float] | None) -> None:
        if vector is not None and len(vector) != self._meta["dimension"]:
            raise IndexModelMismatchError(f"a vector of {len(vector)} dimensions for an index of {self._meta}")

    # searching
    def _ask(self, question: Question, searches: Sequence[Json]) -> list[Json]:
        header = {"index": self.alias, "routing": question.routing, "allow_partial_search_results": False}
        lines = [line for search in searches for line in (header, search)]
        answers = self._call(self._client.msearch, body=lines, params={"request_timeout": SEARCH_SECONDS})["responses"]
        for answer in answers:
            if "error" in answer or answer["timed_out"]:
                self._known_until = 0.0  # the alias may have gone
                kind = answer.get("error", {}).get("type", "timed_out")
                logger.warning("search refused", status=answer.get("status"), error=kind)
                raise SearchUnavailableError(f"the search engine answered {kind}")
        return list(answers)

    # writing
    def _store(self, target: Target, prepared: Sequence[tuple[Document, Json, list[float] | None]], at_once: bool) -> None:
        lines = []
        for document, fields, vector in prepared:
            action = {
                "_id": fields["key"],
                "routing": route(document),
                "version": version(document.updated_at),
                "version_type": "external_gte",  # so an older update never replaces a newer one
            }
            lines.append(({"index": action}, fields | {"vector": vector} if vector and target.takes_vectors else fields))
        created, conflicts = self._bulk(target.name, lines, at_once=at_once)
        if conflicts:
            created |= self._store_anew(target.name, [line for line in lines if line[0]["index"]["_id"] in conflicts], at_once)
        if target.shards > 1 and created:
            self._drop_elsewhere(target.name, {fields["key"]: fields for _, fields, _ in prepared if fields["key"] in created})

    def _store_anew(self, name: str, lines: Sequence[tuple[Json, Json | None]], at_once: bool) -> set[str]:
        """A version was refused: mostly by a newer one, but for a moment also by the trace of a deletion, which forbids nothing."""
        wanted = [{"_id": action["index"]["_id"], "routing": action["index"]["routing"], "_source": False} for action, _ in lines]
        there = {one["_id"] for one in self._call(self._client.mget, index=name, body={"docs": wanted})["docs"] if one.get("found")}
        free = [({"index": {"_id": line["index"]["_id"], "routing": line["index"]["routing"]}}, fields) for line, fields in lines]
        created, _ = self._bulk(name, [line for line in free if line[0]["index"]["_id"] not in there], at_once=at_once)
        return created

    def _drop_elsewhere(self, name: str, written: dict[str, Json]) -> None:
        """A document that moved to another scope lies in another shard now, and its old copy still where it was."""
        body = {"size": 10_000, "query": {"terms": {"key": list(written)}}, "_source": ["key", "partition"]}
        for hit in self._call(self._client.search, index=name, body=body)["hits"]["hits"]:
            copy = hit["_source"]
            if copy["partition"] != written[copy["key"]]["partition"]:
                line: tuple[Json, Json | None] = ({"delete": {"_id": hit["_id"], "routing": hit["_routing"]}}, None)
                self._bulk(name, [line], at_once=False)

    def _bulk(self, name: str, lines: Sequence[tuple[Json, Json | None]], *, at_once: bool) -> tuple[set[str], set[str]]:
        """The ids of what is new and of what met another version. Items that the engine had no room for are tried again; what it
        refused is told at the end, when all others are stored."""
        created: set[str] = set()
        conflicts: set[str] = set()
        refused = 0
        for batch in _batches(lines, _BULK):
            left, attempt = list(batch), 0
            while left:
                results = self._send(name, left, at_once)
                created |= {result["_id"] for result in results if result.get("result") == "created"}
                conflicts |= {result["_id"] for result in results if result["status"] == _CONFLICT}
                busy = [line for line, result in zip(left, results, strict=True) if result["status"] in _BUSY]
                refused += sum(_is_refused(result) for result in results)
                attempt += 1
                if busy and attempt == _ATTEMPTS:
                    raise SearchUnavailableError("the search engine has no room for writes")
                if busy:
                    time.sleep(_FIRST_PAUSE * 2**attempt * (0.5 + random.random()))  # noqa: S311 - spreads the writers
                left = busy
        if refused:
            raise SearchUnavailableError(f"the search engine refused {refused} of {len(lines)} documents")
        return created, conflicts

    def _send(self, name: str, lines: Sequence[tuple[Json, Json | None]], at_once: bool) -> list[Json]:
        body = [part for line in lines for part in line if part is not None]
        # who waits for a write to be seen waits in a request
        params = {"refresh": "true", "request_timeout": AT_ONCE_SECONDS} if at_once else {"request_timeout": WRITE_SECONDS}
        answer = self._call(self._client.bulk, body=body, index=name, params=params)
        results = [next(iter(item.values())) for item in answer["items"]]
        for kind in {result["error"]["type"] for result in results if _is_refused(result)}:
            self._known_until = 0.0  # an index may have gone
            logger.error("document refused by the search engine", error=kind)
        return results

    def _delete_everywhere(self, terms: dict[str, str]) -> None:
        for target in self._written():
            self._delete_where(target.name, {"bool": {"filter": [{"term": {field: value}} for field, value in terms.items()]}})

    def _delete_where(self, name: str, query: Json) -> None:
        """Sees only what is refreshed, so it is refreshed first; what was written meanwhile is met by another sweep."""
        for _ in range(_SWEEPS):
            self._call(self._client.indices.refresh, index=name)
            params = {"conflicts": "proceed", "request_timeout": WRITE_SECONDS}
            answer = self._call(self._client.delete_by_query, index=name, body={"query": query}, params=params)
            if answer["failures"]:
                raise SearchUnavailableError("a deletion failed in the search engine")
            if not answer["version_conflicts"]:
                return
        raise SearchUnavailableError("a deletion met writes again and again")

    # the indexes there are
    def _written(self) -> list[Target]:
        """Where writes go. The first call makes the index where there is none yet, and refuses one of another model."""
        if self._known_until > time.monotonic() or (self._only and self._targets):
            return self._targets
        with self._lock:
            if self._known_until <= time.monotonic():
                self._targets = self._read_targets()
                self._known_until = time.monotonic() + TARGETS_SECONDS
        return self._targets

    def _read_targets(self) -> list[Target]:
        found = self._call(self._client.indices.get, index=self.pattern, params={"request_timeout": SEARCH_SECONDS})
        if self._only is None and not any(self.alias in one["aliases"] for one in found.values()):
            if any(one["aliases"] for one in found.values()):
                others = [one["mappings"].get("_meta") for one in found.values() if one["aliases"]]
                raise IndexModelMismatchError(f"the index was made with {others}, and {self._meta} is configured: reindex")
            self.create(f"{self.alias}.1", serving=True)
            found = self._call(self._client.indices.get, index=self.pattern)
        targets = []
        for name, one in found.items():
            meta = one["mappings"].get("_meta") or {}
            if self._only in (None, name) and meta and not meta.get(_RETIRED):
                targets.append(Target(name, int(one["settings"]["index"]["number_of_shards"]), meta == self._meta))
        return targets

    def create(self, name: str, *, serving: bool) -> None:
        """Makes an empty index; one that another process made a moment ago is as good."""
        body = json.loads(TEMPLATE.read_text("utf-8"))
        body["settings"]["index"]["number_of_shards"] = self._options.shards
        body["mappings"]["_meta"] = self._meta
        body["mappings"]["properties"]["vector"] |= {"dimension": self._meta["dimension"], "method": self._engine.method()}
        body["aliases"] = {self.alias: {}} if serving else {}
        try:
            self._call(self._client.indices.create, index=name, body=body)
        except SearchUnavailableError as error:
            if not (isinstance(error.__cause__, RequestError) and error.__cause__.error == "resource_already_exists_exception"):
                raise

    def serve(self, name: str) -> list[str]:
        """Points the alias at an index, at one stroke. The names of those that it pointed at before."""
        self._call(self._client.indices.refresh, index=name)
        try:
            before = [one for one in self._client.indices.get_alias(name=self.alias) if one != name]
        except NotFoundError:
            before = []
        actions = [{"remove": {"index": one, "alias": self.alias}} for one in before] + [{"add": {"index": name, "alias": self.alias}}]
        self._call(self._client.indices.update_aliases, body={"actions": actions})
        return before

    def drop(self, names: Collection[str], settle: float = TARGETS_SECONDS + 2) -> None:
        """Removes indexes that serve no more. Writers are told first and given time: a write to an index that has gone makes a new one
        without mappings, where the domain is allowed to."""
        found = self._call(self._client.indices.get, index=self.pattern)
        known = [name for name in names if name in found]
        for name in known:
            meta = found[name]["mappings"].get("_meta") or {}
            self._call(self._client.indices.put_mapping, index=name, body={"_meta": meta | {_RETIRED: True}})
        time.sleep(settle if known else 0)
        for name in known:
            self._call(self._client.indices.delete, index=name, params={"ignore_unavailable": "true"})

    def drop_others(self, settle: float = TARGETS_SECONDS + 2) -> list[str]:
        """Removes every index of the prefix that does not serve this model, also one whose building was given up."""
        found = self._call(self._client.indices.get, index=self.pattern)
        others = [name for name, one in found.items() if self.alias not in one["aliases"]]
        self.drop(others, settle)
        return others

    def _call(self, work: Callable[..., Any], **arguments: Any) -> Any:
        return self._breaker.run(partial(work, **arguments))


def _is_refused(result: Json) -> bool:
    """Neither done nor to be tried again. An older version that met a newer one is done, and so is a deletion of what is not there."""
    return "error" in result and result["status"] not in _BUSY and result["status"] != _CONFLICT


def _batches(lines: Sequence[tuple[Json, Json | None]], size: int) -> Iterator[list[tuple[Json, Json | None]]]:
    rest = iter(lines)
    while batch := list(islice(rest, size)):
        yield batch
