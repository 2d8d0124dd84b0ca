"""A channel's share of connections: at most so many at once, and a fair queue for the rest."""

import asyncio
from collections import deque
from contextlib import suppress


class Gate:
    """A channel's share: at most `limit` connections at once."""

    __slots__ = ("_waiting", "in_use", "limit")

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.in_use = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    def try_enter(self) -> bool:
        """Take a place if one is free; those who wait come first."""
        if self.in_use >= self.limit:
            return False
        self.in_use += 1
        return True

    async def enter(self, wait_s: float) -> bool:
        """Take a place, waiting up to `wait_s` seconds for it; whether there was one."""
        if self.try_enter():
            return True
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        entered = False
        try:
            async with asyncio.timeout(
                wait_s
            ):  # not wait_for: in 3.11 it swallows a cancellation that meets the result
                await turn
            entered = True
        except TimeoutError:
            pass
        finally:
            if not entered:
                self._give_up(turn)
        return entered

    def leave(self) -> None:
        """Pass the place on to whoever waits longest, or free it."""
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self.in_use -= 1

    def _give_up(self, turn: "asyncio.Future[None]") -> None:
        if turn.done() and not turn.cancelled():
            self.leave()  # the place came in the same moment
        else:
            with suppress(ValueError):  # `leave` met it between its cancellation and now, and passed over it
                self._waiting.remove(turn)
