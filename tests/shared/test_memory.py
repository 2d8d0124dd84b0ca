"""Counters in memory."""

import pytest

from tests.shared.contract import Contract
from tests.shared.stage import MemoryStage


class TestMemory(Contract):
    """All that the contract says."""

    @pytest.fixture
    def stage(self) -> MemoryStage:
        return MemoryStage()
