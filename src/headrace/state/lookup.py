"""Finds one exchange: its entry, or how far it has come where it is open.

    database ──not there──▶ journals: what is not ingested yet ──not there──▶ database again: ingested meanwhile

The newest entry is the newest of both. A database that cannot be asked is said, and the journals are still looked at.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from headrace.journal.reader import read_all
from headrace.model.entry import Checkpoint, Entry, Opened
from headrace.state.database import Database
from headrace.state.errands import Amended, FoundEntry, FoundOpen
from headrace.state.errors import StateError
from headrace.state.ledger import Ledger

LAST = "last"
POLL_S = 0.05

Report = Callable[[str], None]
"""Is told, in a sentence, what could not be looked at."""


async def find(
    database: Database, directory: Path, id: str, report: Report, wait_s: float = 0.0
) -> FoundEntry | FoundOpen | None:
    """The exchange `id`, or for `last` the newest that has ended; asking makes no database.

    An entry that is not there is waited for, at most so long: it is written when its exchange has ended. OSError where
    the journals in `directory` cannot be read.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.time() + wait_s
    while True:
        found = await _look(database, directory, id, report)
        if isinstance(found, FoundEntry) or loop.time() >= deadline:
            return found
        await asyncio.sleep(POLL_S)


def is_there(database: Database) -> bool:
    """Whether there is anything to ask: the file of SQLite may not be made yet."""
    return not database.is_sqlite or Path(database.name).exists()


async def _look(database: Database, directory: Path, id: str, report: Report) -> FoundEntry | FoundOpen | None:
    ledger = Ledger(database) if is_there(database) else None
    stored = await _stored(ledger, id, report)
    if stored.entry is not None and id != LAST:
        return stored.entry
    seen = stored.and_(_written(directory, id))
    if seen.entry is None and id != LAST:
        seen = seen.and_(await _stored(ledger, id, report))
    if seen.entry is not None:
        return seen.entry
    return FoundOpen(seen.opened, seen.reached) if seen.opened is not None else None


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of one exchange, from one place or several."""

    entry: FoundEntry | None = None
    opened: Opened | None = None
    reached: Checkpoint | None = None

    def and_(self, other: "_Seen") -> "_Seen":
        """The newer entry, and the checkpoint that is further."""
        entries = [one for one in (self.entry, other.entry) if one is not None]
        reached = [one for one in (self.reached, other.reached) if one is not None]
        return _Seen(
            max(entries, key=lambda one: one.entry.at, default=None),
            self.opened or other.opened,
            max(reached, key=lambda one: one.duration_s, default=None),
        )


async def _stored(ledger: Ledger | None, id: str, report: Report) -> _Seen:
    """What the database has."""
    if ledger is None:
        return _Seen()
    try:
        if id == LAST:
            last = await ledger.last()
            return await _line(ledger, last.id) if last is not None else _Seen()
        seen = await _line(ledger, id)
        if seen.entry is not None:
            return seen
        for one in await ledger.open_exchanges():
            if one.opened.id == id:
                return _Seen(None, one.opened, one.reached)
    except StateError as error:
        report(f"the database cannot be asked ({error}); only what is not ingested yet is looked at")
    return _Seen()


async def _line(ledger: Ledger, id: str) -> _Seen:
    line = await ledger.line(id)
    if line is None:
        return _Seen()
    amended = None
    if line.amended_at is not None:
        amended = Amended(original=line.original, revision=line.revision, at=line.amended_at, reason=line.reason)
    return _Seen(FoundEntry(line.entry, amended))


def _written(directory: Path, id: str) -> _Seen:
    """What the journals have that are still there."""
    seen = _Seen()
    for record in read_all(directory):
        if isinstance(record, Entry):
            if id in (record.id, LAST):
                seen = seen.and_(_Seen(entry=FoundEntry(record)))
        elif record.id == id:
            seen = seen.and_(_Seen(opened=record) if isinstance(record, Opened) else _Seen(reached=record))
    return seen
