"""Bars for a terminal: as wide as it is, without colour, and plain characters where its encoding has no others."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from rich.cells import cell_len, set_cell_size

from headrace.cli.output import printable

EIGHTHS = "▏▎▍▌▋▊▉█"
PLAIN = "#"
LEAST_BAR = 8
MOST_NAME = 32
"""Columns of a name; a longer one is cut."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: its name, its length as a number, and how that is written."""

    name: str
    value: int
    shown: str


def lines(bars: Sequence[Bar], width: int, encoding: str) -> Iterator[str]:
    """The bars below each other, at most `width` columns wide; the longest takes all that is left."""
    if not bars:
        return
    names = min(max(cell_len(printable(one.name)) for one in bars), MOST_NAME)
    values = max(cell_len(one.shown) for one in bars)
    room = max(width - names - values - 4, LEAST_BAR)
    most = max(one.value for one in bars)
    blocks = _has_blocks(encoding)
    for one in bars:
        drawn = _bar(one.value, most, room, blocks=blocks)
        yield f"{set_cell_size(printable(one.name), names)}  {one.shown.rjust(values)}  {drawn}".rstrip()


def without_gaps(bars: Sequence[Bar], nothing: str) -> list[Bar]:
    """Bars named by days (ISO), in order, with the days between that have none."""
    found: list[Bar] = []
    for one in bars:
        day = date.fromisoformat(one.name)
        while found and (before := date.fromisoformat(found[-1].name) + timedelta(days=1)) < day:
            found.append(Bar(before.isoformat(), 0, nothing))
        found.append(one)
    return found


def _bar(value: int, most: int, room: int, *, blocks: bool) -> str:
    """Whole numbers alone: amounts may be larger than a float tells apart. What is there at all is seen."""
    if value <= 0 or most <= 0:
        return ""
    if not blocks:
        return PLAIN * max(value * room // most, 1)
    eighths = max(value * room * 8 // most, 1)
    full, rest = divmod(eighths, 8)
    return EIGHTHS[-1] * full + (EIGHTHS[rest - 1] if rest else "")


def _has_blocks(encoding: str) -> bool:
    try:
        EIGHTHS.encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return False
    return True
