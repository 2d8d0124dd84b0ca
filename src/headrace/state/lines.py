"""Entries as they count: each with the amounts of its newest amendment, and what it was written with.

entry ──no amendment──▶ its own money, revision 0
  └──── newest amendment ──▶ that one's money, its revision
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Row, Text, and_, case, cast, exists, func, literal, select, tuple_
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace.model.entry import Entry, Money
from headrace.state import schema
from headrace.state.database import Database

PAGE = 500
"""Rows that one statement of a long listing brings."""
Place = tuple[float, str]
"""Where a line stands in the order: the columns `at` and `id`."""
_entry = msgspec.msgpack.Decoder(Entry).decode
_money = msgspec.msgpack.Decoder(Money).decode

_newest = schema.amendment.alias("newest")
_later = schema.amendment.alias("later")
BOOKED = schema.entry.outerjoin(
    _newest,
    and_(
        _newest.c.id == schema.entry.c.id,
        ~exists().where(_later.c.id == _newest.c.id, _later.c.revision == _newest.c.revision + 1),
    ),
)
"""Each entry beside its newest amendment: revisions have no gaps. Both databases find it by the key alone."""


def booked(name: str) -> ColumnElement[Any]:
    """The column `name` of money, as it counts. Null may be what counts, so it is not passed over."""
    return case((_newest.c.id.is_(None), schema.entry.c[name]), else_=_newest.c[name])


@dataclass(frozen=True, slots=True)
class EntryFilter:
    """Which entries are meant; None, and no labels, narrow nothing. Times are seconds since the epoch, of [since,
    until)."""

    since: float | None = None
    until: float | None = None
    id: str | None = None
    key: str | None = None
    owner: str | None = None
    model: str | None = None
    channel: str | None = None
    """Where the last attempt went."""
    protocol: str | None = None
    end: str | None = None
    labels: tuple[tuple[str, str], ...] = ()
    """All of them."""
    has_unknown_cost: bool = False

    def conditions(self, database: Database) -> Iterator[ColumnElement[bool]]:
        """For a query over `schema.entry`, with or without `BOOKED`."""
        table = schema.entry.c
        if self.since is not None:
            yield table.at >= self.since
        if self.until is not None:
            yield table.at < self.until
        for name in ("id", "key", "owner", "model", "channel", "protocol", "end"):
            if (value := getattr(self, name)) is not None:
                yield table[name] == value
        for name, value in self.labels:
            yield label_value(name, database) == value
        if self.has_unknown_cost:
            yield _has_unknown_cost()


EVERY = EntryFilter()


@dataclass(frozen=True, slots=True)
class LedgerLine:
    """One entry as it counts."""

    entry: Entry
    """With the money of the newest revision."""
    original: Money
    """What it was written with."""
    revision: int = 0
    """How often it was rated again."""
    amended_at: float | None = None
    reason: str = ""
    """Why it was rated again the last time."""


async def lines(
    database: Database, where: EntryFilter, limit: int | None = None, *, newest_first: bool = False
) -> AsyncIterator[LedgerLine]:
    """The lines in the order in which the exchanges began.

    They are read a page at a time, each a transaction of its own, so a long listing holds up nobody; entries that come
    meanwhile may or may not be in it.
    """
    after: Place | None = None
    left = limit
    while left is None or left > 0:
        size = PAGE if left is None else min(PAGE, left)
        async with database.reading() as connection:
            page, after = await read_page(connection, database, where, after, size, newest_first=newest_first)
        for line in page:
            yield line
        if len(page) < size:
            return
        left = None if left is None else left - size


async def read_page(
    connection: AsyncConnection,
    database: Database,
    where: EntryFilter,
    after: Place | None,
    size: int,
    *,
    newest_first: bool = False,
) -> tuple[list[LedgerLine], Place | None]:
    """The next `size` lines behind `after`, in the order of beginnings and ids, and the place of the last."""
    table = schema.entry.c
    order = (table.at.desc(), table.id.desc()) if newest_first else (table.at, table.id)
    query = select(table.at, table.id, table.record).where(*where.conditions(database)).order_by(*order).limit(size)
    if after is not None:
        place = tuple_(table.at, table.id)
        query = query.where(place < tuple_(*after) if newest_first else place > tuple_(*after))
    rows = (await connection.execute(query)).all()
    # Asked for apart: joined, PostgreSQL joins the whole ledger for each page of it.
    amended = await _amendments(connection, [row.id for row in rows])
    return [_line(row.record, amended.get(row.id)) for row in rows], (rows[-1].at, rows[-1].id) if rows else after


async def _amendments(connection: AsyncConnection, ids: Sequence[str]) -> dict[str, Row[Any]]:
    """The newest of each entry that has one."""
    table = schema.amendment
    query = select(table).where(table.c.id.in_(ids)).order_by(table.c.revision)
    return {row.id: row for row in await connection.execute(query)}


def label_value(name: str, database: Database) -> ColumnElement[Any]:
    """The value of an entry's label; null where it has none of the name."""
    labels = schema.entry.c.labels
    if not database.is_sqlite:
        return cast(labels, JSONB).op("->>", return_type=Text())(literal(name, Text()))
    each = func.json_each(labels).table_valued("key", "value")
    return select(each.c.value).where(each.c.key == name).scalar_subquery()


def _has_unknown_cost() -> ColumnElement[bool]:
    """By a look at the amendments of each entry, so that a page needs only those before its end."""
    entry, amendment = schema.entry.c, schema.amendment.c
    newest = select(amendment.cost.is_(None)).where(amendment.id == entry.id)
    newest = newest.order_by(amendment.revision.desc()).limit(1)
    return func.coalesce(newest.scalar_subquery(), entry.cost.is_(None))


def _line(record: bytes, amendment: Row[Any] | None) -> LedgerLine:
    entry = _entry(record)
    if amendment is None:
        return LedgerLine(entry, entry.money)
    counts = msgspec.structs.replace(entry, money=_money(amendment.money))
    return LedgerLine(counts, entry.money, amendment.revision, amendment.at, amendment.reason)
