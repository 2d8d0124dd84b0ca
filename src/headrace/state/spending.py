"""What budgets count: the ledger's amounts by key and by owner, hour and journal, written with the entries themselves.

    entries of a batch ──by subject and hour──▶ rows of the journal that they came from      one transaction with them
    entries rated again ──differences──▶ rows of `CORRECTIONS`                               likewise

    a journal is told apart    while its worker lives, and for a day and more afterwards
              │ when another one begins, a day after its end or later
              ▼
    `settled`, for good

It stands in the database which journals are settled, so nobody's clock takes that back.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Select, and_, case, func, or_, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace.model.allowance import CORRECTIONS, Spent, purse_of, window_end
from headrace.model.entry import Entry
from headrace.model.limits import Window
from headrace.state import schema
from headrace.state.database import Database
from headrace.state.rows import Row, counted_column, moment_column, text_column, within_63_bits
from headrace.state.sums import halves, whole

TOLD_APART_S: Final = 86_400.0
"""After its worker's end: by then nobody holds amounts of it that the ledger has not told."""
KEY: Final = "key"
OWNER: Final = "owner"
_HOUR_S: Final = 3600
_SETTLED: Final = ""
_NAMES: Final = 500
"""That one statement asks for."""


Subject = tuple[str, str, int]
"""Whose amount, in which hour: `KEY` or `OWNER`, the name, and when the hour begins in seconds since the epoch."""


class Purse(NamedTuple):
    """One budget in one window."""

    kind: str
    """`KEY` or `OWNER`."""
    name: str
    window: Window
    start: int
    """Of the window, as `model.allowance.window_start` has it."""

    @property
    def text(self) -> str:
        """As it is called elsewhere."""
        return purse_of(f"{self.kind}:{self.name}", self.window, self.start)


def amounts_of(entries: Iterable[Entry]) -> Mapping[Subject, int]:
    """What entries count for their keys and owners, by the hour in which each began."""
    amounts: dict[Subject, int] = defaultdict(int)
    for entry in entries:
        if counted := counted_column(entry.money):
            add(amounts, entry, counted)
    return amounts


def add(amounts: dict[Subject, int], entry: Entry, amount: int) -> None:
    """Add an amount to those of the entry's key, and of its owner if it has one."""
    hour = int(moment_column(entry.at)) // _HOUR_S * _HOUR_S
    amounts[KEY, text_column(entry.key), hour] += amount
    if entry.owner:
        amounts[OWNER, text_column(entry.owner), hour] += amount


def spending_rows(amounts: Mapping[Subject, int], node: str, slot: int, incarnation: str) -> list[Row]:
    """The columns of `schema.spending`, in their order; the rows in an order in which nobody blocks another."""
    return [
        (*subject, node, slot, incarnation, within_63_bits(amount))
        for subject, amount in sorted(amounts.items())
        if amount
    ]


async def settle_ended(connection: AsyncConnection, now: float) -> None:
    """Tell journals no longer apart that have ended a day before `now` or earlier."""
    table = schema.incarnation.c
    is_over = func.coalesce(table.ended_at, 0.0) < now - TOLD_APART_S
    await connection.execute(
        update(schema.incarnation).where(table.ended, ~table.settled, is_over).values(settled=True)
    )


async def spent(database: Database, purses: Sequence[Purse]) -> tuple[Spent, ...]:
    """What the ledger has of each, in the order of the question, all as of one moment.

    The part of a journal only grows, and once it is in `settled` it stays there; the part `CORRECTIONS` goes up and
    down, and may be negative.
    """
    parts: dict[Purse, dict[str, int]] = {purse: {} for purse in purses}
    asked: dict[tuple[str, Window, int], list[str]] = defaultdict(list)
    for purse in parts:
        asked[purse.kind, purse.window, purse.start].append(purse.name)
    async with database.reading() as connection:
        for (kind, window, start), names in asked.items():
            for begin in range(0, len(names), _NAMES):
                rows = await connection.execute(question(kind, names[begin : begin + _NAMES], window, start))
                for row in rows:
                    parts[Purse(kind, row.name, window, start)][row.part] = whole(row, "amount")
    return tuple(_spent(purse, parts[purse]) for purse in purses)


def question(kind: str, names: Sequence[str], window: Window, start: int) -> Select[Any]:
    """What is there of the subjects' budgets in one window: `name`, `part`, and the halves of `amount`."""
    table, journal = schema.spending.c, schema.incarnation.c
    of_journal = and_(
        journal.node == table.node, journal.slot == table.slot, journal.name == table.incarnation, ~journal.settled
    )
    is_apart = or_(table.incarnation == CORRECTIONS, journal.name.is_not(None))
    part = case((is_apart, table.incarnation), else_=_SETTLED).label("part")
    query = select(table.name, part, *halves(table.amount, "amount"))
    query = query.select_from(schema.spending.outerjoin(schema.incarnation, of_journal))
    query = query.where(table.kind == kind, table.name.in_(names), table.hour >= start)
    if (end := window_end(window, start)) is not None:
        query = query.where(table.hour < end)
    return query.group_by(table.name, "part")


def _spent(purse: Purse, parts: dict[str, int]) -> Spent:
    apart = {name: within_63_bits(amount) for name, amount in parts.items() if name != _SETTLED}
    return Spent(purse=purse.text, settled=within_63_bits(parts.get(_SETTLED, 0)), parts=apart)
