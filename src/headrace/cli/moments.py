"""Moments on the command line: a date or a time, or how far it is from now."""

import re
from datetime import UTC, datetime

import typer

from headrace.config.places import read_moment, show_moment

FORMS = "2027-01-31, 2027-01-31T18:00:00Z"
_SPAN = re.compile(r"([0-9]{1,6})(s|m|h|d|w)")
_UNITS_S = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
_LATEST = 253402300799.0
"""The last second of the year 9999: no date has more digits."""


def read_span(text: str) -> float | None:
    """`30d`, `12h` → seconds; None where the text has another form."""
    match = _SPAN.fullmatch(text.strip())
    return float(int(match[1]) * _UNITS_S[match[2]]) if match else None


def moment_ahead(text: str, now: float, option: str) -> float:
    """A date, a time, or a span from now on → seconds since the epoch. Ends the command where it is none."""
    span = read_span(text)
    return min(now + span, _LATEST) if span is not None else _moment(text, option, "30d or 12h from now")


def moment_ago(text: str, now: float, option: str) -> float:
    """A date, a time, or a span before now → seconds since the epoch. Ends the command where it is none."""
    span = read_span(text)
    return max(now - span, 0.0) if span is not None else _moment(text, option, "7d or 12h ago")


def span_of(text: str, option: str) -> float:
    """`24h` → seconds. Ends the command where it is none."""
    if (span := read_span(text)) is None:
        raise typer.BadParameter("must be a time such as 30m, 24h, 7d or 2w", param_hint=option)
    return span


def iso_of(moment: float) -> str:
    """Whole seconds, in UTC, as the file would have it."""
    return show_moment(float(int(moment)))


def words_of(moment: float | None) -> str:
    """For people: `2027-01-31 18:00:00 UTC`, or never."""
    if moment is None:
        return "never"
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _moment(text: str, option: str, spans: str) -> float:
    try:
        return read_moment(text.strip())
    except ValueError:
        raise typer.BadParameter(f"must be {FORMS}, or {spans}", param_hint=option) from None
