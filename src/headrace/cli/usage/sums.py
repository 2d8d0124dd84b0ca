"""Rows of a usage report as exact numbers."""

from collections.abc import Iterable
from dataclasses import dataclass, fields

from headrace.state.errands import UsageLine

COUNTS = ("entries", "estimated", "unknown_cost")
TOKENS = ("input", "cached_input", "cache_write", "output", "reasoning")
MONEY = ("cost", "charge")


@dataclass(frozen=True, slots=True)
class Sums:
    """Entries, tokens, and amounts in nano-units; what `UsageLine` says of each."""

    entries: int = 0
    estimated: int = 0
    unknown_cost: int = 0
    input: int = 0
    cached_input: int = 0
    cache_write: int = 0
    output: int = 0
    reasoning: int = 0
    cost: int = 0
    charge: int = 0

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Sums)))


@dataclass(frozen=True, slots=True)
class Row:
    """One group."""

    groups: tuple[str, ...]
    sums: Sums


def row_from_line(line: UsageLine) -> Row:
    """A row out of the database's answer."""
    return Row(line.groups, Sums(*(int(getattr(line, one.name)) for one in fields(Sums))))


def total(rows: Iterable[Row]) -> Sums:
    """All rows together."""
    return sum((row.sums for row in rows), Sums())
