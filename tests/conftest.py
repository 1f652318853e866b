"""What all tests share."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from pytest_socket import disable_socket, enable_socket
from xdist.remote import Producer  # type: ignore[import-untyped]
from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

from tests.e2e.local_stack import Stack, start

# Machines differ: what hypothesis finds counts, how long it took does not.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("default")

HERE = Path(__file__).parent
ORDER = ("unit", "contract", "cases", "functional", "integration", "e2e", "browser")
OPENSEARCH = ("opensearch", "/test_reindex.py")
LOCAL_STACK = ("tests/e2e/", "tests/browser/")


class ServersOnce(LoadScopeScheduling):  # type: ignore[misc]
    """Tests that share a server run in the same worker, so that it is started once. (`--dist loadgroup` of xdist 3.8 does nothing with
    pytest 9.2: it writes a field that pytest no longer reads.)"""

    def _split_scope(self, nodeid: str) -> str:
        if any(part in nodeid for part in OPENSEARCH):
            return "opensearch"
        return "stack" if nodeid.startswith(LOCAL_STACK) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> ServersOnce:
    return ServersOnce(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Fast tests come first."""
    items.sort(key=lambda item: ORDER.index(item.path.relative_to(HERE).parts[0]))


@pytest.fixture
def no_network() -> Iterator[None]:
    """Nothing in the test may reach for a network. The pair of sockets by which an event loop wakes itself is none."""
    disable_socket(allow_unix_socket=True)
    yield
    enable_socket()


@pytest.fixture(scope="session")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The local stack, shared by all tests that change nothing of the instance itself."""
    running = start(tmp_path_factory.mktemp("stack"))
    yield running
    running.stop()
