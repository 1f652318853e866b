"""What all tests share."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Machines differ: what hypothesis finds counts, how long it took does not.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("default")

HERE = Path(__file__).parent
ORDER = ("unit", "contract", "cases", "functional", "integration", "e2e")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that share a server run on the same one of the parallel workers, so that it is started once; fast ones come first."""
    items.sort(key=lambda item: ORDER.index(item.path.relative_to(HERE).parts[0]))
    for item in items:
        if item.get_closest_marker("opensearch"):
            item.add_marker(pytest.mark.xdist_group("opensearch"))
        elif "stack" in getattr(item, "fixturenames", ()):
            item.add_marker(pytest.mark.xdist_group("stack"))


@pytest.fixture
def no_network(socket_disabled: None) -> None:
    """Nothing in the test may open a socket."""
