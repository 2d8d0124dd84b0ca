"""A ledger without a gateway."""

import asyncio
from pathlib import Path

from headrace.journal.place import Position
from headrace.model.entry import Entry
from headrace.state.database import Database
from headrace.state.ledger import Ledger
from headrace.state.migration import migrate
from tests.state.journals import batch, incarnation


def fill(directory: Path, *entries: Entry, url: str = "") -> None:
    """Entries into the database at `url`, or into the SQLite one in the directory."""

    async def work() -> None:
        database = Database.open(url, directory)
        try:
            await migrate(database)
            await Ledger(database).take(incarnation(), Position(), batch(*entries, after=1))
        finally:
            await database.close()

    directory.mkdir(exist_ok=True)
    asyncio.run(work())
