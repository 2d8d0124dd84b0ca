"""`headrace migrate`."""

import asyncio
import sqlite3
from pathlib import Path

import pytest

from headrace.state.database import FILE, Database
from headrace.state.migration import check, migrate, newest
from tests.cli import process
from tests.stand.postgres import Postgres

CONFIG = """\
channels:
  a: {base_url: https://a.example/v1, protocols: [chat], credentials: [{name: x, secret: env:UPSTREAM_KEY}]}
models:
  m: {routes: [{channel: a}]}
keys:
  - {name: dev, secret: env:DEV_KEY}
state: {directory: state/deep%s}
"""
SECRETS = {"UPSTREAM_KEY": "upstream-0123456789", "DEV_KEY": process.KEY}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "headrace.yaml").write_text(CONFIG % "")
    return tmp_path


def test_sqlite_from_nothing_and_again(folder: Path) -> None:
    file = folder / "state" / "deep" / FILE
    first = process.run("migrate", folder=folder, **SECRETS)
    assert (first.returncode, first.stdout, first.stderr) == (0, f"{file} migrated: empty → {newest()}\n", "")
    assert file.stat().st_mode & 0o777 == 0o600
    second = process.run("migrate", "-c", "headrace.yaml", folder=folder, **SECRETS)
    assert (second.returncode, second.stdout) == (0, f"{file} has version {newest()}: nothing to do\n")


def test_a_newer_one_is_left_alone(folder: Path) -> None:
    directory = folder / "state" / "deep"
    directory.mkdir(parents=True)

    async def make() -> None:
        database = Database.open("", directory)
        await migrate(database)
        await check(database)
        await database.close()

    asyncio.run(make())
    with sqlite3.connect(directory / FILE) as connection:
        connection.execute("UPDATE alembic_version SET version_num = '9999'")
    connection.close()
    done = process.run("migrate", folder=folder, **SECRETS)
    assert (done.returncode, done.stdout) == (1, "") and "it is newer" in done.stderr
    assert done.stderr.count("\n") == 1


def test_a_database_that_is_away(folder: Path) -> None:
    (folder / "headrace.yaml").write_text(CONFIG % f", database: 'postgresql://me:pass-word@/x?host={folder}'")
    done = process.run("migrate", folder=folder, **SECRETS)
    assert (done.returncode, done.stdout) == (1, "") and "pass-word" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("cannot reach the database (PostgreSQL): ")


def test_postgresql(folder: Path, postgres: Postgres) -> None:
    (folder / "headrace.yaml").write_text(CONFIG % f", database: '{postgres.new_database()}'")
    done = process.run("migrate", folder=folder, **SECRETS)
    assert (done.returncode, done.stdout) == (0, f"PostgreSQL migrated: empty → {newest()}\n"), done.stderr


def test_a_bad_file(folder: Path) -> None:
    (folder / "headrace.yaml").write_text("channels: 3\n")
    assert process.run("migrate", folder=folder, **SECRETS).returncode == 2


def test_a_directory_that_cannot_be(folder: Path) -> None:
    (folder / "state").write_text("a file")
    done = process.run("migrate", folder=folder, **SECRETS)
    assert done.returncode == 1 and "state.directory must be writable" in done.stderr
