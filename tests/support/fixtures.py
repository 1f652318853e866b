"""Fixtures that folders of tests take into their conftest."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.models import ScriptedModel
from tests.support.world import Client, World, use, world


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[World]:
    """One new account for each test."""
    with world(tmp_path) as made:
        yield made


@pytest.fixture
def model(aws: World) -> ScriptedModel:
    scripted = ScriptedModel()
    use(aws.patch, "model", scripted)
    return scripted


@pytest.fixture
def ada(aws: World) -> Client:
    """A key of a new tenant that speaks for the subject ada."""
    return aws.key(aws.tenant(), "ada")
