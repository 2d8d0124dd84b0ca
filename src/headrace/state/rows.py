"""What stands in the columns of a row: values that every database takes, whatever a record holds.

A value that no column can hold is no reason to stop a journal: the column says then what it can, and the record, which
each row has whole, has it as it came.
"""

from functools import lru_cache
from typing import Final

import msgspec

from headrace.model.entry import Checkpoint, Entry, Money, Opened

MOST_COUNT: Final = 2**63 - 1
_MOST_STATUS: Final = 2**31 - 1
_LATEST: Final = 253402300799.0
"""The last second of the year 9999."""
_encode = msgspec.msgpack.Encoder().encode

Row = tuple[object, ...]


def entry_row(entry: Entry, node: str, slot: int) -> Row:
    """The columns of `schema.entry`, in their order."""
    usage, money = entry.usage, entry.money
    last = entry.attempts[-1] if entry.attempts else None
    return (
        text_column(entry.id),
        moment_column(entry.at),
        moment_column(entry.duration_s),
        entry.wire.first_event_s,
        node,
        slot,
        text_column(entry.protocol),
        text_column(entry.operation),
        text_column(entry.key),
        text_column(entry.owner),
        text_column(entry.model),
        text_column(entry.served_model),
        text_column(last.channel) if last is not None else "",
        text_column(last.credential) if last is not None else "",
        len(entry.attempts),
        entry.stream,
        text_column(entry.end),
        text_column(entry.reason),
        text_column(entry.kind),
        text_column(entry.source),
        entry.status if entry.status is None or -1 < entry.status <= _MOST_STATUS else None,
        _count(usage.input_total),
        _count(usage.cached_input),
        _count(usage.cache_write),
        _count(usage.cache_write_1h),
        _count(usage.audio_input),
        _count(usage.output_total),
        _count(usage.reasoning),
        _count(usage.audio_output),
        text_column(entry.usage_origin),
        _encode(entry),
        _count(usage.cache_write_5m),
        _count(usage.cache_write_30m),
        _count(usage.cache_write_12h),
        _count(usage.image_input),
        _count(usage.image_output),
        text_column(usage.tier),
        *_amounts(money),
        _labels(entry.labels) if entry.labels else None,
    )


def amendment_row(id: str, revision: int, at: float, reason: str, money: Money) -> Row:
    """The columns of `schema.amendment`, in their order."""
    return (text_column(id), revision, moment_column(at), text_column(reason), *_amounts(money), _encode(money))


def opened_row(opened: Opened, reached: Checkpoint | None, node: str, slot: int, incarnation: str) -> Row:
    """The columns of `schema.open_exchange`, in their order."""
    return (
        text_column(opened.id),
        node,
        slot,
        incarnation,
        moment_column(opened.at),
        _encode(opened),
        _encode(reached) if reached is not None else None,
    )


def reached_row(reached: Checkpoint) -> Row:
    """What a checkpoint changes: its bytes, and whose they are."""
    return _encode(reached), text_column(reached.id)


def text_column(value: str) -> str:
    """PostgreSQL takes no NUL in a text. Ids too: all are made by workers, but one that a damaged journal made up must
    stop nothing."""
    return value.replace("\0", "\N{REPLACEMENT CHARACTER}") if "\0" in value else value


def moment_column(value: float) -> float:
    """Seconds since the epoch, or of a duration; what is not before the year 10000 is none, and 0. SQLite has no
    NaN."""
    return value if 0.0 <= value <= _LATEST else 0.0


def counted_column(money: Money) -> int:
    """What budgets count of it: never less than nothing."""
    return min(max(money.counted, 0), MOST_COUNT)


def within_63_bits(amount: int) -> int:
    """The amount, or what is nearest to it that columns and messages hold."""
    return max(-MOST_COUNT, min(amount, MOST_COUNT))


def _amounts(money: Money) -> tuple[int | None, int | None, int, str, int]:
    """Cost, charge, what is counted, the price's version, the multiplier."""
    return (
        _count(money.cost),
        _count(money.charge),
        counted_column(money),
        text_column(money.price),
        min(money.multiplier, MOST_COUNT),
    )


def _count(value: int | None) -> int | None:
    """A column has 63 bits; what is beyond them stands in the record alone."""
    return value if value is None or -MOST_COUNT <= value <= MOST_COUNT else None


@lru_cache(maxsize=1024)
def _labels(labels: tuple[tuple[str, str], ...]) -> str:
    """A JSON object; the few keys that have labels have the same ones in every entry."""
    return msgspec.json.encode({text_column(name): text_column(value) for name, value in labels}).decode()
