"""Connections that come and go, transactions that are whole, and faults that have one name."""

import asyncio
import gc
import sqlite3
from pathlib import Path

import pytest
from sqlalchemy import text

from headrace.state.database import FILE, Database, Patience
from headrace.state.errors import ConflictError, DatabaseAwayError
from headrace.state.migration import migrate
from tests.stand.postgres import Postgres
from tests.state.places import Place, rows

PUT = "INSERT INTO object VALUES ('key', '{}', '{{}}', 1.0)"
NAMES = "SELECT name FROM object ORDER BY name"


async def put(database: Database, name: str) -> None:
    async with database.writing() as connection:
        await connection.exec_driver_sql(PUT.format(name))


@pytest.mark.parametrize("url", ["mysql://host/x", "sqlite:///x", "postgres://host/x"])
def test_another_kind_of_address(tmp_path: Path, url: str) -> None:
    with pytest.raises(ValueError, match="postgresql://"):
        Database.open(url, tmp_path)


def test_a_transaction_is_whole(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            with pytest.raises(ZeroDivisionError):
                async with database.writing() as connection:
                    await connection.exec_driver_sql(PUT.format("a"))
                    raise ZeroDivisionError
            await put(database, "b")
            assert await rows(database, NAMES) == [("b",)]

    asyncio.run(main())


def test_reading_sees_one_state(place: Place) -> None:
    """A writer does not wait for readers, nor they for it."""

    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            await put(database, "a")
            async with database.reading() as connection:
                assert len((await connection.execute(text(NAMES))).all()) == 1
                await put(database, "b")
                assert len((await connection.execute(text(NAMES))).all()) == 1
            assert len(await rows(database, NAMES)) == 2

    asyncio.run(main())


def test_what_was_to_be_new_is_there(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            await put(database, "a")
            with pytest.raises(ConflictError, match="there already") as caught:
                async with database.writing() as connection:
                    await connection.exec_driver_sql(PUT.format("b"))
                    await connection.exec_driver_sql(PUT.format("a"))
            assert "object" not in str(caught.value)
            assert await rows(database, NAMES) == [("a",)]

    asyncio.run(main())


def test_a_fault_is_one_line_without_values(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            with pytest.raises(DatabaseAwayError) as caught:
                async with database.writing() as connection:
                    await connection.execute(text("SELECT :value FROM nothing"), {"value": "pass-word"})
            said = str(caught.value)
            assert "nothing" in said and "pass-word" not in said and "\n" not in said and "SELECT" not in said

    asyncio.run(main())


def test_no_server(tmp_path: Path) -> None:
    """Nothing is asked of it before it is needed; then the fault names no address and no password."""

    async def main() -> None:
        database = Database.open(f"postgresql://me:pass-word@/x?host={tmp_path}", tmp_path, Patience(0.5, 0.5))
        with pytest.raises(DatabaseAwayError) as caught:
            await rows(database, "SELECT 1")
        assert "pass-word" not in str(caught.value) and str(caught.value)
        await database.close()

    asyncio.run(main())


def test_an_address_that_the_driver_does_not_take(tmp_path: Path) -> None:
    async def main() -> None:
        database = Database.open("postgresql://me:pass-word@host:port/x", tmp_path)
        with pytest.raises(DatabaseAwayError, match="no address that the driver understands"):
            await rows(database, "SELECT 1")
        await database.close()

    asyncio.run(main())


def test_a_directory_that_is_not_there(tmp_path: Path) -> None:
    async def main() -> None:
        database = Database.open("", tmp_path / "missing")
        with pytest.raises(DatabaseAwayError, match="No such file or directory"):
            await rows(database, "SELECT 1")
        await database.close()

    asyncio.run(main())


def test_a_restarted_server_is_found_again(postgres: Postgres, tmp_path: Path) -> None:
    """Connections in the pool are dead, and nobody has told: the next transaction works all the same."""

    async def main() -> None:
        async with Place(postgres.new_database(), tmp_path).open() as database:
            await migrate(database)
            await put(database, "a")
            for restart in (postgres.restart, postgres.kill):
                await asyncio.to_thread(restart)
                await asyncio.to_thread(postgres.ensure)
                assert await rows(database, NAMES) == [("a",)]

    asyncio.run(main())


def test_commits_are_durable_whatever_the_server_prefers(postgres: Postgres, tmp_path: Path) -> None:
    """Journals are deleted once the commit is done, so it must be on the disk."""

    async def main() -> None:
        url = postgres.new_database()
        name = url.partition("@/")[2].partition("?")[0]
        postgres.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
        assert postgres.execute("SHOW synchronous_commit", name) == "off"
        async with Place(url, tmp_path).open(Patience(statement_s=7.0)) as database:
            assert await rows(database, "SHOW synchronous_commit") == [("on",)]
            assert await rows(database, "SHOW statement_timeout") == [("7s",)]
            async with database.changing() as connection:
                assert (await connection.execute(text("SHOW statement_timeout"))).scalar() == "0"

    asyncio.run(main())


def test_a_statement_has_a_limit(postgres: Postgres, tmp_path: Path) -> None:
    async def main() -> None:
        async with Place(postgres.new_database(), tmp_path).open(Patience(5.0, 0.2)) as database:
            with pytest.raises(DatabaseAwayError):
                await rows(database, "SELECT pg_sleep(30)")
            assert await rows(database, "SELECT 1") == [(1,)]

    asyncio.run(main())


def test_a_cancelled_writer_lets_go_of_the_file(tmp_path: Path) -> None:
    """Whatever still holds its cursors: without the collector nothing else would free them."""

    async def main() -> None:
        async with Place("", tmp_path).open() as database:
            await migrate(database)
            for turn in range(60):
                task = asyncio.ensure_future(put(database, str(turn)))
                await asyncio.sleep(0.0001 * turn)
                task.cancel()
                await asyncio.wait([task])
                with sqlite3.connect(tmp_path / FILE, timeout=5.0) as probe:
                    probe.execute("BEGIN IMMEDIATE")
                probe.close()

    gc.disable()
    try:
        asyncio.run(main())
    finally:
        gc.enable()
