"""What all tests share."""

import pytest
from hypothesis import HealthCheck, settings

# Machines differ: what hypothesis finds counts, how long it took does not.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True)
settings.load_profile("default")


@pytest.fixture
def no_network(socket_disabled: None) -> None:
    """Nothing in the test may open a socket."""
