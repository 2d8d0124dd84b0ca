"""One coarse timing wheel per worker: all limits of all exchanges run on it, and an event re-arms nothing.

A ticker stands in one bucket at a time and says at each tick when it wants to be looked at next; what an event changes
is only read there. Adding and removing are O(1), and what was removed is not referred to; a turn of the wheel touches
the tickers that are due and nobody else. A ticker that raises stops no other: the loop's exception handler hears of it.
"""

import asyncio

from headrace.model.ports import Ticker

QUANTUM_S = 0.05
"""Limits are kept to within this; 20 wake-ups a second cost 0.1 % of a core."""


class Wheel:
    """The wheel. `add` again moves a ticker forward when its next limit has come nearer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, quantum_s: float = QUANTUM_S) -> None:
        self._loop = loop
        self._quantum = quantum_s
        self._buckets: dict[int, dict[Ticker, None]] = {}
        self._place: dict[Ticker, int] = {}
        self._turned = int(loop.time() / quantum_s)
        self._timer: asyncio.TimerHandle | None = None
        self._turning = False

    def __len__(self) -> int:
        return len(self._place)

    def add(self, ticker: Ticker, due: float) -> None:
        """Look at `ticker` at `due` (the loop's clock, seconds), or a quantum later; an earlier place it has already
        stands."""
        bucket = max(int(due / self._quantum) + 1, self._turned + 1)
        place = self._place.get(ticker)
        if place is not None and place <= bucket:
            return
        if place is not None:
            self._take_out(ticker, place)
        self._place[ticker] = bucket
        bucket_tickers = self._buckets.get(bucket)
        if bucket_tickers is None:
            bucket_tickers = self._buckets[bucket] = {}
        bucket_tickers[ticker] = None
        if self._timer is None and not self._turning:
            self._arm()

    def remove(self, ticker: Ticker) -> None:
        """Forget `ticker`."""
        place = self._place.pop(ticker, None)
        if place is not None:
            self._take_out(ticker, place)

    def _take_out(self, ticker: Ticker, number: int) -> None:
        bucket = self._buckets.get(number)
        if bucket is not None:  # the bucket that is being worked through is not there any more
            bucket.pop(ticker, None)
            if not bucket:
                del self._buckets[number]

    def close(self) -> None:
        """Stop turning and forget all."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._place.clear()
        self._buckets.clear()

    def _arm(self) -> None:
        self._timer = self._loop.call_later(self._quantum, self._turn)

    def _turn(self) -> None:
        now = self._loop.time()
        reached = int(now / self._quantum)
        self._timer = None
        # A loop that was held up for long has passed more buckets than it has tickers: then go by the buckets that
        # exist.
        passed = range(self._turned + 1, reached + 1)
        numbers = passed if len(passed) <= len(self._buckets) else sorted(n for n in self._buckets if n <= reached)
        self._turned = reached
        waiting = [(ticker, number) for number in numbers for ticker in self._buckets.pop(number, ())]
        waiting.reverse()
        self._turning = True
        try:
            while waiting:
                ticker, number = waiting.pop()
                if self._place.get(ticker) == number:
                    del self._place[ticker]
                    due = ticker.tick(now)
                    if due is not None:
                        self.add(ticker, due)
        finally:
            # Not empty only where a ticker raised.
            for ticker, number in reversed(waiting):
                if self._place.get(ticker) == number:
                    del self._place[ticker]
                    self.add(ticker, now)
            self._turning = False
            if self._place:
                self._arm()
