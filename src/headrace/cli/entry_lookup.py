"""Finds one exchange for the commands that show or check it: its entry, or how far it has come where it is open.

    database ──not there──▶ journals: what is not ingested yet ──not there──▶ database again: ingested meanwhile

The newest entry is the newest of both. A database that cannot be asked is said, and the journals are still looked at.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import typer

from headrace.cli.configuration import BAD_FILE, DEFAULT_FILE
from headrace.cli.output import fail
from headrace.config.draft import load_state
from headrace.config.errors import ConfigError
from headrace.journal.reader import read_all
from headrace.model.entry import Checkpoint, Entry, Opened
from headrace.state.database import Database
from headrace.state.errors import StateError
from headrace.state.ledger import Ledger

LAST = "last"

IdArgument = Annotated[
    str, typer.Argument(metavar="ID", help="The id of the response's x-request-id header; `last` for the newest.")
]
StateChoice = Annotated[
    Path | None, typer.Option("--state", metavar="DIR", help="The state directory, instead of a configuration file.")
]
Report = Callable[[str], None]
"""Is told, in a sentence, what could not be looked at."""


@dataclass(frozen=True, slots=True)
class OpenExchange:
    """An exchange without an entry: it runs, or its process died and that is not settled yet."""

    opened: Opened
    reached: Checkpoint | None


@dataclass(frozen=True, slots=True)
class StatePlace:
    """Where a gateway keeps its record; `database` is an address, or nothing for SQLite in the directory."""

    directory: Path
    database: str = field(default="", repr=False)


def state_place(config: Path | None, state: Path | None) -> StatePlace:
    """The state that the options name. Ends the command where both are given, or the file is bad."""
    if config is not None and state is not None:
        raise typer.BadParameter("give either --config or --state")
    if state is not None:
        return StatePlace(state)
    try:
        return place_of_file(config or DEFAULT_FILE)
    except ConfigError as error:
        fail(str(error), BAD_FILE)


def place_of_file(path: Path) -> StatePlace:
    """The state of a configuration file. Raises ConfigError."""
    settings = load_state(path)
    return StatePlace(Path(settings.directory), settings.database)


def look_up(config: Path | None, state: Path | None, id: str) -> Entry | OpenExchange:
    """The exchange `id`, or the newest that has ended for `last`. Ends the command where there is none."""
    place = state_place(config, state)
    try:
        found = asyncio.run(find(place, id, _say))
    except OSError as error:
        fail(f"cannot read the journal in {place.directory}: {error.strerror or error}")
    if found is None:
        fail(_missing(place, id))
    return found


async def find(place: StatePlace, id: str, report: Report) -> Entry | OpenExchange | None:
    """The exchange `id`, or for `last` the newest that has ended. OSError where the journals cannot be read."""
    async with _ledger(place, report) as ledger:
        stored = await _stored(ledger, id, report)
        if stored.entry is not None and id != LAST:
            return stored.entry
        seen = stored.and_(_written(place.directory, id))
        if seen.entry is None and id != LAST:
            seen = seen.and_(await _stored(ledger, id, report))
    if seen.entry is not None or seen.opened is None:
        return seen.entry
    return OpenExchange(seen.opened, seen.reached)


@dataclass(frozen=True, slots=True)
class _Seen:
    """What is known of one exchange, from one place or several."""

    entry: Entry | None = None
    opened: Opened | None = None
    reached: Checkpoint | None = None

    def and_(self, other: "_Seen") -> "_Seen":
        """The newer entry, and the checkpoint that is further."""
        entries = [one for one in (self.entry, other.entry) if one is not None]
        reached = [one for one in (self.reached, other.reached) if one is not None]
        return _Seen(
            max(entries, key=lambda one: one.at, default=None),
            self.opened or other.opened,
            max(reached, key=lambda one: one.duration_s, default=None),
        )


@asynccontextmanager
async def _ledger(place: StatePlace, report: Report) -> AsyncIterator[Ledger | None]:
    """The ledger, or None where there is no database yet; asking does not make one."""
    try:
        database = Database.open(place.database, place.directory)
    except ValueError as error:
        report(str(error))
        yield None
        return
    if _is_absent(database):
        yield None
        return
    try:
        yield Ledger(database)
    finally:
        await database.close()


def _is_absent(database: Database) -> bool:
    return database.is_sqlite and not Path(database.name).exists()


async def _stored(ledger: Ledger | None, id: str, report: Report) -> _Seen:
    """What the database has."""
    if ledger is None:
        return _Seen()
    try:
        entry = await (ledger.last() if id == LAST else ledger.entry(id))
        if entry is not None or id == LAST:
            return _Seen(entry)
        for one in await ledger.open_exchanges():
            if one.opened.id == id:
                return _Seen(None, one.opened, one.reached)
    except StateError as error:
        report(f"the database cannot be asked ({error}); only what is not ingested yet is looked at")
    return _Seen()


def _written(directory: Path, id: str) -> _Seen:
    """What the journals have that are still there."""
    seen = _Seen()
    for record in read_all(directory):
        if isinstance(record, Entry):
            if id in (record.id, LAST):
                seen = seen.and_(_Seen(entry=record))
        elif record.id == id:
            seen = seen.and_(_Seen(opened=record) if isinstance(record, Opened) else _Seen(reached=record))
    return seen


def _say(sentence: str) -> None:
    typer.echo(sentence, err=True)


def _missing(place: StatePlace, id: str) -> str:
    if not (place.directory / "journal").is_dir() and not place.database:
        return f"there is no journal in {place.directory}; name the gateway's state directory with --state"
    if id == LAST:
        return f"no exchange has ended yet in {place.directory}"
    return f"no exchange {id} in {place.directory}; `headrace explain last` shows the newest"
