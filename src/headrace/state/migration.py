"""Brings the tables to this version of the program, whole or not at all, by one process at a time."""

from dataclasses import dataclass

from alembic import command
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy import Connection, text

from headrace.state.database import Database
from headrace.state.errors import OtherVersionError

SCRIPTS = "headrace.state:migrations"
EMPTY = "empty"
_LOCK = 0x6865616472616365
"""PostgreSQL's number of the lock for migrations: the letters `headrace`."""


@dataclass(frozen=True, slots=True)
class Migrated:
    """What a migration did: versions by name, `empty` before the first. Equal ones: nothing had to be done."""

    before: str
    after: str


def newest() -> str:
    """The version of the tables that this program works with."""
    return _scripts().get_current_head() or EMPTY


async def migrate(database: Database) -> Migrated:
    """Bring it to `newest()`. Waits while another process does it.

    OtherVersionError where it is newer than this program; DatabaseAwayError where it cannot be done now.
    """
    async with database.changing() as connection:
        if not database.is_sqlite:  # SQLite: the transaction itself has begun as the only writer
            await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})
        return await connection.run_sync(_upgrade)


async def check(database: Database) -> None:
    """OtherVersionError where the tables are not of this program's version."""
    async with database.reading() as connection:
        version = await connection.run_sync(_version)
    if version != newest():
        raise OtherVersionError(
            _too_new(version)
            if _is_unknown(version)
            else f"the database has version {version}, and this program needs {newest()}: run `headrace migrate`"
        )


def _upgrade(connection: Connection) -> Migrated:
    before = _version(connection)
    if _is_unknown(before):
        raise OtherVersionError(_too_new(before))
    config = _config()
    config.attributes["connection"] = connection
    command.upgrade(config, "head")
    return Migrated(before, _version(connection))


def _version(connection: Connection) -> str:
    return MigrationContext.configure(connection).get_current_revision() or EMPTY


def _is_unknown(version: str) -> bool:
    return version != EMPTY and version not in {one.revision for one in _scripts().walk_revisions()}


def _too_new(version: str) -> str:
    return (
        f"the database has version {version}, which this program does not know: it is newer. Start the newer program, "
        "or restore the database as it was before; there is no way back"
    )


def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    config = Config()
    config.set_main_option("script_location", SCRIPTS)
    return config
