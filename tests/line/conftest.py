"""The shared stand, and a Valkey for what has several workers."""

from tests.stand.fixtures import stand
from tests.stand.valkey import valkey, valkey_process

__all__ = ["stand", "valkey", "valkey_process"]
