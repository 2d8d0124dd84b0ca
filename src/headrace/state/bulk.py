"""Statements for many rows at once: compiled once, their rows handed to the driver as they are.

SQLAlchemy's own way builds a dict for each row and looks at each value; for the ledger's 43 columns that costs more
than the insert itself.
"""

from collections.abc import Sequence

from sqlalchemy import (
    BigInteger,
    Delete,
    Dialect,
    Insert,
    Table,
    Update,
    and_,
    bindparam,
    case,
    delete,
    literal_column,
    update,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from headrace.state import schema
from headrace.state.rows import MOST_COUNT, Row


class Bulk:
    """One statement of which each row gives all parameters, in the order of `names`."""

    def __init__(self, statement: Insert | Update | Delete, names: Sequence[str], dialect: Dialect) -> None:
        compiled = statement.compile(dialect=dialect)
        order = compiled.positiontup or []
        if list(names) != list(order):
            raise ValueError(f"rows come as {names}, the statement takes {order}")
        self._text = str(compiled)

    async def run(self, connection: AsyncConnection, rows: Sequence[Row]) -> None:
        """Run it for each row; not at all for none."""
        if rows:
            await connection.exec_driver_sql(self._text, list(rows))


def names_of(table: Table) -> list[str]:
    """Its columns, in order."""
    return [column.name for column in table.columns]


class Statements:
    """The bulk statements of the ledger, in the dialect of one database. Rows of `add_entries` and `amend` must be new;
    of `begin` and `add_open` those that are not are passed over."""

    def __init__(self, dialect: Dialect) -> None:

        def missing(table: Table) -> Bulk:
            return Bulk(_insert(table, dialect).on_conflict_do_nothing(), names_of(table), dialect)

        def new(table: Table) -> Bulk:
            return Bulk(_insert(table, dialect), names_of(table), dialect)

        self.begin = missing(schema.incarnation)
        self.move = _move()
        self.add_entries = new(schema.entry)
        self.amend = new(schema.amendment)
        self.spend = Bulk(_spend(dialect), names_of(schema.spending), dialect)
        self.add_open = missing(schema.open_exchange)
        opened = schema.open_exchange.c
        whose = opened.id == bindparam("whose")
        self.reach = Bulk(
            update(schema.open_exchange).where(whose).values(reached=bindparam("reached")),
            ["reached", "whose"],
            dialect,
        )
        self.close = Bulk(delete(schema.open_exchange).where(whose), ["whose"], dialect)


def _insert(table: Table, dialect: Dialect) -> sqlite.Insert | postgresql.Insert:
    return sqlite.insert(table) if dialect.name == "sqlite" else postgresql.insert(table)


def _spend(dialect: Dialect) -> Insert:
    """Adds an amount to what one journal has of a subject in an hour. What passes 63 bits stays at their end:
    PostgreSQL would refuse it, and SQLite make it a binary fraction."""
    statement = _insert(schema.spending, dialect)
    now, more = schema.spending.c.amount, statement.excluded.amount
    most, nothing = literal_column(str(MOST_COUNT), BigInteger), literal_column("0", BigInteger)
    amount = case(
        (and_(more > nothing, now > most - more), most),
        (and_(more < nothing, now < -most - more), -most),
        else_=now + more,
    )
    return statement.on_conflict_do_update(index_elements=schema.spending.primary_key.columns, set_={"amount": amount})


def _move() -> ReturningUpdate[int]:
    """Sets an incarnation's position where it is still the expected one; returns its damaged bytes, or nothing."""
    table = schema.incarnation
    return (
        update(table)
        .where(
            table.c.node == bindparam("of_node"),
            table.c.slot == bindparam("of_slot"),
            table.c.name == bindparam("of_name"),
            table.c.segment == bindparam("from_segment"),
            table.c.byte == bindparam("from_byte"),
            ~table.c.ended,
        )
        .values(
            segment=bindparam("to_segment"),
            byte=bindparam("to_byte"),
            damaged_bytes=table.c.damaged_bytes + bindparam("damaged"),
            ended=bindparam("has_ended"),
            ended_at=bindparam("ended_now"),
        )
        .returning(table.c.damaged_bytes)
    )
