"""Rates entries again: what it finds stands in lines of their own, which supersede what the entries were written with.

    page of entries ──priced again──▶ another money? ──no──▶ nothing
          ▲                                │ yes
          │                    the next revision · the difference in `spending`     one transaction a page
          └──────────────────── until there are no more

Stopped anywhere and begun again it ends in the same: a line whose money is already so gets no other.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

from sqlalchemy import text
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace.model.allowance import CORRECTIONS
from headrace.model.entry import Entry, Money
from headrace.state.bulk import Statements
from headrace.state.database import Database
from headrace.state.lines import PAGE, EntryFilter, LedgerLine, Place, read_page
from headrace.state.rows import amendment_row, counted_column
from headrace.state.spending import Subject, add, spending_rows

_LOCK: Final = 0x68656164726174
"""PostgreSQL's number of the lock for amendments: the letters `headrat`."""


@dataclass(slots=True)
class Sums:
    """Of the entries that were looked at; nano-units."""

    cost: int = 0
    charge: int = 0
    counted: int = 0
    unknown_cost: int = 0
    """Entries."""

    def add(self, money: Money) -> None:
        """One more entry's."""
        self.cost += money.cost or 0
        self.charge += money.charge or 0
        self.counted += money.counted
        self.unknown_cost += money.cost is None


@dataclass(slots=True)
class Rerated:
    """What was done, or would be."""

    entries: int = 0
    """Looked at."""
    amended: int = 0
    before: Sums = field(default_factory=Sums)
    after: Sums = field(default_factory=Sums)


async def rerate(
    database: Database,
    where: EntryFilter,
    reprice: Callable[[Entry], Money],
    reason: str,
    now: float,
    *,
    dry_run: bool = False,
) -> Rerated:
    """Rate every entry of `where` again with `reprice`, which gets it with the money that counts. `reason` and `now`
    (seconds since the epoch) stand in the lines that it adds; with `dry_run` it adds none.

    DatabaseAwayError where the database cannot be asked: the pages before are done.
    """
    done = Rerated()
    bulk = Statements(database.engine.dialect)
    after: Place | None = None
    while True:
        async with database.reading() if dry_run else database.writing() as connection:
            if not dry_run:
                await _wait_for_others(database, connection)
            page, after = await read_page(connection, database, where, after, PAGE)
            changed = _repriced(page, reprice, done)
            if not dry_run:
                await _write(connection, bulk, changed, reason, now)
        if len(page) < PAGE:
            return done


async def _wait_for_others(database: Database, connection: AsyncConnection) -> None:
    """Two that rate the same entry again would both make its next revision. SQLite has one writer anyway."""
    if not database.is_sqlite:
        await connection.execute(text("SELECT pg_advisory_xact_lock(:lock)"), {"lock": _LOCK})


def _repriced(
    page: Sequence[LedgerLine], reprice: Callable[[Entry], Money], done: Rerated
) -> list[tuple[LedgerLine, Money]]:
    """The lines whose money is another now; all are counted in `done`."""
    changed = []
    for line in page:
        money = reprice(line.entry)
        done.entries += 1
        done.before.add(line.entry.money)
        done.after.add(money)
        if money != line.entry.money:
            done.amended += 1
            changed.append((line, money))
    return changed


async def _write(
    connection: AsyncConnection,
    bulk: Statements,
    changed: Sequence[tuple[LedgerLine, Money]],
    reason: str,
    now: float,
) -> None:
    rows = [amendment_row(line.entry.id, line.revision + 1, now, reason, money) for line, money in changed]
    await bulk.amend.run(connection, rows)
    differences: dict[Subject, int] = defaultdict(int)
    for line, money in changed:
        add(differences, line.entry, counted_column(money) - counted_column(line.entry.money))
    await bulk.spend.run(connection, spending_rows(differences, "", 0, CORRECTIONS))
