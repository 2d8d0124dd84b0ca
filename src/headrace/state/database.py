"""One database: its connections, its transactions, and what its faults are called.

    ""                 an SQLite file in the state directory: WAL, every commit on the disk before it counts
    postgresql://…     PostgreSQL; the address may be all that libpq's may be

Nothing is connected before it is asked for, so a database that is away stops no start. A connection that broke is
replaced by the next transaction.
"""

import os
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import asyncpg
from sqlalchemy import URL, Connection, event
from sqlalchemy.exc import DBAPIError, IntegrityError, SQLAlchemyError
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine

from headrace.state.errors import ConflictError, DatabaseAwayError
from headrace.state.hops import OneHopConnection

FILE = "headrace.sqlite"
_PRAGMAS = (
    "journal_mode = WAL",
    "synchronous = FULL",
    # The pages of the indexes by key stay in memory, and one that many commits write is copied into the file once.
    "cache_size = -16384",
    "wal_autocheckpoint = 4000",
    "journal_size_limit = 67108864",
)
_MOST_WORDS = 300
"""Characters of a driver's message that a line keeps."""


@dataclass(frozen=True, slots=True)
class Patience:
    """How long the database may take, seconds. Past it the connection is given up."""

    connect_s: float = 5.0
    statement_s: float = 20.0
    locked_s: float = 5.0
    """For another process's transaction (SQLite)."""


class Database:
    """A pool of connections. `name` is what an operator knows it by; it holds no password."""

    def __init__(self, url: str, directory: Path, patience: Patience) -> None:
        self._url = url
        self._file = directory / FILE
        self._patience = patience
        self.is_sqlite = not url
        self.name = str(self._file) if self.is_sqlite else "PostgreSQL"
        self._engine = self._new_engine(patience)

    @classmethod
    def open(cls, url: str, directory: Path, patience: Patience | None = None) -> "Database":
        """The database at `url`; an empty one means SQLite in `directory`. ValueError for another kind of address."""
        if url and not url.startswith("postgresql://"):
            raise ValueError("state.database takes postgresql://…, or nothing for SQLite in state.directory")
        return cls(url, directory, patience or Patience())

    @property
    def engine(self) -> AsyncEngine:
        """SQLAlchemy's; for this package and its tests alone."""
        return self._engine

    @asynccontextmanager
    async def reading(self) -> AsyncIterator[AsyncConnection]:
        """A transaction that changes nothing: one state of the database, however many questions. DatabaseAwayError
        where it fails."""
        with named_faults():
            async with self._engine.connect() as connection:
                if not self.is_sqlite:  # whose transactions are so by themselves
                    await connection.execution_options(isolation_level="REPEATABLE READ", postgresql_readonly=True)
                yield connection

    @asynccontextmanager
    async def writing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction, committed at the end of the block; taken back where the block raises.

        DatabaseAwayError where anything of it fails. If that was the commit, it may have been done all the same.
        ConflictError where a row that was to be new is there.
        """
        with named_faults():
            async with self._engine.connect() as connection:
                await connection.execution_options(headrace_writes=True)
                async with connection.begin():
                    yield connection

    @asynccontextmanager
    async def changing(self) -> AsyncIterator[AsyncConnection]:
        """A transaction for migrations, on a connection of its own without time limits: it may wait for another process
        and work long."""
        engine = self._new_engine(Patience(self._patience.connect_s, 0.0, 3600.0))
        try:
            with named_faults():
                async with engine.connect() as connection:
                    await connection.execution_options(headrace_writes=True)
                    async with connection.begin():
                        yield connection
        finally:
            await engine.dispose()

    async def close(self) -> None:
        """Close the connections. The database can be used again after it."""
        with named_faults():
            await self._engine.dispose()

    # ---- engines

    def _new_engine(self, patience: Patience) -> AsyncEngine:
        return self._sqlite(patience) if self.is_sqlite else self._postgres(patience)

    def _sqlite(self, patience: Patience) -> AsyncEngine:
        connector = partial(
            sqlite3.connect, self._file, timeout=patience.locked_s, factory=Closing, check_same_thread=False
        )
        engine = create_async_engine(
            URL.create("sqlite+aiosqlite", database=str(self._file)),
            connect_args={"async_creator_fn": lambda *_, **__: OneHopConnection(connector)},
            pool_size=2,
            hide_parameters=True,
        )
        sync = engine.sync_engine

        @event.listens_for(sync, "do_connect")
        def _private(*_: object) -> None:
            make_private(self._file)

        @event.listens_for(sync, "connect")
        def _prepare(connection: Any, _: object) -> None:
            connection.isolation_level = None  # transactions begin where we say, not where the driver thinks
            cursor = connection.cursor()
            for pragma in _PRAGMAS:
                cursor.execute(f"PRAGMA {pragma}")
            cursor.close()

        @event.listens_for(sync, "begin")
        def _begin(connection: Connection) -> None:
            # One that first reads and then writes would fail where another wrote between: no waiting helps it.
            writes = connection.get_execution_options().get("headrace_writes", False)
            connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

        return engine

    def _postgres(self, patience: Patience) -> AsyncEngine:
        settings = {"application_name": "headrace", "synchronous_commit": "on", "timezone": "UTC"}
        limit = patience.statement_s or None
        if limit is not None:
            ms = str(int(limit * 1000))
            # The server ends what this side has given up, so that it keeps no lock.
            settings |= {"statement_timeout": ms, "lock_timeout": ms, "idle_in_transaction_session_timeout": ms}

        async def connect() -> asyncpg.Connection:
            try:
                return await asyncpg.connect(
                    self._url, timeout=patience.connect_s, command_timeout=limit, server_settings=settings
                )
            except ValueError as error:  # whose text may repeat a part of the address
                raise DatabaseAwayError("state.database is no address that the driver understands") from error

        return create_async_engine(
            "postgresql+asyncpg://",
            async_creator=connect,
            pool_pre_ping=True,
            pool_timeout=patience.connect_s,
            hide_parameters=True,
        )


class Closing(sqlite3.Connection):
    """Gives up its transaction when it is closed, and is closed when nobody has it any more.

    A connection whose statement was cancelled half-way is closed, but SQLite keeps it, with its lock on the file, for
    as long as something holds the statement's cursor. One whose opening was cancelled has no owner at all.
    """

    def close(self) -> None:
        """Roll back, then close."""
        if self.in_transaction:
            self.rollback()
        super().close()

    def __del__(self) -> None:
        with suppress(sqlite3.Error):  # it was never opened
            self.close()


def make_private(file: Path) -> None:
    """Make the file, for nobody but its owner, where it is not there; SQLite gives its side files the same mode."""
    os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))


@contextmanager
def named_faults() -> Iterator[None]:
    """What drivers and SQLAlchemy raise becomes an error of this package that says it in one line."""
    try:
        yield
    except IntegrityError as error:
        raise ConflictError("a row that was to be new is there already") from error
    except (SQLAlchemyError, sqlite3.Error, asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
        raise DatabaseAwayError(words_of(error)) from error


def words_of(error: BaseException) -> str:
    """One line without a statement, a value or an address."""
    if isinstance(error, DBAPIError) and error.orig is not None:
        error = error.orig
    if isinstance(error, TimeoutError):
        return "it does not answer within its time limit"
    if isinstance(error, SQLAlchemyError):
        return type(error).__name__
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    text = " ".join(str(error).split()).removeprefix("<class 'asyncpg.exceptions.")
    return text[:_MOST_WORDS] or type(error).__name__
