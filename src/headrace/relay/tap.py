"""Reads a reply that is passed on as it comes (`relay.reply.Tap`): the events of an event stream are metered, other
bytes are not looked at. It sees copies, changes nothing, never raises, and keeps one unfinished event at most."""

from headrace.http.coding import CodingError, Decoder, decoder
from headrace.model.outcome import Outcome
from headrace.model.request import ReplyHead
from headrace.model.wire import BodyEnd
from headrace.relay.voice import Meter
from headrace.sse.event import missing_end
from headrace.sse.framing import Framer

MOST_HELD_BYTES = 16 * 1024 * 1024
"""The largest event that is read; an image's is some megabytes. Usage then comes from later events only."""


class EventTap:
    """One reply's. `coding`: the value of its Content-Encoding."""

    __slots__ = ("_decoder", "_framer", "_meter", "_skips")

    def __init__(self, meter: Meter, head: ReplyHead, coding: bytes) -> None:
        self._meter = meter
        self._decoder: Decoder | None = None
        self._framer = Framer() if head.media_type == "text/event-stream" else None
        self._skips = False
        try:
            self._decoder = decoder(coding)
        except CodingError:
            self._framer = None

    def feed(self, data: bytes) -> None:
        """Bytes of the body."""
        if self._framer is None:
            return
        if self._decoder is None:
            self._read(self._framer, data)
            return
        try:
            for piece in self._decoder.feed(data):
                self._read(self._framer, piece)
        except CodingError:
            self._framer = None

    def ended(self, how: BodyEnd) -> Outcome:
        """The body is over, and it was not cut; a last event that lacks only its blank line counts."""
        rest = self._framer.rest() if self._framer is not None and not self._skips else b""
        if rest:
            self._meter.observe(rest + missing_end(rest))
        return self._meter.ended(how)

    def _read(self, framer: Framer, data: bytes) -> None:
        for event in framer.feed(data):
            if self._skips:
                self._skips = False  # the end of an event that was too large
            else:
                self._meter.observe(event)
        if framer.held > MOST_HELD_BYTES:
            framer.take_rest()
            self._skips = True
