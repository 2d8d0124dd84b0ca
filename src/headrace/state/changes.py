"""What a batch of journal records changes in the tables: pure, so that every mixture of records is a plain test.

    opened ──▶ open ──checkpoint──▶ open ──entry──▶ entry        an exchange that runs over several batches
    opened … entry within one batch ──▶ entry                    the usual case: the open table is not touched
    open when its process has ended ──▶ lost entry

The last is the ledger's: what earlier batches have left open stands in the table alone.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from headrace.model.entry import Checkpoint, Entry, Opened, Record

WORKER_LOST = "worker_lost"
"""The reason of an exchange whose worker died before it could write the entry."""
JOURNAL_DAMAGED = "journal_damaged"
"""The same where the journal was damaged too: the entry may have been written, and not be readable."""

MOST_COUNT = 2**63 - 1
_MOST_STATUS = 2**31 - 1
_encode = msgspec.msgpack.Encoder().encode

Row = tuple[object, ...]


@dataclass(slots=True)
class Changes:
    """What has to be done, in any order within one transaction."""

    entries: list[Entry] = field(default_factory=list)
    opened: dict[str, tuple[Opened, Checkpoint | None]] = field(default_factory=dict)
    """Begun in this batch and still running at its end, by id."""
    reached: dict[str, Checkpoint] = field(default_factory=dict)
    """The last checkpoint of each exchange that an earlier batch has opened."""
    closed: list[str] = field(default_factory=list)
    """Ids of entries whose exchange this batch has not opened: an earlier one may have."""


def changes_from_records(records: Iterable[Record]) -> Changes:
    """The records of one incarnation in the order of its journal."""
    changes = Changes()
    opened, reached = changes.opened, changes.reached
    ended: set[str] = set()
    for record in records:
        if isinstance(record, Entry):
            changes.entries.append(record)
            ended.add(record.id)
            if opened.pop(record.id, None) is None:
                reached.pop(record.id, None)
                changes.closed.append(record.id)
        elif isinstance(record, Opened):
            if record.id not in ended:
                opened[record.id] = (record, None)
        elif (one := opened.get(record.id)) is not None:
            opened[record.id] = (one[0], record)
        elif record.id not in ended:
            reached[record.id] = record
    return changes


def entry_row(entry: Entry, node: str, slot: int) -> Row:
    """The columns of `schema.entry`, in their order."""
    usage = entry.usage
    last = entry.attempts[-1] if entry.attempts else None
    return (
        id_column(entry.id),
        _seconds(entry.at),
        _seconds(entry.duration_s),
        entry.wire.first_event_s,
        node,
        slot,
        _text(entry.protocol),
        _text(entry.operation),
        _text(entry.key),
        _text(entry.owner),
        _text(entry.model),
        _text(entry.served_model),
        _text(last.channel) if last is not None else "",
        _text(last.credential) if last is not None else "",
        len(entry.attempts),
        entry.stream,
        _text(entry.end),
        _text(entry.reason),
        _text(entry.kind),
        _text(entry.source),
        entry.status if entry.status is None or -1 < entry.status <= _MOST_STATUS else None,
        _count(usage.input_total),
        _count(usage.cached_input),
        _count(usage.cache_write),
        _count(usage.cache_write_1h),
        _count(usage.audio_input),
        _count(usage.output_total),
        _count(usage.reasoning),
        _count(usage.audio_output),
        _text(entry.usage_origin),
        _encode(entry),
    )


def opened_row(opened: Opened, reached: Checkpoint | None, node: str, slot: int, incarnation: str) -> Row:
    """The columns of `schema.open_exchange`, in their order."""
    return (
        id_column(opened.id),
        node,
        slot,
        incarnation,
        _seconds(opened.at),
        _encode(opened),
        _encode(reached) if reached is not None else None,
    )


def reached_row(reached: Checkpoint) -> Row:
    """What a checkpoint changes: its bytes, and whose they are."""
    return _encode(reached), id_column(reached.id)


def id_column(id: str) -> str:
    """An id as it stands in a column. All are made by workers; one that a damaged journal made up must stop nothing."""
    return _text(id)


def _text(value: str) -> str:
    """PostgreSQL takes no NUL in a text. The record keeps it."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in value else value


def _count(value: int | None) -> int | None:
    """A column has 63 bits; what an upstream claims beyond them stands in the record alone."""
    return value if value is None or -MOST_COUNT <= value <= MOST_COUNT else None


def _seconds(value: float) -> float:
    """SQLite has no NaN, and a column that must be there takes no null."""
    return value if math.isfinite(value) else 0.0
