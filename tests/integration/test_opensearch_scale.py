"""Twenty thousand documents of two hundred scopes in one OpenSearch: pages are full, nothing near is missed, writers do not meet."""

import random
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tidemark.search.opensearch_question import unit
from tidemark.search.port import Candidate, Document, Query

from tests.support import opensearch
from tests.support.opensearch import SeenAtOnce

pytestmark = pytest.mark.opensearch

ROWS, SCOPES, DIMENSION = 20_700, 276, 64  # three of four scopes are used: 207 besides the crowded one
CROWDED = "scope-0"  # holds a fourth of all
SPEAKERS = ("ann", "bob", "cyd", "dee", "eve")
NOON = datetime(2024, 5, 8, 12, tzinfo=UTC)


def direction(chance: random.Random, centre: Sequence[float] | None = None) -> list[float]:
    """Vectors lie in heaps, as those of sentences do."""
    base = centre or [0.0] * DIMENSION
    return [weight + chance.gauss(0, 0.5 if centre else 1) for weight in base]


@pytest.fixture(scope="module")
def rows() -> list[Document]:
    chance = random.Random(7)
    centres = [direction(chance) for _ in range(40)]
    return [
        Document(
            id=f"d{number}",
            kind="message",
            tenant_id=f"ten-{number % 3}" if number % 4 else "ten-0",
            scope=f"scope-{number % SCOPES}" if number % 4 else CROWDED,
            text=" ".join(f"w{min(900, int(chance.paretovariate(0.5)))}x" for _ in range(12)),
            occurred_at=NOON + timedelta(minutes=number),
            updated_at=NOON,
            conversation_id=f"con-{number % 50}",
            speaker=SPEAKERS[number % 5],
            position=number,
            session=1 + number % 9,
            vector=direction(chance, centres[number % 40]),
        )
        for number in range(ROWS)
    ]


@pytest.fixture(scope="module")
def index(rows: list[Document]) -> Iterator[SeenAtOnce]:
    with opensearch.indexes("test/heaps", DIMENSION, shards=2) as made:
        for start in range(0, ROWS, 1_000):
            made.upsert(rows[start : start + 1_000], at_once=False)
        made.seen()
        yield made


def matching(rows: Sequence[Document], query: Query) -> list[Document]:
    return [
        one
        for one in rows
        if (one.tenant_id, one.scope) == (query.tenant_id, query.scope)
        and (query.speaker is None or one.speaker == query.speaker)
        and (not query.conversation_ids or one.conversation_id in query.conversation_ids)
        and (query.session is None or one.session == query.session)
        and (query.occurred_from is None or one.occurred_at >= query.occurred_from)
    ]


def cosine(first: Sequence[float] | None, second: Sequence[float] | None) -> float:
    return sum(a * b for a, b in zip(unit(first) or (), unit(second) or (), strict=True))


def questions(chance: random.Random, rows: Sequence[Document], scope: str, **filters: object) -> list[Query]:
    inside = [one for one in rows if one.scope == scope and one.tenant_id == "ten-0"]
    asked = [chance.choice(inside) for _ in range(12)]
    return [
        Query("ten-0", scope, "message", "", 50, [weight + chance.gauss(0, 0.3) for weight in one.vector or ()], **filters)  # type: ignore[arg-type]
        for one in asked
    ]


FILTERS: list[dict[str, object]] = [
    {},
    {"speaker": "cyd"},
    {"conversation_ids": ["con-2", "con-4"]},
    {"session": 3},
    {"occurred_from": NOON + timedelta(minutes=18_000)},
    {"speaker": "ann", "session": 2, "conversation_ids": ["con-0", "con-10", "con-20"]},
]


@pytest.mark.parametrize("scope", [CROWDED, "scope-9"])
@pytest.mark.parametrize("filters", FILTERS, ids=lambda filters: "-".join(filters) or "none")
def test_nothing_near_is_missed_under_any_filter(index: SeenAtOnce, rows: list[Document], scope: str, filters: dict[str, object]) -> None:
    found = wanted = 0
    for query in questions(random.Random(3), rows, scope, **filters):
        inside = matching(rows, query)
        nearest = {one.id for one in sorted(inside, key=lambda one: -cosine(query.vector, one.vector))[:10]}
        hits = sorted(index.search(query), key=lambda one: -(one.cosine or 0.0))
        assert len(hits) == min(50, len(inside))
        assert {hit.id for hit in hits} <= {one.id for one in inside}
        found += len(nearest & {hit.id for hit in hits[:10]})
        wanted += len(nearest)
    assert found >= 0.99 * wanted


@pytest.mark.parametrize("limit", [1, 2, 10, 49, 50])
def test_pages_are_full_whatever_the_limit(index: SeenAtOnce, rows: list[Document], limit: int) -> None:
    query = questions(random.Random(5), rows, CROWDED, speaker="dee")[0]
    by_vector = index.search(replace(query, limit=limit))
    by_words = index.search(replace(query, limit=limit, vector=None, text="w1x"))
    assert len(by_vector) == len(by_words) == limit


def test_scores_of_the_same_words_do_not_depend_on_the_others_of_the_shard(index: SeenAtOnce, rows: list[Document]) -> None:
    """A copy of one scope, alone in an index, answers as the scope does among two hundred others."""
    inside = [one for one in rows if (one.tenant_id, one.scope) == ("ten-0", "scope-9")]
    query = Query("ten-0", "scope-9", "message", "w1x w3x w20x", 50, inside[0].vector)

    def told(candidates: list[Candidate]) -> dict[str, Candidate]:
        return {one.id: replace(one, cosine=round(one.cosine or 0.0, 5)) for one in candidates}

    with opensearch.indexes("test/heaps", DIMENSION) as alone:
        alone.upsert(inside)
        assert told(alone.search(query)) == told(index.search(query))


def test_many_writers_and_readers_do_not_disturb_each_other() -> None:
    with opensearch.indexes("test/heaps", DIMENSION) as index:

        def write(writer: int) -> None:
            chance = random.Random(writer)
            for number in range(20):
                index.upsert(
                    [
                        Document(
                            id=f"shared-{number}",
                            kind="memory",
                            tenant_id="ten",
                            scope="all",
                            text=f"tea of writer{writer}x",
                            occurred_at=NOON,
                            updated_at=NOON + timedelta(seconds=writer),
                            vector=direction(chance),
                        )
                    ],
                    at_once=number == 19,
                )
                assert len(index.search(Query("ten", "all", "memory", "tea", 50))) <= 20

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(write, range(6)))
        assert len(index.search(Query("ten", "all", "memory", "tea", 50))) == 20
        newest = [one for one in index.search(Query("ten", "all", "memory", "writer5x", 50)) if one.bm25 is not None]
        assert len(newest) == 20
