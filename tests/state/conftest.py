"""Every database that the ledger may be in."""

from pathlib import Path

import pytest

from tests.stand.journals import journal
from tests.stand.postgres import Postgres, postgres, postgres_process
from tests.state.places import Place

__all__ = ["journal", "place", "postgres", "postgres_process"]


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """An empty database of each kind."""
    if request.param == "sqlite":
        return Place("", tmp_path)
    server = request.getfixturevalue("postgres")
    assert isinstance(server, Postgres)
    return Place(server.new_database(), tmp_path)
