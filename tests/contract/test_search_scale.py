"""A hundred thousand documents of a thousand scopes in one index: pages are full, nothing near is missed, no scope tells of another."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tidemark.search.embedded import EmbeddedIndex
from tidemark.search.port import Candidate, Document, Query, SearchIndex

from tests.support import opensearch

ROWS, SCOPES, DIMENSION = 100_000, 1_000, 16
CROWDED, SMALL = "scope-0", "scope-9"  # a fourth of all documents, and 75 of them
MODEL = "test/heaps"
SPEAKERS = ("ann", "bob", "cyd", "dee", "eve")
NOON = datetime(2024, 5, 8, 12, tzinfo=UTC)
TOP = 10


@pytest.fixture(scope="module")
def vectors() -> NDArray[np.float32]:
    """Of length one, in heaps, as those of sentences lie."""
    chance = np.random.default_rng(7)
    heaps = chance.normal(size=(200, DIMENSION))
    made = heaps[np.arange(ROWS) % len(heaps)] + chance.normal(scale=0.6, size=(ROWS, DIMENSION))
    lengths: NDArray[np.float64] = np.linalg.norm(made, axis=1, keepdims=True)
    return (made / lengths).astype(np.float32)


@pytest.fixture(scope="module")
def rows(vectors: NDArray[np.float32]) -> list[Document]:
    chance = random.Random(7)
    return [
        Document(
            id=f"d{number}",
            kind="message",
            tenant_id="ten",
            scope=CROWDED if number % 4 == 0 else f"scope-{number % SCOPES}",
            text=" ".join(f"w{min(900, int(chance.paretovariate(0.5)))}x" for _ in range(5)),
            occurred_at=NOON + timedelta(minutes=number),
            updated_at=NOON,
            conversation_id=f"con-{number // 11 % 50}",
            speaker=SPEAKERS[number // 3 % 5],
            position=number,
            session=1 + number // 7 % 9,
            vector=vectors[number].tolist(),
        )
        for number in range(ROWS)
    ]


@pytest.fixture(scope="module", params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def index(request: pytest.FixtureRequest, rows: list[Document], tmp_path_factory: pytest.TempPathFactory) -> Iterator[SearchIndex]:
    if request.param == "embedded":
        yield filled(EmbeddedIndex(tmp_path_factory.mktemp("scale") / "index.sqlite", MODEL, DIMENSION), rows)
        return
    with opensearch.indexes(MODEL, DIMENSION, shards=2) as made:
        filled(made, rows)
        made.seen()
        yield made


def filled(index: SearchIndex, rows: Sequence[Document]) -> SearchIndex:
    waiting = iter(rows)
    while batch := list(islice(waiting, 1_000)):
        index.upsert(batch, at_once=False)
    return index


def matching(rows: Sequence[Document], query: Query) -> list[int]:
    """Numbers of the rows that the filters leave."""
    return [
        number
        for number, one in enumerate(rows)
        if one.scope == query.scope
        and (query.speaker is None or one.speaker == query.speaker)
        and (not query.conversation_ids or one.conversation_id in query.conversation_ids)
        and (query.session is None or one.session == query.session)
        and (query.occurred_from is None or one.occurred_at >= query.occurred_from)
    ]


def question(chance: random.Random, inside: Sequence[int], vectors: NDArray[np.float32]) -> list[float]:
    return [float(weight) + chance.gauss(0, 0.1) for weight in vectors[chance.choice(inside)]]


FILTERS: dict[str, dict[str, Any]] = {
    "none": {},
    "speaker": {"speaker": "cyd"},
    "conversations": {"conversation_ids": ["con-2", "con-4"]},
    "session": {"session": 3},
    "late": {"occurred_from": NOON + timedelta(minutes=97_000)},
    "all": {"speaker": "ann", "session": 2, "conversation_ids": ["con-0", "con-10", "con-20", "con-30"]},
}


@pytest.mark.parametrize("scope", [CROWDED, SMALL])
@pytest.mark.parametrize("filters", FILTERS)
def test_nothing_near_is_missed_under_any_filter(
    index: SearchIndex, rows: list[Document], vectors: NDArray[np.float32], scope: str, filters: str
) -> None:
    """Recall of the ten nearest against exact search is at least 0.99, and every page is full."""
    chance = random.Random(3)
    query = Query("ten", scope, "message", "", 50, **FILTERS[filters])
    inside = matching(rows, query)
    own = matching(rows, replace(query, speaker=None, conversation_ids=(), session=None, occurred_from=None))
    found = wanted = 0
    for _ in range(20):
        asked = question(chance, own, vectors)
        cosines = vectors[inside] @ np.array(asked, np.float32)
        nearest = {rows[inside[place]].id for place in np.argsort(-cosines)[:TOP]}
        hits = sorted(index.search(replace(query, vector=asked)), key=lambda one: -(one.cosine or 0.0))
        assert len(hits) == min(50, len(inside))
        assert {hit.id for hit in hits} <= {rows[number].id for number in inside}
        found += len(nearest & {hit.id for hit in hits[:TOP]})
        wanted += len(nearest)
    assert found >= 0.99 * wanted


@pytest.mark.parametrize("limit", [1, 2, 5, 10, 20, 49, 50])
def test_pages_are_full_whatever_the_limit(index: SearchIndex, rows: list[Document], limit: int) -> None:
    query = Query("ten", CROWDED, "message", "", limit, rows[0].vector, speaker="dee", session=4)
    assert len(index.search(query)) == limit
    assert len(index.search(replace(query, vector=None, text="w1x"))) == limit


def test_many_scopes_in_turn_answer_from_themselves(index: SearchIndex, rows: list[Document]) -> None:
    chance = random.Random(11)
    for one in chance.sample(rows, 60):
        hits = index.search(Query("ten", one.scope, "message", one.text, 50, one.vector))
        by_id = {f"d{row.position}": row for row in rows if row.scope == one.scope}
        assert one.id in {hit.id for hit in hits}
        assert {hit.id for hit in hits} <= by_id.keys()


def test_a_scope_answers_as_if_it_were_alone(index: SearchIndex, rows: list[Document], tmp_path_factory: pytest.TempPathFactory) -> None:
    """Scores come from the scope's own statistics, whatever the others of the same shard or file hold, and are the same in both indexes."""
    inside = [one for one in rows if one.scope == SMALL]
    query = Query("ten", SMALL, "message", "w1x w3x w20x", 100, inside[0].vector)  # all of them: no cut between equal scores

    def told(candidates: list[Candidate]) -> dict[str, tuple[object, ...]]:
        return {
            one.id: (pytest.approx(one.cosine, abs=1e-5), pytest.approx(one.bm25), pytest.approx(one.coverage), one.length)
            for one in candidates
        }

    alone = filled(EmbeddedIndex(tmp_path_factory.mktemp("alone") / "index.sqlite", MODEL, DIMENSION), inside)
    expected = told(alone.search(query))
    found = {one.id: (one.cosine, one.bm25, one.coverage, one.length) for one in index.search(query)}
    assert found == expected
