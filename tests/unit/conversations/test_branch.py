"""Branches as segments, against the naive model: each message knows its parent."""

from dataclasses import dataclass, field

from hypothesis import given
from hypothesis import strategies as st
from tidemark.conversations.branch import Position, Segment, extended, on_path, path_to


@dataclass
class Tree:
    """A tree of messages 1..n kept both ways."""

    parents: dict[int, int | None] = field(default_factory=dict)
    positions: dict[int, Position] = field(default_factory=dict)
    segments: list[Segment] = field(default_factory=list)

    def append(self, parent: int | None, count: int) -> None:
        first = len(self.parents) + 1
        self.segments, number = extended(self.segments, None if parent is None else self.positions[parent], first, first + count - 1)
        for sequence in range(first, first + count):
            self.parents[sequence] = parent
            self.positions[sequence] = Position(segment=number, sequence=sequence)
            parent = sequence

    def chain(self, message: int | None) -> set[int]:
        found: set[int] = set()
        while message is not None:
            found.add(message)
            message = self.parents[message]
        return found


Steps = st.lists(st.tuples(st.integers(0, 1_000_000), st.integers(1, 4)), min_size=1, max_size=30)


def tree_of(steps: list[tuple[int, int]]) -> Tree:
    """Each step continues message `number % (n + 1)`; 0 starts a new root."""
    tree = Tree()
    for number, count in steps:
        parent = number % (len(tree.parents) + 1) or None
        tree.append(parent, count)
    return tree


@given(Steps)
def test_a_path_holds_exactly_the_chain_of_parents(steps: list[tuple[int, int]]) -> None:
    tree = tree_of(steps)
    for head in tree.parents:
        path = path_to(tree.segments, tree.positions[head])
        assert {message for message in tree.parents if on_path(path, tree.positions[message])} == tree.chain(head)


def test_no_head_is_an_empty_path() -> None:
    assert path_to([], None) == {}
    assert not on_path({}, Position(segment=0, sequence=1))


def test_a_conversation_without_forks_is_one_segment() -> None:
    tree = tree_of([(0, 2), (2, 2), (4, 3)])
    assert tree.segments == [Segment(parent=None, fork=0, last=7)]


def test_a_fork_opens_a_segment_and_leaves_the_old_one_as_it_is() -> None:
    tree = Tree()
    tree.append(None, 4)
    tree.append(2, 2)
    assert tree.segments == [Segment(last=4), Segment(parent=0, fork=2, last=6)]


def test_extending_changes_no_segment_in_place() -> None:
    tree = Tree()
    tree.append(None, 1)
    before = list(tree.segments)
    extended(tree.segments, tree.positions[1], 2, 2)
    assert tree.segments == before
