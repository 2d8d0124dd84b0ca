"""A usage report as a table, as CSV and as JSON. Money is exact decimals of currency units, never binary fractions."""

import csv
from collections.abc import Iterator, Sequence
from typing import TextIO

import msgspec

from headrace.cli.output import Section
from headrace.cli.usage.sums import COUNTS, MONEY, TOKENS, Row, Sums, total
from headrace.config.money import show_nano

NOBODY = "-"
"""What stands for a group without a name: an owner, a channel or a label that an entry has not."""
SHOWN = (
    ("requests", "entries"),
    ("input", "input"),
    ("of it cached", "cached_input"),
    ("output", "output"),
    ("of it reasoning", "reasoning"),
    ("cost", "cost"),
    ("charge", "charge"),
    ("estimated", "estimated"),
    ("cost unknown", "unknown_cost"),
)


class SumsReport(msgspec.Struct, kw_only=True):
    """One row for programs: amounts are exact decimals of currency units, as text."""

    groups: dict[str, str]
    entries: int
    estimated: int
    unknown_cost: int
    input: int
    cached_input: int
    cache_write: int
    output: int
    reasoning: int
    cost: str
    charge: str


class Report(msgspec.Struct, kw_only=True):
    """What `--json` prints; moments are ISO, `until` is null where there is no end."""

    since: str
    until: str | None
    by: tuple[str, ...]
    rows: list[SumsReport]
    total: SumsReport


def section(title: str, by: Sequence[str], rows: Sequence[Row]) -> Section:
    """A row for each group, and behind several their total."""
    shown = [(*(name or NOBODY for name in row.groups), *_cells(row.sums)) for row in rows]
    if len(rows) > 1:
        shown.append(("total", *[""] * (len(by) - 1), *_cells(total(rows))))
    columns = (*by, *(title for title, _ in SHOWN))
    return Section(title, tuple(shown), columns, tuple(range(len(by), len(columns))))


def write_csv(file: TextIO, by: Sequence[str], rows: Sequence[Row]) -> None:
    """A line for each group below the columns' names (RFC 4180, but for LF)."""
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow((*by, *COUNTS, *TOKENS, *MONEY))
    for row in rows:
        numbers = (getattr(row.sums, name) for name in (*COUNTS, *TOKENS))
        writer.writerow((*row.groups, *numbers, *(show_nano(getattr(row.sums, name)) for name in MONEY)))


def report(since: str, until: str | None, by: Sequence[str], rows: Sequence[Row]) -> Report:
    """The report for programs."""
    return Report(
        since=since,
        until=until,
        by=tuple(by),
        rows=[_report(dict(zip(by, row.groups, strict=True)), row.sums) for row in rows],
        total=_report({}, total(rows)),
    )


def notes(sums: Sums) -> Iterator[str]:
    """What must be known to read the amounts."""
    if sums.unknown_cost:
        yield f"{sums.unknown_cost:,} of {sums.entries:,} requests have no known cost, and count for 0"
    if sums.estimated:
        yield f"of {sums.estimated:,} of {sums.entries:,} requests the tokens are estimated, wholly or in part"


def _cells(sums: Sums) -> Iterator[str]:
    for _, name in SHOWN:
        value: int = getattr(sums, name)
        yield show_nano(value) if name in MONEY else f"{value:,}"


def _report(groups: dict[str, str], sums: Sums) -> SumsReport:
    numbers = {name: getattr(sums, name) for name in (*COUNTS, *TOKENS)}
    return SumsReport(groups=groups, **numbers, cost=show_nano(sums.cost), charge=show_nano(sums.charge))
