"""Walking the graph of entities and relations, within bounds."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from tidemark.memory.model import RelationType
from tidemark.memory.records import Graph, StoredEntity, StoredRelation

Direction = Literal["incoming", "outgoing", "both"]
MAX_SEEDS = 5


@dataclass(frozen=True, slots=True)
class Bounds:
    """How far a walk goes: hops 1 to 3, and the most nodes and relations of its answer (Clouisle's caps)."""

    max_depth: int = 1
    direction: Direction = "both"
    relation_types: frozenset[RelationType] = frozenset()
    max_nodes: int = 30
    max_relations: int = 100
    as_of: datetime | None = None


class Edges:
    """Relations by their ends."""

    def __init__(self, relations: Iterable[StoredRelation]) -> None:
        self.all = list(relations)
        self.outgoing: dict[str, list[StoredRelation]] = defaultdict(list)
        self.incoming: dict[str, list[StoredRelation]] = defaultdict(list)
        for relation in self.all:
            self.outgoing[relation.source_entity_id].append(relation)
            self.incoming[relation.target_entity_id].append(relation)

    def at(self, entity_id: str, direction: Direction) -> list[tuple[StoredRelation, str]]:
        """The relations that leave an entity in a direction, each with its other end."""
        out = [(one, one.target_entity_id) for one in self.outgoing[entity_id]] if direction != "incoming" else []
        into = [(one, one.source_entity_id) for one in self.incoming[entity_id]] if direction != "outgoing" else []
        return out + into


def walk(seeds: Sequence[str], entities: Mapping[str, StoredEntity], edges: Edges, bounds: Bounds, at: datetime) -> Graph:
    """Breadth first from the seeds (without seeds: everything), over living entities and relations that hold at a time."""

    def passable(relation: StoredRelation) -> bool:
        chosen = not bounds.relation_types or relation.relation_type in bounds.relation_types
        return chosen and relation.holds(at) and relation.rests_on <= entities.keys()

    if seeds:
        reached, truncated = _reach(seeds, edges, bounds, passable)
    else:
        reached, truncated = list(entities)[: bounds.max_nodes], len(entities) > bounds.max_nodes
    inside = set(reached)
    between = [one for one in edges.all if one.source_entity_id in inside and one.target_entity_id in inside and passable(one)]
    return Graph(
        entities=[entities[id].public() for id in reached],
        relations=[one.public() for one in between[: bounds.max_relations]],
        truncated=truncated or len(between) > bounds.max_relations,
    )


def _reach(seeds: Sequence[str], edges: Edges, bounds: Bounds, passable: Callable[[StoredRelation], bool]) -> tuple[list[str], bool]:
    reached = list(seeds[: bounds.max_nodes])
    known, truncated = set(reached), len(seeds) > bounds.max_nodes
    frontier: list[str] = list(reached)
    for _ in range(bounds.max_depth):
        following: list[str] = []
        for entity_id in frontier:
            for relation, other in edges.at(entity_id, bounds.direction):
                if other in known or not passable(relation):
                    continue
                if len(reached) == bounds.max_nodes:
                    truncated = True
                    continue
                known.add(other)
                reached.append(other)
                following.append(other)
        frontier = following
    return reached, truncated
