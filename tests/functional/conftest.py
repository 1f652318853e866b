"""One new account for each test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.world import World, world


@pytest.fixture(autouse=True)
def _no_network(no_network: None) -> None:
    """moto answers inside the process; nothing may reach for AWS."""


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[World]:
    with world(tmp_path) as made:
        yield made
