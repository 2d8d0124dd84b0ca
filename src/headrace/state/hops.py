"""SQLite on a thread of its own, with one hop for a statement.

aiosqlite goes to the thread and back for the cursor, the statement, its rows and the cursor's end: four times 60 µs for
each statement, where many of an ingestion take less by themselves. Here all of that is done in one.
"""

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Self

import aiosqlite

_CHUNK = 64
"""aiosqlite's own; nothing here reads in chunks."""


class OneHopConnection(aiosqlite.Connection):
    """A connection as SQLAlchemy uses it; `connector` opens it, on the thread."""

    def __init__(self, connector: Callable[[], sqlite3.Connection]) -> None:
        super().__init__(connector, _CHUNK)
        self._thread.daemon = True  # as SQLAlchemy makes it: it must not keep a process that ends

    def cursor(self) -> "OneHopCursor":  # type: ignore[override]
        """A new one; nothing is done yet."""
        return OneHopCursor(self)


class OneHopCursor:
    """What SQLAlchemy asks of a cursor. It holds rows and nothing of the database."""

    def __init__(self, connection: OneHopConnection) -> None:
        self._connection = connection
        self._rows: Sequence[Any] = ()
        self.description: Any = None
        self.rowcount = -1
        self.lastrowid: int | None = None
        self.arraysize = 1

    async def __aenter__(self) -> Self:
        return self

    async def execute(self, sql: str, parameters: Any = ()) -> None:
        """Run it, and take all of its rows."""
        await self._run("execute", sql, parameters)

    async def executemany(self, sql: str, parameters: Any) -> None:
        """Run it once for each of the parameters."""
        await self._run("executemany", sql, parameters)

    async def fetchall(self) -> Sequence[Any]:
        """The rows that were taken."""
        return self._rows

    async def close(self) -> None:
        """Nothing is open."""

    async def _run(self, way: str, sql: str, parameters: Any) -> None:
        done = await self._connection._execute(_run, self._connection._conn, way, sql, parameters)  # type: ignore[no-untyped-call]
        self.description, self.rowcount, self.lastrowid, self._rows = done


def _run(connection: sqlite3.Connection, way: str, sql: str, parameters: Any) -> tuple[Any, int, int | None, list[Any]]:
    with closing(connection.cursor()) as cursor:
        getattr(cursor, way)(sql, parameters)
        rows = cursor.fetchall() if cursor.description else []
        return cursor.description, cursor.rowcount, cursor.lastrowid, rows
