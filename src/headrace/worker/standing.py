"""What a worker tells of itself once a second: gauges, and its running exchanges in slices, round after round."""

from collections.abc import Callable, Iterable, Mapping
from typing import Final

from headrace.exchange import Exchange
from headrace.link.messages import Gauges, OpenStream, OpenStreams
from headrace.model.entry import seconds_since

SLICE: Final = 1000
"""Exchanges that are told of at once: 2 ms of the loop's time. A round of 9,000 takes nine seconds."""


class Standing:
    """Tells of `running`, which changes meanwhile: an exchange that has ended before its turn is left out."""

    def __init__(
        self, running: Mapping[Exchange, object], counts: Mapping[str, int], clock: Callable[[], float]
    ) -> None:
        self._running = running
        self._counts = counts
        self._clock = clock
        self._left: list[Exchange] = []
        self._first = True

    def gauges(self, *, draining: bool) -> Gauges:
        """How the worker is now."""
        return Gauges(open=len(self._running), draining=draining, counts=dict(self._counts))

    def slice(self, most: int = SLICE) -> OpenStreams:
        """The next running exchanges of the round; a new round begins when one is over."""
        if self._first:
            self._left = list(self._running)
            self._left.reverse()
        taken = self._left[-most:]
        del self._left[-most:]
        taken.reverse()
        first, self._first = self._first, not self._left
        return OpenStreams(first=first, last=not self._left, streams=tuple(self._shown(taken)))

    def _shown(self, exchanges: Iterable[Exchange]) -> Iterable[OpenStream]:
        now = self._clock()
        return (_shown(one, now) for one in exchanges if one in self._running)


def _shown(exchange: Exchange, now: float) -> OpenStream:
    call, trace = exchange.call, exchange.trace
    began = exchange.log.began
    return OpenStream(
        id=exchange.id,
        protocol=exchange.api.protocol.value,
        key=exchange.key.name,
        model=call.model if call is not None else "",
        age_s=seconds_since(began, now),
        state="reading" if call is None else "committed" if trace.released else "waiting",
        events=trace.events,
        silent_s=seconds_since(trace.last_at or began, now),
    )
