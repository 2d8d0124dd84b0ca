"""The ledger: takes what journals hold, each record exactly once, and answers about exchanges.

A batch is one transaction, and its first statement moves the incarnation's position from where the batch begins to
where it ends. Only one of several that read the same journal can move it; what it takes is committed with the move or
not at all.

    position = before? ──no──▶ PositionMovedError: nothing changes
        │ yes
    position := after · entries inserted, and what they count for spent · open exchanges added, moved on, removed
        │               · ended: what is open is settled
      commit
"""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass

import msgspec
from sqlalchemy import ColumnElement, and_, delete, func, select
from sqlalchemy.ext.asyncio import AsyncConnection

from headrace.journal.place import Incarnation, Position
from headrace.journal.reader import Batch
from headrace.model.entry import Checkpoint, Entry, Opened, lost_entry
from headrace.state import schema
from headrace.state.bulk import Statements
from headrace.state.changes import JOURNAL_DAMAGED, WORKER_LOST, Changes, changes_from_records
from headrace.state.database import Database
from headrace.state.errors import ConflictError, PositionMovedError
from headrace.state.lines import PAGE, EntryFilter, LedgerLine, lines
from headrace.state.rows import entry_row, opened_row, reached_row, text_column
from headrace.state.spending import amounts_of, settle_ended, spending_rows

START = Position()
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

    def __init__(self, database: Database, clock: Callable[[], float] = time.time) -> None:
        """`clock`: seconds since the epoch."""
        self._database = database
        self._clock = clock
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
        try:
            return await self._take(source, before, batch, may_be_known=False)
        except ConflictError:
            # Journals are taken once, so nobody looks what is there already. Here something is: the position of this
            # one was lost, or a copy of it has been put back.
            return await self._take(source, before, batch, may_be_known=True)

    async def _take(
        self, source: Incarnation, before: Position, batch: Batch, *, may_be_known: bool
    ) -> tuple[Entry, ...]:
        changes = changes_from_records(batch.records)
        async with self._database.writing() as connection:
            damaged = await self._move(connection, source, before, batch)
            settled = await self._settle(connection, source, changes, damaged > 0) if batch.ended else []
            if may_be_known:
                changes.entries = await _unknown(connection, changes.entries)
            await self._write(connection, source, changes)
        return tuple(settled)

    async def _move(self, connection: AsyncConnection, source: Incarnation, before: Position, batch: Batch) -> int:
        """Compare and set the position. Returns how many damaged bytes its journal has had in all."""
        if before == START:
            begun = (source.node, source.slot, source.name, START.segment, START.offset, 0, False, None, False)
            await self._bulk.begin.run(connection, [begun])
            await settle_ended(connection, self._clock())
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
            "ended_now": self._clock() if batch.ended else None,
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
        await self._bulk.close.run(connection, [(text_column(id),) for id in changes.closed])
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
        await bulk.spend.run(connection, spending_rows(amounts_of(changes.entries), node, slot, name))
        await bulk.add_open.run(
            connection, [opened_row(opened, at, node, slot, name) for opened, at in changes.opened.values()]
        )
        await bulk.reach.run(connection, [reached_row(one) for one in changes.reached.values()])
        await bulk.close.run(connection, [(text_column(id),) for id in changes.closed])

    # ---- asking

    async def entry(self, id: str) -> Entry | None:
        """The entry of one exchange, with the money that counts; None where there is none."""
        line = await self.line(id)
        return line.entry if line is not None else None

    async def line(self, id: str) -> LedgerLine | None:
        """The same with what it was written with, and why that does not count any more."""
        return await anext(lines(self._database, EntryFilter(id=id), limit=1), None)

    async def last(self) -> Entry | None:
        """The newest entry, by when its exchange began."""
        return await anext(self.entries(limit=1, newest_first=True), None)

    async def entries(
        self,
        since: float | None = None,
        until: float | None = None,
        limit: int | None = None,
        *,
        newest_first: bool = False,
    ) -> AsyncIterator[Entry]:
        """Entries of exchanges that began in [since, until), seconds since the epoch, in order of that, with the money
        that counts. As `lines` has them: page by page."""
        async for line in lines(self._database, EntryFilter(since, until), limit, newest_first=newest_first):
            yield line.entry

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
        query = select(table.end, func.count().label("number"))
        query = query.where(*EntryFilter(since, until).conditions(self._database))
        async with self._database.reading() as connection:
            rows = (await connection.execute(query.group_by(table.end).order_by(table.end))).all()
        return tuple(EndCount(row.end, row.number) for row in rows)


async def _unknown(connection: AsyncConnection, entries: list[Entry]) -> list[Entry]:
    """Those that the ledger does not have, each once."""
    named = {text_column(one.id): one for one in reversed(entries)}
    table = schema.entry.c
    for begin in range(0, len(ids := list(named)), PAGE):
        known = await connection.execute(select(table.id).where(table.id.in_(ids[begin : begin + PAGE])))
        for id in known.scalars():
            del named[id]
    return list(named.values())


def _is(source: Incarnation) -> ColumnElement[bool]:
    table = schema.incarnation.c
    return and_(table.node == source.node, table.slot == source.slot, table.name == source.name)


def _opened_by(source: Incarnation) -> ColumnElement[bool]:
    table = schema.open_exchange.c
    return and_(table.node == source.node, table.slot == source.slot, table.incarnation == source.name)
