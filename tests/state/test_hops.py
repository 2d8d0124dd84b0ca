"""A statement goes to SQLite's thread once, and holds nothing there afterwards."""

import asyncio
import sqlite3
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from headrace.state.database import Database
from headrace.state.errors import DatabaseAwayError
from headrace.state.hops import OneHopConnection
from headrace.state.ledger import Ledger
from headrace.state.migration import migrate
from tests.state.journals import batch, entry, incarnation, position
from tests.state.places import Place, rows


class Hops:
    """Counts the calls on the thread."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.number = 0
        execute = OneHopConnection._execute

        async def counted(*arguments: Any, **named: Any) -> Any:
            self.number += 1
            return await execute(*arguments, **named)  # type: ignore[no-untyped-call]

        monkeypatch.setattr(OneHopConnection, "_execute", counted)

    def since(self) -> int:
        """How many since it was asked the last time."""
        number, self.number = self.number, 0
        return number


def test_one_for_each_statement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows or not, many parameters or one; and one each for the beginning and the end of a transaction."""
    hops = Hops(monkeypatch)

    async def main() -> None:
        async with Place("", tmp_path).open() as database:
            await migrate(database)
            ledger = Ledger(database)
            await ledger.take(incarnation(), position(0), batch(entry("a"), after=1))
            hops.since()
            assert await rows(database, "SELECT id FROM entry") == [("a",)]
            assert hops.since() == 3, "BEGIN, SELECT, ROLLBACK"
            await ledger.take(incarnation(), position(1), batch(entry("b"), entry("c"), after=3))
            assert hops.since() == 7, "BEGIN; position, entries, spending, open exchanges; COMMIT; the pool's ROLLBACK"

    asyncio.run(main())


def test_what_a_cursor_tells(tmp_path: Path) -> None:
    async def main() -> None:
        connection = OneHopConnection(partial(sqlite3.connect, tmp_path / "x", check_same_thread=False))
        await connection
        cursor = connection.cursor()
        await cursor.execute("CREATE TABLE t (a)")
        assert (cursor.description, await cursor.fetchall()) == (None, [])
        await cursor.executemany("INSERT INTO t VALUES (?)", [(1,), (2,), (3,)])
        assert cursor.rowcount == 3
        await cursor.execute("SELECT a AS b FROM t WHERE a > ?", (1,))
        assert (cursor.description[0][0], await cursor.fetchall()) == ("b", [(2,), (3,)])
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            await cursor.execute("SELECT 1 FROM missing")
        await connection.close()

    asyncio.run(main())


def test_a_closed_connection(tmp_path: Path) -> None:
    """It is said as any other fault of the database, and the next transaction has a new one."""

    async def main() -> None:
        database = Database.open("", tmp_path)
        await migrate(database)
        with pytest.raises(DatabaseAwayError):
            async with database.reading() as connection:
                raw = await connection.get_raw_connection()
                assert isinstance(raw.driver_connection, OneHopConnection)
                await raw.driver_connection.close()
                await connection.execute(text("SELECT 1"))
        assert await rows(database, "SELECT 1") == [(1,)]
        await database.close()

    asyncio.run(main())
