"""Reads a stream on after its client has left, for the exact usage alone (`client_gone: drain`). Bounded in time and
number."""

from collections.abc import Callable

from headrace.model.ports import Attempt
from headrace.model.wire import BodyEnd, Sight
from headrace.relay.share import Share
from headrace.relay.trace import Trace
from headrace.relay.voice import Framing, Meter


class Drain:
    """One stream without a client: events are metered and go nowhere. `ended` is called once, when all is known or
    time is up.

    Implements `model.ports.BodyReceiver` and `model.ports.Ticker`.
    """

    __slots__ = ("_attempt", "_deadline", "_ended", "_framer", "_meter", "_share", "_trace")

    def __init__(
        self,
        attempt: Attempt,
        framer: Framing,
        meter: Meter,
        trace: Trace,
        share: Share,
        deadline: float,
        ended: Callable[[], None],
    ) -> None:
        self._attempt: Attempt | None = attempt
        self._framer = framer
        self._meter = meter
        self._trace = trace
        self._share = share
        self._deadline = deadline
        self._ended = ended
        share.draining += 1

    def body(self, data: bytes) -> None:
        """Bytes of the upstream's body."""
        self._trace.received += len(data)
        for event in self._framer.feed(data):
            if self._meter.observe(event) in (Sight.TERMINAL, Sight.ERROR):
                self.finish()
                return

    def body_end(self, end: BodyEnd) -> None:
        """The upstream has no more to say."""
        self.finish()

    def tick(self, now: float) -> float | None:
        """Give up at the deadline."""
        if self._attempt is not None and now >= self._deadline:
            self.finish()
        return None if self._attempt is None else self._deadline

    def finish(self) -> None:
        """Let the upstream go. May be called twice."""
        attempt, self._attempt = self._attempt, None
        if attempt is not None:
            self._share.draining -= 1
            attempt.close()
            self._ended()
