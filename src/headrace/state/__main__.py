"""Migrates a database, as a process of its own: no other command has to carry Alembic for it.

stdin has an `Order` as MessagePack, since an address may hold a password; stdout tells what was done, stderr why not.
"""

import asyncio
import sys
from pathlib import Path

import msgspec

from headrace.state.database import Database
from headrace.state.errors import DatabaseAwayError, StateError
from headrace.state.migration import migrate

FAILED = 1


class Order(msgspec.Struct, frozen=True):
    """Which database: the address, and the state directory."""

    database: str
    directory: str


async def run(order: Order) -> str:
    """Migrate; the words for what was done. StateError where it was not."""
    database = Database.open(order.database, Path(order.directory))
    try:
        done = await migrate(database)
    except DatabaseAwayError as error:
        raise DatabaseAwayError(f"cannot reach the database ({database.name}): {error}") from error
    finally:
        await database.close()
    if done.before == done.after:
        return f"{database.name} has version {done.after}: nothing to do"
    return f"{database.name} migrated: {done.before} → {done.after}"


def main(data: bytes) -> int:
    """Do what `data` orders; the exit code."""
    try:
        sys.stdout.write(asyncio.run(run(msgspec.msgpack.decode(data, type=Order))) + "\n")
    except (StateError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return FAILED
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.stdin.buffer.read()))
