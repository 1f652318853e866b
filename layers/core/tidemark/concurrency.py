"""Waiting for several answers of the table at the same time."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

THREADS = 8
T = TypeVar("T")
R = TypeVar("R")


def side_by_side(work: Callable[[T], R], things: Sequence[T]) -> list[R]:
    """The results in the order of the things; one thing needs no thread."""
    if len(things) < 2:
        return [work(thing) for thing in things]
    with ThreadPoolExecutor(min(THREADS, len(things))) as pool:
        return list(pool.map(work, things))
