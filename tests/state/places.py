"""Where a test's database is, and how to use it for a while."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import text

from headrace.state.database import Database, Patience
from headrace.state.ledger import Ledger
from headrace.state.migration import migrate

T = TypeVar("T")
PATIENCE = Patience(connect_s=5.0, statement_s=10.0, locked_s=10.0)


@dataclass(frozen=True)
class Place:
    """An address. Each `open` has connections of its own, as another process would."""

    url: str
    directory: Path

    @asynccontextmanager
    async def open(self, patience: Patience = PATIENCE) -> AsyncIterator[Database]:
        """The database as it is."""
        database = Database.open(self.url, self.directory, patience)
        try:
            yield database
        finally:
            await database.close()

    @asynccontextmanager
    async def ledger(self) -> AsyncIterator[Ledger]:
        """Its ledger, migrated."""
        async with self.open() as database:
            await migrate(database)
            yield Ledger(database)

    def run(self, work: Callable[[Ledger], Coroutine[Any, Any, T]]) -> T:
        """Do something with the migrated ledger."""

        async def main() -> T:
            async with self.ledger() as ledger:
                return await work(ledger)

        return asyncio.run(main())


async def rows(database: Database, sql: str) -> list[tuple[Any, ...]]:
    """What a statement returns."""
    async with database.reading() as connection:
        return [tuple(row) for row in await connection.execute(text(sql))]
