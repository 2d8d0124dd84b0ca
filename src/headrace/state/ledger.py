"""The ledger: takes what journals hold, each record exactly once, and answers about exchanges.

A batch is one transaction, and its first statement moves the incarnation's position from where the batch begins to
where it ends. Only one of several that read the same journal can move it; what it takes is committed with the move or
not at all.

    position = before? ──no──▶ PositionMovedError: nothing changes
        │ yes
    position := after · entries inserted · open exchanges added, moved on, removed · ended: what is open is settled
        │
      commit
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass

import msgspec
from sqlalchemy import ColumnElement, and_, delete, func, select, tuple_
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace.journal.place import Incarnation, Position
from headrace.journal.reader import Batch
from headrace.model.entry import Checkpoint, Entry, Opened, lost_entry
from headrace.state import schema
from headrace.state.bulk import Statements
from headrace.state.changes import (
    JOURNAL_DAMAGED,
    WORKER_LOST,
    Changes,
    changes_from_records,
    entry_row,
    id_column,
    opened_row,
    reached_row,
)
from headrace.state.database import Database
from headrace.state.errors import PositionMovedError

PAGE = 500
"""Rows that one statement of a long listing brings."""
START = Position()
_entry = msgspec.msgpack.Decoder(Entry).decode
_opened = msgspec.msgpack.Decoder(Opened).decode
_checkpoint = msgspec.msgpack.Decoder(Checkpoint).decode


@dataclass(frozen=True, slots=True)
class Progress:
    """How far an incarnation's journal has been taken. `ended`: to its end, and the process is dead."""

    position: Position = START
    ended: bool = False
    damaged_bytes: int = 0


@dataclass(frozen=True, slots=True)
class OpenExchange:
    """An exchange that has begun and has no entry yet, as far as the journals have been taken."""

    node: str
    slot: int
    incarnation: str
    opened: Opened
    reached: Checkpoint | None


@dataclass(frozen=True, slots=True)
class EndCount:
    """How many exchanges ended so."""

    end: str
    entries: int


