"""One new account for each test."""

import pytest

from tests.support.fixtures import ada, aws, model

__all__ = ["ada", "aws", "model"]


@pytest.fixture(autouse=True)
def _no_network(no_network: None) -> None:
    """moto answers inside the process; nothing may reach for AWS."""
