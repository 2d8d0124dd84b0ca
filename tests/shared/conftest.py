"""A Valkey for the tests that need one."""

from tests.stand.valkey import valkey, valkey_process

__all__ = ["valkey", "valkey_process"]