class Ledger:
    """The ledger in one database. Every method raises DatabaseAwayError where that cannot be asked."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bulk = Statements(database.engine.dialect)

    # ---- taking

    async def progress(self, source: Incarnation) -> Progress:
        """How far its journal has been taken."""
        async with self._database.reading() as connection:
            found = await connection.execute(select(schema.incarnation).where(_is(source)))
            row = found.first()
        if row is None:
            return Progress()
        return Progress(Position(row.segment, row.byte), row.ended, row.damaged_bytes)

    async def take(self, source: Incarnation, before: Position, batch: Batch) -> tuple[Entry, ...]:
        """Take a batch that begins at `before`, in one transaction. Returns the entries that it had to make itself, of
        exchanges whose process has ended without writing theirs.

        PositionMovedError where the journal has been taken further, or otherwise, already. After a DatabaseAwayError it
        is not known whether the batch was taken: `progress` tells.
        """
        changes = changes_from_records(batch.records)
        async with self._database.writing() as connection:
            damaged = await self._move(connection, source, before, batch)
            settled = await self._settle(connection, source, changes, damaged > 0) if batch.ended else []
            await self._write(connection, source, changes)
        return tuple(settled)

    async def _move(self, connection: AsyncConnection, source: Incarnation, before: Position, batch: Batch) -> int:
        """Compare and set the position. Returns how many damaged bytes its journal has had in all."""
        if before == START:
            begun = (source.node, source.slot, source.name, START.segment, START.offset, 0, False)
            await self._bulk.begin.run(connection, [begun])
        values = {
            "of_node": source.node,
            "of_slot": source.slot,
            "of_name": source.name,
            "from_segment": before.segment,
            "from_byte": before.offset,
            "to_segment": batch.after.segment,
            "to_byte": batch.after.offset,
            "damaged": batch.damaged_bytes,
            "has_ended": batch.ended,
        }
        total = (await connection.execute(self._bulk.move, values)).scalar()
        if total is None:
            raise PositionMovedError(f"the journal {source.node}/{source.slot}/{source.name} has been taken further")
        return total

    async def _settle(
        self, connection: AsyncConnection, source: Incarnation, changes: Changes, is_damaged: bool
    ) -> list[Entry]:
        """Make entries of all that its incarnation has open, before this batch and in it."""
        await self._bulk.reach.run(connection, [reached_row(one) for one in changes.reached.values()])
        changes.reached.clear()
        await self._bulk.close.run(connection, [(id_column(id),) for id in changes.closed])
        changes.closed.clear()
        table = schema.open_exchange
        rows = (await connection.execute(select(table.c.opened, table.c.reached).where(_opened_by(source)))).all()
        await connection.execute(delete(table).where(_opened_by(source)))
        left = [(_opened(row.opened), _checkpoint(row.reached) if row.reached else None) for row in rows]
        reason = JOURNAL_DAMAGED if is_damaged else WORKER_LOST
        settled = [lost_entry(opened, reached, reason) for opened, reached in (*left, *changes.opened.values())]
        changes.opened.clear()
        changes.entries += settled
        return settled

    async def _write(self, connection: AsyncConnection, source: Incarnation, changes: Changes) -> None:
        node, slot, name = source.node, source.slot, source.name
        bulk = self._bulk
        await bulk.add_entries.run(connection, [entry_row(one, node, slot) for one in changes.entries])
        await bulk.add_open.run(
            connection, [opened_row(opened, at, node, slot, name) for opened, at in changes.opened.values()]
        )
        await bulk.reach.run(connection, [reached_row(one) for one in changes.reached.values()])
        await bulk.close.run(connection, [(id_column(id),) for id in changes.closed])

    # ---- asking

    async def entry(self, id: str) -> Entry | None:
        """The entry of one exchange; None where there is none."""
        async with self._database.reading() as connection:
            record = (await connection.execute(select(schema.entry.c.record).where(schema.entry.c.id == id))).scalar()
        return _entry(record) if record is not None else None

    async def last(self) -> Entry | None:
        """The newest entry, by when its exchange began."""
        return await anext(aiter(self.entries(limit=1, newest_first=True)), None)

    async def entries(
        self,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
        *,
        newest_first: bool = False,
    ) -> AsyncIterator[Entry]:
        """Entries of exchanges that began in [since, until), seconds since the epoch, in order of that.

        They are read a page at a time, each a transaction of its own, so a long listing holds up nobody; entries that
        come meanwhile may or may not be in it.
        """
        table = schema.entry.c
        at_and_id = tuple_(table.at, table.id)
        query = select(table.at, table.id, table.record).where(*_within(since, until))
        query = query.order_by(*((table.at.desc(), table.id.desc()) if newest_first else (table.at, table.id)))
        page = query
        left = limit
        while left is None or left > 0:
            size = PAGE if left is None else min(PAGE, left)
            async with self._database.reading() as connection:
                rows = (await connection.execute(page.limit(size))).all()
            for row in rows:
                yield _entry(row.record)
            if len(rows) < size:
                return
            left = None if left is None else left - size
            after = tuple_(rows[-1].at, rows[-1].id)
            page = query.where(at_and_id < after if newest_first else at_and_id > after)

    async def open_exchanges(self) -> tuple[OpenExchange, ...]:
        """All that have begun and have no entry, oldest first. One whose journal is gone stays among them: how it ended
        is not known."""
        table = schema.open_exchange.c
        async with self._database.reading() as connection:
            rows = (await connection.execute(select(schema.open_exchange).order_by(table.at, table.id))).all()
        return tuple(
            OpenExchange(
                row.node,
                row.slot,
                row.incarnation,
                _opened(row.opened),
                _checkpoint(row.reached) if row.reached else None,
            )
            for row in rows
        )

    async def counts(self, since: float | None = None, until: float | None = None) -> tuple[EndCount, ...]:
        """How exchanges that began in [since, until) ended, in the order of the words."""
        table = schema.entry.c
        query = select(table.end, func.count().label("number")).where(*_within(since, until))
        async with self._database.reading() as connection:
            rows = (await connection.execute(query.group_by(table.end).order_by(table.end))).all()
        return tuple(EndCount(row.end, row.number) for row in rows)


def _is(source: Incarnation) -> ColumnElement[bool]:
    table = schema.incarnation.c
    return and_(table.node == source.node, table.slot == source.slot, table.name == source.name)


def _opened_by(source: Incarnation) -> ColumnElement[bool]:
    table = schema.open_exchange.c
    return and_(table.node == source.node, table.slot == source.slot, table.incarnation == source.name)


def _within(since: float | None, until: float | None) -> list[ColumnElement[bool]]:
    at = schema.entry.c.at
    return [*([at >= since] if since is not None else []), *([at < until] if until is not None else [])]
