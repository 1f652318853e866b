"""The tree of a conversation's messages, kept as segments: runs of messages each of which continues the one before.

A conversation without forks is one segment. A message is on the branch of a head exactly when its segment is on the head's path and its
sequence is not behind the path's cut of that segment, so a page of a branch is one range read and a filter, however long the branch is.
"""

from collections.abc import Mapping, Sequence

from pydantic import BaseModel, ConfigDict

MAX_SEGMENTS = 2000  # keeps the conversation's own item small (about 40 bytes a fork)


class Segment(BaseModel):
    model_config = ConfigDict(frozen=True)

    parent: int | None = None  # the segment it leaves, None for a root
    fork: int = 0  # the sequence of the message that it continues
    last: int = 0  # the sequence of its newest message


class Position(BaseModel):
    """Where a message stands: its segment and its sequence."""

    model_config = ConfigDict(frozen=True)

    segment: int
    sequence: int


Path = Mapping[int, int]  # segment -> sequence of its last message on the branch


def path_to(segments: Sequence[Segment], head: Position | None) -> dict[int, int]:
    """The branch that ends at `head`."""
    path: dict[int, int] = {}
    at = head
    while at is not None:
        path[at.segment] = at.sequence
        segment = segments[at.segment]
        at = None if segment.parent is None else Position(segment=segment.parent, sequence=segment.fork)
    return path


def on_path(path: Path, at: Position) -> bool:
    return at.sequence <= path.get(at.segment, -1)


def extended(segments: Sequence[Segment], parent: Position | None, first: int, last: int) -> tuple[list[Segment], int]:
    """The segments after messages `first`..`last` were appended behind `parent`, and the segment that holds them."""
    if parent is not None and segments[parent.segment].last == parent.sequence:
        number = parent.segment
        grown = segments[number].model_copy(update={"last": last})
        return [*segments[:number], grown, *segments[number + 1 :]], number
    fresh = Segment(parent=parent.segment if parent else None, fork=parent.sequence if parent else 0, last=last)
    return [*segments, fresh], len(segments)
