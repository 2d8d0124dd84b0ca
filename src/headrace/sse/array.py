"""Cuts a streamed JSON array into its elements, wherever the network cut it: Gemini's stream without `alt=sse`.

    [{…}\\r\\n,\\r\\n{…}\\r\\n]  →  `[{…}\\r\\n`  `,\\r\\n{…}\\r\\n`  `]`

Each piece is an element with the punctuation before it and the white space that came right behind it; the closing
bracket is the last piece. Concatenated the pieces are the stream: nothing is decoded and nothing is moved. Nothing is
given out before the first element is whole; later, white space that comes alone goes at once, since it may be there to
keep a connection warm. A body that is no array is cut behind each value that ends in a brace or a bracket.

Every byte is looked at once: strings are passed over by memchr, only marks outside of them are taken one by one.
"""

import re

from headrace.model.wire import Asked
from headrace.sse.framing import Framer

_MARK = re.compile(rb'["{}\[\]]')
_SPACE = re.compile(rb"[ \t\r\n]*")
_QUOTE = 0x22
_BACKSLASH = 0x5C
_OPENING = (0x5B, 0x7B)
_ARRAY = 0x5B


class ArrayFramer:
    """Framing of one array, with the face of `sse.framing.Framer`: there are no line ends and no stray LF here.

    `depth` counts open brackets and braces; an element is whole when it is back at `_outer`, 1 within an array.
    """

    __slots__ = (
        "_begun", "_closed", "_depth", "_escaped", "_held", "_in_string", "_outer", "bom", "dropped", "held",
        "lf_dropped", "line_end", "stray_lf",
    )  # fmt: skip

    def __init__(self) -> None:
        self.line_end: bytes | None = None
        self.bom = False
        self.stray_lf = False
        self.dropped = False
        self.lf_dropped = False
        self.held = 0
        self._held: list[bytes] = []
        self._depth = 0
        self._outer = 0
        self._in_string = False
        self._escaped = False
        self._begun = False
        self._closed = False

    @property
    def at_boundary(self) -> bool:
        """Not known: what stands between two elements is handed on with either."""
        return False

    @property
    def cr_is_open(self) -> bool:
        """Never: no piece has line ends that matter."""
        return False

    def feed(self, data: bytes) -> list[bytes]:
        """The pieces that `data` (not empty) completes, in order."""
        if self._closed or (self._is_between() and _SPACE.fullmatch(data)):
            return [data]
        pieces: list[bytes] = []
        begin = 0
        for end in self._ends(data):
            pieces.append(self._complete(data[begin:end]))
            begin = end
        if begin < len(data):
            self._held.append(data[begin:])
            self.held += len(data) - begin
        return pieces

    def rest(self) -> bytes:
        """The unfinished piece's bytes; they stay held."""
        return b"".join(self._held)

    def take_rest(self) -> bytes:
        """The unfinished piece's bytes, given up: what follows is still framed as the rest of that piece."""
        rest = self.rest()
        self._held.clear()
        self.held = 0
        return rest

    def _is_between(self) -> bool:
        """Whether the last byte seen was behind an element, and nothing of the next has come."""
        return self._begun and not self._held and self._depth == self._outer and not self._in_string

    def _ends(self, data: bytes) -> list[int]:
        """Where in `data` pieces end."""
        ends: list[int] = []
        position = 0
        while not self._closed:
            if self._in_string:
                position = self._pass_string(data, position)
            mark = _MARK.search(data, position) if not self._in_string else None
            if mark is None:
                break
            position = mark.end()
            if self._is_end(data[position - 1]):
                position = self._behind(data, position)
                ends.append(position)
        return ends

    def _behind(self, data: bytes, position: int) -> int:
        """Where a piece ends whose last mark is before `position`: white space goes along, behind the bracket all."""
        space = None if self._closed else _SPACE.match(data, position)
        return len(data) if space is None else space.end()

    def _is_end(self, mark: int) -> bool:
        """Take one mark outside of strings; whether a piece ends behind it."""
        if mark == _QUOTE:
            self._in_string = True
            return False
        if mark in _OPENING:
            if mark == _ARRAY and not self._depth and not self._begun:
                self._outer = 1
            self._depth += 1
            return False
        self._depth -= 1
        if self._depth > self._outer:
            return False
        self._closed = self._depth < self._outer
        self._begun = True
        return True

    def _pass_string(self, data: bytes, position: int) -> int:
        """Go on within a string; the place behind its end, or the end of `data`."""
        start = position
        while (quote := data.find(b'"', position)) >= 0:
            if not self._is_escaped(data, start, quote):
                self._in_string = self._escaped = False
                return quote + 1
            position = quote + 1
        self._escaped = self._is_escaped(data, start, len(data))
        return len(data)

    def _is_escaped(self, data: bytes, start: int, place: int) -> bool:
        """Whether the byte at `place` is escaped: an odd number of backslashes stands right before it."""
        at = place
        while at > start and data[at - 1] == _BACKSLASH:
            at -= 1
        # The first byte may itself be escaped, by a backslash at the end of what came before.
        return ((place - at) % 2 == 1) != (at == start and self._escaped)

    def _complete(self, tail: bytes) -> bytes:
        if not self._held:
            return tail
        self._held.append(tail)
        piece = b"".join(self._held)
        self._held.clear()
        self.held = 0
        return piece


def framing(asked: Asked) -> type[Framer] | type[ArrayFramer]:
    """The framing of a stream that was asked for."""
    return ArrayFramer if asked is Asked.ARRAY else Framer
