"""Notes how far running exchanges have come: each some time after its commit and then again and again, if it moved.

    begin ──every_s──▶ due ──noted──▶ waiting ──every_s──▶ due …       end: forgotten

All wait equally long, so the order in which they were begun or noted is the order in which they are due. A look at what
is due comes at most every LOOK_S; where much is due, it is spread over turns of the loop.
"""

import asyncio
from collections.abc import Callable
from typing import Protocol

from headrace.model.entry import Checkpoint, Record

LOOK_S = 0.1
MOST_A_TURN = 40
"""One costs some 30 µs: a turn is held up for a millisecond."""


class Running(Protocol):
    """An exchange that runs."""

    def checkpoint(self, now: float) -> Checkpoint | None:
        """How far it has come at `now` (the loop's clock, seconds); None where it has not moved since the last."""


class Checkpoints:
    """One worker's. `append` takes each; it is the journal's."""

    def __init__(self, loop: asyncio.AbstractEventLoop, every_s: float, append: Callable[[Record], None]) -> None:
        self._loop = loop
        self._every_s = every_s
        self._append = append
        self._due: dict[Running, float] = {}
        self._look: asyncio.Handle | None = None

    def __len__(self) -> int:
        return len(self._due)

    def begin(self, exchange: Running) -> None:
        """It is committed: from now on what it has got is worth noting."""
        self._due[exchange] = self._loop.time() + self._every_s
        if self._look is None:
            self._look = self._loop.call_later(self._every_s, self._note)

    def end(self, exchange: Running) -> None:
        """It has its entry. May be called for one that never began."""
        self._due.pop(exchange, None)

    def close(self) -> None:
        """Note nothing more."""
        self._due.clear()
        if self._look is not None:
            self._look.cancel()
            self._look = None

    def _note(self) -> None:
        now = self._loop.time()
        due: list[Running] = []
        for exchange, at in self._due.items():
            if at > now or len(due) == MOST_A_TURN:
                break
            due.append(exchange)
        try:
            for exchange in due:
                del self._due[exchange]
                self._due[exchange] = now + self._every_s
                if (record := exchange.checkpoint(now)) is not None:
                    self._append(record)
        finally:
            self._look = self._look_again(now)

    def _look_again(self, now: float) -> asyncio.Handle | None:
        for at in self._due.values():
            if at <= now:
                return self._loop.call_soon(self._note)
            return self._loop.call_later(max(at - now, LOOK_S), self._note)
        return None
