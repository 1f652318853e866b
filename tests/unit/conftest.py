import pytest


@pytest.fixture(autouse=True)
def _no_network(no_network: None) -> None:
    """These tests meet no network, whatever they call."""
