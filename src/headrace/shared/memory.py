"""Counters of the only worker, in its memory: nothing waits but who waits for room."""

from collections.abc import Callable, Sequence

from headrace.model.allowance import Balance, Claim, Denial, Lease, Spent
from headrace.shared.lines import Lines
from headrace.shared.purse import Purses
from headrace.shared.succession import Succession
from headrace.shared.tally import Tally


def stop_nothing(purse: str) -> None:
    """Nobody stops streams when a budget is spent."""


class MemoryCounters:
    """Limits and budgets of one worker; see `model.allowance.Counters`.

    `incarnation` is the worker's name in `Spent.parts`. `on_spent` is called, within a turn of the loop, with the purse
    (`Claim.purse`) of a budget with `exceeded: stop` when all of it is spent.
    """

    def __init__(
        self,
        incarnation: str,
        loop_time: Callable[[], float],
        wall_time: Callable[[], float],
        on_spent: Callable[[str], None] = stop_nothing,
    ) -> None:
        self._incarnation = incarnation
        self.lines = Lines(loop_time)
        self._tally = Tally(Purses(incarnation, wall_time, on_spent), loop_time, wall_time, self.lines.wake)

    async def start(self) -> None:
        """See `Counters.start`: there is nothing elsewhere."""

    async def claim(self, claims: Sequence[Claim]) -> Lease | Denial:
        """See `Counters.claim`."""
        if self.lines:
            return await self.lines.claim(claims, self)
        found = self._tally.attempt(claims)
        if not isinstance(found, Denial):
            return found
        return await self.lines.claim(claims, self, found)

    async def claim_one(self, options: Sequence[Claim], wait_s: float) -> tuple[int, Lease] | Denial:
        """See `Counters.claim_one`."""
        return await self.lines.claim_one(options, wait_s, self)

    async def balances(self, claims: Sequence[Claim]) -> Sequence[Balance]:
        """See `Counters.balances`."""
        return [self._tally.balance(claim) for claim in claims]

    def succession(self, send: Callable[[object], None], soon: Callable[[Callable[[], None]], object]) -> Succession:
        """This worker's part in rolls; see there."""
        return Succession(self._tally, self._incarnation, send, soon)

    def cover(self, spent: Sequence[Spent]) -> None:
        """See `Counters.cover`."""
        self._tally.cover(spent)

    def close(self) -> None:
        """See `Counters.close`: nothing runs in the background."""

    async def ask(self, claims: Sequence[Claim]) -> Lease | Denial:
        """For `Lines`."""
        return self._tally.attempt(claims)

    async def peek(self, claims: Sequence[Claim]) -> Denial | None:
        """For `Lines`."""
        return self._tally.denial(claims)
