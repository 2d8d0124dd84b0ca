"""What other processes ask of the database, and what they are told: messages only, no database.

    asker ──Opening, order, order …──▶ python -m headrace.state      stdin; each in a frame (`link.frame`)
    asker ◀──answers … Done | Failed── for each order in turn       stdout

A command asks so and need not carry SQLAlchemy: its import takes longer than most of what it does. The opening goes the
same way as the orders, for an address may hold a password and arguments are for all to see. The end of stdin ends the
process.
"""

from typing import TypeAlias

import msgspec

from headrace.model.catalogue import ObjectKind, StoredObject
from headrace.model.channel import Model
from headrace.model.entry import Checkpoint, Entry, Money, Opened


class Opening(msgspec.Struct, frozen=True, kw_only=True, tag="opening"):
    """Comes first, and is not answered. Which database: its address (nothing for SQLite in the state directory), the
    directory, and the gateway's secret where objects are asked for."""

    database: str
    directory: str
    secret: bytes = b""


class Migrate(msgspec.Struct, frozen=True, tag="migrate"):
    """Bring the tables to this version. Answered by `Words`."""


class FindExchange(msgspec.Struct, frozen=True, kw_only=True, tag="find_exchange"):
    """Look for an exchange, in the journals too. Answered by `Words` about what could not be looked at, and by
    `FoundEntry` or `FoundOpen` where there is one."""

    id: str
    """`last` means the newest that has ended."""
    wait_s: float = 0.0
    """So long the entry of one that is not there, or still open, is waited for."""


class ListObjects(msgspec.Struct, frozen=True, tag="list_objects"):
    """All objects. Answered by `OneObject` for each, and by `Words` about those that cannot be read."""


class CreateObject(msgspec.Struct, frozen=True, kw_only=True, tag="create_object"):
    """Add an object; failed where one of its kind and name is there. An SQLite database that is not there is made."""

    object: StoredObject


class ReplaceObject(msgspec.Struct, frozen=True, kw_only=True, tag="replace_object"):
    """Put another document in the place of `before`; failed where someone else has changed it since."""

    object: StoredObject
    before: StoredObject


class RemoveObject(msgspec.Struct, frozen=True, kw_only=True, tag="remove_object"):
    """Remove an object; failed where it is not there."""

    kind: ObjectKind
    name: str


GROUPS = ("key", "owner", "model", "channel", "protocol", "end", "day")
"""What usage can be put together by, beside labels: those stand as `label:NAME`."""
LABEL = "label:"


class AskUsage(msgspec.Struct, frozen=True, kw_only=True, tag="ask_usage"):
    """Add up what entries used. Answered by one `UsageLine` for each group, in order.

    None, and no labels, narrow nothing. Times are seconds since the epoch, of [since, until).
    """

    by: tuple[str, ...]
    since: float | None = None
    until: float | None = None
    key: str | None = None
    owner: str | None = None
    model: str | None = None
    channel: str | None = None
    protocol: str | None = None
    end: str | None = None
    labels: tuple[tuple[str, str], ...] = ()


class RateAgain(msgspec.Struct, frozen=True, kw_only=True, tag="rate_again"):
    """Rate entries again, at the prices of `models`, as they were when each exchange began. Answered by `RatedAgain`.

    None narrows nothing. Times are seconds since the epoch, of [since, until).
    """

    models: tuple[Model, ...]
    reason: str
    """Why; it stands in the ledger."""
    dry_run: bool = False
    since: float | None = None
    until: float | None = None
    model: str | None = None
    key: str | None = None
    has_unknown_cost: bool = False
    """Only those whose cost is not known."""


Change: TypeAlias = CreateObject | ReplaceObject | RemoveObject
Order: TypeAlias = Change | Migrate | FindExchange | ListObjects | AskUsage | RateAgain


class Words(msgspec.Struct, frozen=True, tag="words"):
    """A sentence for people."""

    text: str


class Amended(msgspec.Struct, frozen=True, kw_only=True):
    """That an entry was rated again, the last time."""

    original: Money
    """What it was written with."""
    revision: int
    """How often it was rated again."""
    at: float
    """Seconds since the epoch."""
    reason: str


class FoundEntry(msgspec.Struct, frozen=True, tag="found_entry"):
    """The exchange has ended; its money is what counts now."""

    entry: Entry
    amended: Amended | None = None


class FoundOpen(msgspec.Struct, frozen=True, tag="found_open"):
    """An exchange without an entry: it runs, or its process died and that is not settled yet."""

    opened: Opened
    reached: Checkpoint | None


class OneObject(msgspec.Struct, frozen=True, tag="one_object"):
    """One of the objects, its secrets in the clear."""

    object: StoredObject


class UsageLine(msgspec.Struct, frozen=True, kw_only=True, tag="usage_line"):
    """What the entries of one group used. Tokens and amounts (nano-units) are whole numbers as text: a sum may have
    more than the 64 bits of a message's number."""

    groups: tuple[str, ...]
    """In the order of the question."""
    entries: int
    estimated: int
    """Entries whose tokens are wholly or partly estimated."""
    unknown_cost: int
    """Entries whose cost is not known; they count for 0 in the amounts."""
    input: str
    cached_input: str
    """A part of `input`, as the next."""
    cache_write: str
    output: str
    reasoning: str
    """A part of `output`."""
    cost: str
    charge: str


class Amounts(msgspec.Struct, frozen=True, kw_only=True):
    """Of many entries together: nano-units, whole numbers as text."""

    cost: str
    charge: str
    unknown_cost: int
    """Entries whose cost is not known."""


class RatedAgain(msgspec.Struct, frozen=True, kw_only=True, tag="rated_again"):
    """What was done, or would be."""

    entries: int
    """Looked at."""
    amended: int
    before: Amounts
    after: Amounts


class Done(msgspec.Struct, frozen=True, tag="done"):
    """The order is done; no answer of it follows."""


class Failed(msgspec.Struct, frozen=True, tag="failed"):
    """It was not done; the text says why and what to do."""

    text: str


Answer: TypeAlias = Words | FoundEntry | FoundOpen | OneObject | UsageLine | RatedAgain | Done | Failed
