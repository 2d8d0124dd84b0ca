"""Counters in Valkey."""

import pytest

from tests.shared.contract import Contract
from tests.shared.stage import ValkeyStage
from tests.stand.valkey import Valkey


class TestValkey(Contract):
    """All that the contract says."""

    @pytest.fixture
    def stage(self, valkey: Valkey) -> ValkeyStage:
        return ValkeyStage(valkey.url)
