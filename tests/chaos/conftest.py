"""A real PostgreSQL, a real Valkey, and the upstream that every gateway here has."""

from collections.abc import Iterator

import pytest

from headrace.simulator import SimulatorThread
from tests.chaos.load import SCENARIOS
from tests.stand.postgres import postgres, postgres_process
from tests.stand.valkey import valkey, valkey_process

__all__ = ["postgres", "postgres_process", "valkey", "valkey_process"]


@pytest.fixture
def upstream() -> Iterator[SimulatorThread]:
    """It remembers every request."""
    with SimulatorThread({"record": 1_000_000, "scenarios": SCENARIOS}) as simulator:
        yield simulator
