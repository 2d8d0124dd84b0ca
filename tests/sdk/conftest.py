"""The shared stand."""

from tests.stand.fixtures import stand

__all__ = ["stand"]
