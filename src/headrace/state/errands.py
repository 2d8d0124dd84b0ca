"""What other processes ask of the database, and what they are told: messages only, no database.

    asker ──Opening, order, order …──▶ python -m headrace.state      stdin; each in a frame (`link.frame`)
    asker ◀──answers … Done | Failed── for each order in turn       stdout

A command asks so and need not carry SQLAlchemy: its import takes longer than most of what it does. The opening goes the
same way as the orders, for an address may hold a password and arguments are for all to see. The end of stdin ends the
process.
"""

from typing import TypeAlias

import msgspec

from headrace.model.entry import Checkpoint, Entry, Opened


class Opening(msgspec.Struct, frozen=True, kw_only=True, tag="opening"):
    """Comes first, and is not answered. Which database: its address (nothing for SQLite in the state directory), and
    the directory."""

    database: str
    directory: str


class Migrate(msgspec.Struct, frozen=True, tag="migrate"):
    """Bring the tables to this version. Answered by `Words`."""


class FindExchange(msgspec.Struct, frozen=True, kw_only=True, tag="find_exchange"):
    """Look for an exchange, in the journals too. Answered by `Words` about what could not be looked at, and by
    `FoundEntry` or `FoundOpen` where there is one."""

    id: str
    """`last` means the newest that has ended."""
    wait_s: float = 0.0
    """So long the entry of one that is not there, or still open, is waited for."""


Order: TypeAlias = Migrate | FindExchange


class Words(msgspec.Struct, frozen=True, tag="words"):
    """A sentence for people."""

    text: str


class FoundEntry(msgspec.Struct, frozen=True, tag="found_entry"):
    """The exchange has ended."""

    entry: Entry


class FoundOpen(msgspec.Struct, frozen=True, tag="found_open"):
    """An exchange without an entry: it runs, or its process died and that is not settled yet."""

    opened: Opened
    reached: Checkpoint | None


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The order is done; no answer of it follows."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """It was not done; the text says why and what to do."""

    text: str


Answer: TypeAlias = Words | FoundEntry | FoundOpen | Done | Failed
