"""Migrations: from nothing to what the code expects, once, by one process at a time."""

import asyncio
import multiprocessing
import sqlite3
from pathlib import Path

import msgspec
import pytest
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from sqlalchemy import Connection, text

from headrace.journal.place import Position
from headrace.model.entry import NOT_PRICED
from headrace.state.amend import rerate
from headrace.state.database import FILE, Database
from headrace.state.errors import OtherVersionError
from headrace.state.ledger import Ledger, Progress
from headrace.state.lines import EVERY, LedgerLine
from headrace.state.migration import EMPTY, SCRIPTS, Migrated, check, migrate, newest
from headrace.state.schema import metadata
from headrace.state.usage import Group, LabelGroup, UsageQuery, usage
from tests.state.journals import batch, entry, incarnation, money, position
from tests.state.places import Place, rows


def test_from_nothing_and_again(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            with pytest.raises(OtherVersionError, match="run `headrace migrate`"):
                await check(database)
            assert await migrate(database) == Migrated(EMPTY, newest())
            await check(database)
            assert await migrate(database) == Migrated(newest(), newest())

    asyncio.run(main())


def test_the_tables_are_those_of_the_code(place: Place) -> None:
    async def main() -> list[object]:
        async with place.open() as database:
            await migrate(database)
            async with database.reading() as connection:
                return await connection.run_sync(_differences)

    assert asyncio.run(main()) == []


def _differences(connection: Connection) -> list[object]:
    context = MigrationContext.configure(connection, opts={"compare_type": True})
    return list(compare_metadata(context, metadata))


def test_a_ledger_of_the_first_version(place: Place) -> None:
    """Its entries are there, their costs unknown; they can be rated, and the ledger goes on."""
    record = msgspec.msgpack.encode(msgspec.structs.replace(entry("old"), money=NOT_PRICED, labels=()))

    async def main() -> None:
        async with place.open() as database:
            async with database.changing() as connection:
                await connection.run_sync(_first_version)
                await connection.execute(text(OLD_ENTRY), {"record": record})
                await connection.execute(text("INSERT INTO incarnation VALUES ('node', 0, 'first', 1, 1, 0, true)"))
                await connection.execute(text("INSERT INTO object VALUES ('key', 'dev', '{}', 1.0)"))
            assert await migrate(database) == Migrated("0001", newest())
            ledger = Ledger(database)
            assert await ledger.line("old") == LedgerLine(
                msgspec.structs.replace(entry("old"), money=NOT_PRICED, labels=()), NOT_PRICED
            )
            (row,) = await usage(database, UsageQuery((Group.KEY, LabelGroup("team"))))
            assert (row.groups, row.entries, row.unknown_cost, row.input) == (("dev", ""), 1, 1, 9)
            assert await ledger.progress(incarnation()) == Progress(position(1), ended=True)
            await ledger.take(incarnation("second"), Position(), batch(entry("new"), after=1))
            await rerate(database, EVERY, lambda one: money(3), "a price", now=1.0)
            assert [one.money async for one in ledger.entries()] == [money(3)] * 2
            assert await rows(database, "SELECT id, cost, counted FROM entry ORDER BY id") == [
                ("new", 100, 200),
                ("old", None, 0),
            ]
            assert await rows(database, "SELECT number FROM object_change") == [(0,)]

    asyncio.run(main())


OLD_ENTRY = """
INSERT INTO entry VALUES ('old', 1.0, 1.5, 0.25, 'node', 0, 'chat', 'chat.completions', 'dev', 'ann', 'm', 'm-1',
    'b', 'y', 2, true, 'completed', 'stop', '', '', 200, 9, 2, null, null, null, 1, 0, null, 'upstream', :record)
"""


def _first_version(connection: Connection) -> None:
    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    config.attributes["connection"] = connection
    command.upgrade(config, "0001")


def test_a_newer_database_is_not_touched(place: Place) -> None:
    async def main() -> None:
        async with place.open() as database:
            await migrate(database)
            async with database.writing() as connection:
                await connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
                await connection.execute(text("ALTER TABLE entry ADD COLUMN of_the_future TEXT"))
            for asked in (check(database), migrate(database)):
                with pytest.raises(OtherVersionError, match="9999, which this program does not know: it is newer"):
                    await asked
            assert await rows(database, "SELECT of_the_future FROM entry") == []
            assert await rows(database, "SELECT version_num FROM alembic_version") == [("9999",)]

    asyncio.run(main())


def test_it_is_done_whole_or_not_at_all(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last statement fails: nothing of it stays, and the next try makes all."""

    async def main() -> None:
        async with place.open() as database:
            async with database.writing() as connection:
                await connection.execute(text("CREATE TABLE object (in_the_way TEXT)"))
            with pytest.raises(Exception, match="object"):
                await migrate(database)
            with pytest.raises(Exception, match="entry"):
                await rows(database, "SELECT id FROM entry")
            async with database.writing() as connection:
                await connection.execute(text("DROP TABLE object"))
            assert (await migrate(database)).before == EMPTY

    asyncio.run(main())


def _migrate_once(url: str, directory: str) -> tuple[str, str]:
    async def main() -> tuple[str, str]:
        database = Database.open(url, Path(directory))
        done = await migrate(database)
        await database.close()
        return done.before, done.after

    return asyncio.run(main())


def test_processes_that_start_at_once(place: Place) -> None:
    """One does it; the others wait, and find it done."""
    with multiprocessing.get_context("spawn").Pool(4) as pool:
        done = pool.starmap(_migrate_once, [(place.url, str(place.directory))] * 4, chunksize=1)
    assert sorted(done) == sorted([(EMPTY, newest()), *[(newest(), newest())] * 3])


def test_the_file_is_private_and_its_writes_are_safe(tmp_path: Path) -> None:
    async def main() -> None:
        async with Place("", tmp_path).open() as database:
            await migrate(database)
            assert await rows(database, "PRAGMA journal_mode") == [("wal",)]
            assert await rows(database, "PRAGMA synchronous") == [(2,)], "FULL"
            for suffix in ("", "-wal", "-shm"):
                assert (tmp_path / f"{FILE}{suffix}").stat().st_mode & 0o777 == 0o600

    asyncio.run(main())
    with sqlite3.connect(tmp_path / FILE) as connection:
        assert connection.execute("SELECT version_num FROM alembic_version").fetchall() == [(newest(),)]
    connection.close()
