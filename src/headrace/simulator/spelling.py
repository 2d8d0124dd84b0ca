"""Spells events as server-sent events: field lines, line ends, the space after the colon."""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from headrace.simulator.scenario import LineEnd, ScriptedEvent, Spelling

# Two line ends in a row, each taken whole (atomic), so that CRLF is never read as CR and LF.
_BOUNDARY = re.compile(rb"(?>\r\n|\n|\r){2,}")
_ENDS = {
    LineEnd.LF: (b"\n", b"\n"),
    LineEnd.CRLF: (b"\r\n", b"\r\n"),
    LineEnd.CR: (b"\r", b"\r"),
    LineEnd.MIXED: (b"\n", b"\r\n"),
}


class Event(NamedTuple):
    """One event of a body: `lines` (SSE field name, value) to be spelled, or `raw` bytes as they are.

    `tokens` counts the completion tokens said so far; `delay_s` replaces the pause that pacing would give.
    """

    lines: tuple[tuple[bytes, bytes], ...] = ()
    raw: bytes = b""
    tokens: int = 0
    delay_s: float | None = None


def data_event(payload: bytes, tokens: int, name: bytes = b"") -> Event:
    """An event of one data line (no LF in `payload`), with an event line if it has a name."""
    data = (b"data", payload)
    return Event(((b"event", name), data) if name else (data,), b"", tokens)


def speller(spelling: Spelling, usual: LineEnd = LineEnd.LF) -> Callable[[Event], bytes]:
    """A function from an event to its wire bytes; `usual`: the line end where the scenario has none."""
    line, blank = _ENDS[spelling.line_end or usual]
    colon = b": " if spelling.space else b":"

    def spell(event: Event) -> bytes:
        if event.raw:
            return event.raw
        return b"".join([name + colon + value + line for name, value in event.lines]) + blank

    return spell


def events_from_script(scripted: Iterable[ScriptedEvent]) -> Iterator[Event]:
    """The author's events, each repetition an event of its own."""
    for item in scripted:
        event = Event(item.lines, item.raw, 0, item.delay_s)
        for _ in range(item.repeat):
            yield event


def events_from_raw(raw: bytes) -> Iterator[Event]:
    """A recorded stream cut at its blank lines, so that it can be paced; a last piece without one is an event too."""
    start = 0
    for boundary in _BOUNDARY.finditer(raw):
        yield Event(raw=raw[start : boundary.end()])
        start = boundary.end()
    if start < len(raw):
        yield Event(raw=raw[start:])
