"""Cuts a byte stream of server-sent events into whole events, wherever the network cut it.

An event ends behind a blank line; a line ends in LF, CRLF or CR (WHATWG HTML, section 9.2), in any mixture. CR and LF
never occur inside a UTF-8 sequence, so nothing is decoded. Every byte is looked at once: an unfinished event is kept as
a list of pieces and only new bytes are scanned, so a line of many megabytes costs linear time.

A CR at the end of what was read is a line end already; if the LF of a CRLF follows later, it belongs to that CR:

    b"data: x\\r\\n\\r"  → one event, which ends in a lone CR for now
    b"\\n…"             → the LF is handed on alone (`stray_lf`), it is no blank line
"""

import re

BOM = b"\xef\xbb\xbf"

_LF = 0x0A
_CR = 0x0D
# Atomic groups: a plain alternation would back-track CRLF into CR and LF and see a blank line inside one line end.
_LINE_END = re.compile(rb"(?>\r\n|\n|\r)")
_BLANK_LINE = re.compile(rb"(?>\r\n|\n|\r)(?>\r\n|\n|\r)")
_LONE_CR = re.compile(rb"\r(?!\n|\Z)")


class Framer:
    """Framing of one stream.

    `line_end` is the first line end that the stream showed (None before); `lone_cr` says that it has shown a line end
    of CR alone; `bom` that it began with a byte order mark, which is not part of any event; `stray_lf` that the bytes
    last fed began with the LF of a CR that was handed on before; `at_boundary` that nothing is open: what follows could
    as well be fed to another framer. Who keeps the last event back for ever says so in `dropped`; then `lf_dropped`
    says of a stray LF that it belongs to that event.
    """

    __slots__ = (
        "_after_cr", "_at_line_start", "_bom_part", "_fresh", "_held", "_plain", "at_boundary", "bom",
        "dropped", "held", "lf_dropped", "line_end", "lone_cr", "stray_lf",
    )  # fmt: skip

    def __init__(self) -> None:
        self.line_end: bytes | None = None
        self.lone_cr = False
        self.bom = False
        self.stray_lf = False
        self.dropped = False
        self.lf_dropped = False
        self.held = 0
        self._held: list[bytes] = []
        self._at_line_start = True
        self._after_cr = False
        self._fresh = True
        self._plain = False
        self.at_boundary = False
        self._bom_part = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The events that `data` (not empty) completes, in order, each with its line ends; concatenated they are the
        stream."""
        if self._plain and data[0] != _LF and _CR not in data:
            # Nearly every read of nearly every stream: one event of one or two lines, LF. Single bytes are looked for,
            # since memchr is ten times faster than a search for two.
            last = len(data) - 2
            line = data.find(b"\n")
            if line < last and line > 0:
                before, line = line, data.find(b"\n", line + 1)
                if line == before + 1:
                    line = -1
            if line == last and line > 0 and data[-1] == _LF:
                return [data]
        return self._scan(data)

    def rest(self) -> bytes:
        """The unfinished event's bytes; they stay held."""
        return self._bom_part + b"".join(self._held)

    def take_rest(self) -> bytes:
        """The unfinished event's bytes, given up by the framer: what follows is still framed as the rest of that
        event."""
        rest = self.rest()
        self._held.clear()
        if self._bom_part:  # it was none, and nothing behind it is one
            self._bom_part = b""
            self._fresh = False
        self.held = 0
        return rest

    @property
    def cr_is_open(self) -> bool:
        """Whether what was handed on ends in a CR that may yet turn out to be half of a CRLF."""
        return self._after_cr and not self.lone_cr and not self.held and not self.dropped

    def _scan(self, data: bytes) -> list[bytes]:
        self.stray_lf = False
        self.lf_dropped, self.dropped = self.dropped, False
        if self._fresh:
            data = self._strip_bom(data)
            if not data:
                return []
        begin = self._settle_cr(data)
        if self.line_end is None:
            self._learn_line_end(data)
        has_cr = b"\r" in data
        if has_cr and not self.lone_cr:
            self.lone_cr = _LONE_CR.search(data) is not None
        events: list[bytes] = []
        position = begin
        begin = 1 if self.stray_lf else 0
        size = len(data)
        at_line_start = self._at_line_start
        while position < size:
            blank = _LINE_END.match(data, position) if at_line_start else None
            end = blank.end() if blank is not None else _behind_blank_line(data, position, has_cr)
            if end < 0:
                break
            position = end
            events.append(self._complete(data[begin:position]))
            begin = position
            at_line_start = True
        last = data[-1]
        self.at_boundary = begin == size and last == _LF and not self.stray_lf
        self._plain = self.at_boundary and self.line_end == b"\n"
        self._after_cr = last == _CR
        self._at_line_start = last in (_LF, _CR)
        if begin < size:
            self._held.append(data[begin:])
            self.held += size - begin
        return events

    def _complete(self, tail: bytes) -> bytes:
        if not self._held:
            return tail
        self._held.append(tail)
        event = b"".join(self._held)
        self._held.clear()
        self.held = 0
        return event

    def _settle_cr(self, data: bytes) -> int:
        """Where scanning starts: behind an LF that belongs to the CR before it."""
        if not self._after_cr:
            return 0
        if data[0] != _LF:
            self.lone_cr = True
            return 0
        if self.line_end == b"\r" and not self.lone_cr:
            self.line_end = b"\r\n"
        self.stray_lf = not self._held
        return 1

    def _learn_line_end(self, data: bytes) -> None:
        start = _first_line_end(data, 0)
        found = _LINE_END.match(data, start) if start >= 0 else None
        if found is not None:
            self.line_end = found.group()

    def _strip_bom(self, data: bytes) -> bytes:
        data = self._bom_part + data
        if data.startswith(BOM):
            self.bom = True
            data = data[len(BOM) :]
        elif BOM.startswith(data):
            self._bom_part = data
            return b""
        self._bom_part = b""
        self._fresh = False
        return data


def _first_line_end(data: bytes, position: int) -> int:
    """Where the next line end begins, or -1. By memchr: a regular expression takes 100 times as long over megabytes."""
    lf = data.find(b"\n", position)
    cr = data.find(b"\r", position, lf) if lf >= 0 else data.find(b"\r", position)
    return cr if cr >= 0 else lf


def _behind_blank_line(data: bytes, position: int, has_cr: bool) -> int:
    """The offset behind the first blank line that ends a line at or behind `position`, or -1."""
    if not has_cr:
        found = data.find(b"\n\n", position)
        return found + 2 if found >= 0 else -1
    while (start := _first_line_end(data, position)) >= 0:
        blank = _BLANK_LINE.match(data, start)
        if blank is not None:
            return blank.end()
        position = start + (2 if data.startswith(b"\r\n", start) else 1)
    return -1
