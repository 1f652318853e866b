"""Instances of the local stack for the tests of this folder."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e.local_stack import Stack, start


@pytest.fixture
def instances(tmp_path: Path) -> Iterator[Callable[..., Stack]]:
    """Starts instances of the test's own: a name is a state directory, so the same name starts again on the same data."""
    started: list[Stack] = []

    def begin(name: str = "own", **environment: str) -> Stack:
        started.append(start(tmp_path / name, None, **environment))
        return started[-1]

    yield begin
    for one in started:
        if one.process.poll() is None:
            one.stop()
