"""Statements for many rows at once: compiled once, their rows handed to the driver as they are.

SQLAlchemy's own way builds a dict for each row and looks at each value; for the ledger's 31 columns that costs more
than the insert itself.
"""

from collections.abc import Sequence

from sqlalchemy import Delete, Dialect, Insert, Table, Update, bindparam, delete, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection
from sqlalchemy.sql.dml import ReturningUpdate

from headrace.state import schema
from headrace.state.changes import Row


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
    """The bulk statements of the ledger, in the dialect of one database."""

    def __init__(self, dialect: Dialect) -> None:
        insert = sqlite.insert if dialect.name == "sqlite" else postgresql.insert

        def new(table: Table) -> Bulk:
            return Bulk(insert(table).on_conflict_do_nothing(), names_of(table), dialect)

        self.begin = new(schema.incarnation)
        self.move = _move()
        self.add_entries = new(schema.entry)
        self.add_open = new(schema.open_exchange)
        opened = schema.open_exchange.c
        whose = opened.id == bindparam("whose")
        self.reach = Bulk(
            update(schema.open_exchange).where(whose).values(reached=bindparam("reached")),
            ["reached", "whose"],
            dialect,
        )
        self.close = Bulk(delete(schema.open_exchange).where(whose), ["whose"], dialect)


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
        )
        .returning(table.c.damaged_bytes)
    )
