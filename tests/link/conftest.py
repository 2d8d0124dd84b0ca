"""Async tests of the link run on both loops: workers have uvloop, supervisor and control process asyncio's own."""

from tests.listener.conftest import loop_factory, pytest_pyfunc_call

__all__ = ["loop_factory", "pytest_pyfunc_call"]
