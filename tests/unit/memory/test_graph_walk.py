"""Walks of the graph, against sets."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tidemark.memory.graph import Bounds, Direction, Edges, walk
from tidemark.memory.records import StoredEntity, StoredRelation
from tidemark.memory.scope import TENANT

AT = datetime(2026, 11, 30, tzinfo=UTC)
DAY = timedelta(days=1)


def entity(name: str) -> StoredEntity:
    return StoredEntity(id=name, name=name, entity_type="concept", scope=TENANT, created_at=AT, updated_at=AT)


def relation(
    source: str, target: str, kind: str = "knows", valid_from: datetime | None = None, valid_to: datetime | None = None
) -> StoredRelation:
    return StoredRelation.model_validate(
        {
            "id": f"{source}{target}{kind}",
            "source_entity_id": source,
            "target_entity_id": target,
            "relation_type": kind,
            "scope": TENANT,
            "created_at": AT,
            "updated_at": AT,
            "valid_from": valid_from,
            "valid_to": valid_to,
        }
    )


CHAIN = [relation(one, other) for one, other in ("ab", "bc", "cd", "de")]
ENTITIES = {name: entity(name) for name in "abcdefgh"}


def reached(seeds: Sequence[str], relations: Sequence[StoredRelation], bounds: Bounds) -> tuple[str, bool]:
    found = walk(seeds, ENTITIES, Edges(relations), bounds, AT)
    return "".join(sorted(one.id for one in found.entities)), found.truncated


@pytest.mark.parametrize(
    ("seeds", "bounds", "expected"),
    [
        ("a", Bounds(), "ab"),
        ("a", Bounds(max_depth=2), "abc"),
        ("a", Bounds(max_depth=3), "abcd"),
        ("c", Bounds(), "bcd"),
        ("c", Bounds(direction="outgoing"), "cd"),
        ("c", Bounds(direction="incoming"), "bc"),
        ("ae", Bounds(), "abde"),
        ("c", Bounds(relation_types=frozenset(["uses"])), "c"),
    ],
)
def test_depth_direction_and_types(seeds: str, bounds: Bounds, expected: str) -> None:
    assert reached(seeds, CHAIN, bounds) == (expected, False)


def test_without_seeds_it_is_the_whole_graph_within_the_caps() -> None:
    assert reached("", CHAIN, Bounds()) == ("abcdefgh", False)
    assert reached("", CHAIN, Bounds(max_nodes=3)) == ("abc", True)


def test_a_cut_is_told() -> None:
    star = [relation("a", other) for other in "bcdefgh"]
    assert reached("a", star, Bounds(max_nodes=4))[1] is True
    found = walk("a", ENTITIES, Edges(star), Bounds(max_relations=2), AT)
    assert (len(found.relations), found.truncated) == (2, True)


@pytest.mark.parametrize(
    ("valid_from", "valid_to", "holds"),
    [(None, None, True), (AT, None, True), (AT + DAY, None, False), (None, AT, False), (None, AT + DAY, True), (AT - DAY, AT, False)],
)
def test_only_relations_that_hold_are_walked(valid_from: datetime | None, valid_to: datetime | None, holds: bool) -> None:
    edges = [relation("a", "b", valid_from=valid_from, valid_to=valid_to)]
    assert reached("a", edges, Bounds()) == ("ab" if holds else "a", False)


def test_a_missing_end_is_never_reached() -> None:
    assert reached("a", [relation("a", "x"), relation("x", "b")], Bounds(max_depth=3)) == ("a", False)


Names = st.sampled_from("abcdefgh")


@given(
    st.lists(st.tuples(Names, Names).filter(lambda pair: pair[0] != pair[1]), max_size=15),
    Names,
    st.integers(1, 3),
    st.sampled_from(("incoming", "outgoing", "both")),
)
def test_a_walk_reaches_what_hops_reach(pairs: list[tuple[str, str]], seed: str, depth: int, direction: Direction) -> None:
    known = {seed}
    for _ in range(depth):
        known |= {other for one, other in pairs if one in known and direction != "incoming"} | {
            one for one, other in pairs if other in known and direction != "outgoing"
        }
    edges = [relation(one, other) for one, other in dict.fromkeys(pairs)]
    assert reached([seed], edges, Bounds(max_depth=depth, direction=direction)) == ("".join(sorted(known)), False)
