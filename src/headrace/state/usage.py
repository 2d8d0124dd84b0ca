"""Reports over the ledger: tokens and money by key, model, day and the like, added up in the database, to the unit."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Final

from sqlalchemy import BigInteger, ColumnElement, Row, Select, case, cast, collate, func, literal_column, select

from headrace.state import schema
from headrace.state.database import Database
from headrace.state.lines import BOOKED, EVERY, EntryFilter, booked, label_value
from headrace.state.sums import halves, whole

ESTIMATED_ORIGINS: Final = ("estimated", "upstream_partial")
"""How tokens are known where no upstream has told them all."""
_TOKENS: Final = ("input_total", "cached_input", "cache_write", "output_total", "reasoning")
_MONEY: Final = ("cost", "charge")
_DAY_S: Final = literal_column("86400", BigInteger)


class Group(Enum):
    """What a report is divided by, beside labels."""

    KEY = "key"
    OWNER = "owner"
    MODEL = "model"
    CHANNEL = "channel"
    """Where the last attempt went."""
    PROTOCOL = "protocol"
    END = "end"
    DAY = "day"
    """In UTC, as 2026-12-31."""


@dataclass(frozen=True, slots=True)
class LabelGroup:
    """By the value of the label `name`; empty where an entry has none."""

    name: str


@dataclass(frozen=True, slots=True)
class UsageQuery:
    """Which entries, and by what they are put together; by nothing: all in one row, none where there is no entry."""

    group_by: Sequence[Group | LabelGroup] = ()
    where: EntryFilter = EVERY
    limit: int | None = None
    """Rows, at most: the first in the order of their groups."""


@dataclass(frozen=True, slots=True)
class UsageRow:
    """The entries of one group. Amounts are nano-units, as amended; what is not known counts for 0 in them."""

    groups: tuple[str, ...]
    """In the order of the question."""
    entries: int
    estimated: int
    """Entries whose tokens are wholly or partly estimated."""
    unknown_cost: int
    """Entries whose cost is not known."""
    input: int
    """All input tokens; the next two are parts of them."""
    cached_input: int
    cache_write: int
    output: int
    """All output tokens; the next are a part of them."""
    reasoning: int
    cost: int
    charge: int


async def usage(database: Database, query: UsageQuery) -> tuple[UsageRow, ...]:
    """The rows, in the order of their groups' values. DatabaseAwayError where it cannot be asked."""
    async with database.reading() as connection:
        rows = (await connection.execute(_statement(database, query))).all()
    return tuple(_row(query.group_by, row) for row in rows)


def _statement(database: Database, query: UsageQuery) -> Select[Any]:
    names = [f"group_{number}" for number in range(len(query.group_by))]
    groups = [_group(one, database).label(name) for name, one in zip(names, query.group_by, strict=True)]
    table = schema.entry.c
    counts = (
        func.count().label("entries"),
        _count_of(table.usage_origin.in_(ESTIMATED_ORIGINS)).label("estimated"),
        _count_of(booked("cost").is_(None)).label("unknown_cost"),
    )
    tokens = [half for name in _TOKENS for half in halves(table[name], name)]
    money = [half for name in _MONEY for half in halves(booked(name), name)]
    statement = select(*groups, *counts, *tokens, *money).select_from(BOOKED)
    statement = statement.where(*query.where.conditions(database)).group_by(*names).order_by(*names)
    return statement.having(func.count() > 0).limit(query.limit)


def _count_of(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.count(case((condition, literal_column("1"))))


def _group(group: Group | LabelGroup, database: Database) -> ColumnElement[Any]:
    """What rows are put together and ordered by: by code points in both databases, wherever the server thinks it is."""
    if group is Group.DAY:
        return _day(database)
    if isinstance(group, Group):
        value: ColumnElement[Any] = schema.entry.c[group.value]
    else:
        value = func.coalesce(label_value(group.name, database), "")
    return value if database.is_sqlite else collate(value, "C")


def _day(database: Database) -> ColumnElement[int]:
    """Days since the epoch. By whole seconds: PostgreSQL's cast alone would round, and SQLite may have no `floor`."""
    at = schema.entry.c.at
    return cast(at if database.is_sqlite else func.floor(at), BigInteger).op("/")(_DAY_S)


def _row(group_by: Sequence[Group | LabelGroup], row: Row[Any]) -> UsageRow:
    values = [getattr(row, f"group_{number}") for number in range(len(group_by))]
    return UsageRow(
        groups=tuple(
            _date(value) if group is Group.DAY else value for group, value in zip(group_by, values, strict=True)
        ),
        entries=row.entries,
        estimated=row.estimated,
        unknown_cost=row.unknown_cost,
        input=whole(row, "input_total"),
        cached_input=whole(row, "cached_input"),
        cache_write=whole(row, "cache_write"),
        output=whole(row, "output_total"),
        reasoning=whole(row, "reasoning"),
        cost=whole(row, "cost"),
        charge=whole(row, "charge"),
    )


def _date(day: int) -> str:
    return datetime.fromtimestamp(day * 86400, UTC).date().isoformat()
