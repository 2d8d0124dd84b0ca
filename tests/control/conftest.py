"""The databases that the control process may have."""

from tests.stand.postgres import postgres, postgres_process
from tests.state.conftest import place

__all__ = ["place", "postgres", "postgres_process"]
