"""A lease out of Valkey, and the reply that brings it."""

import asyncio
from collections.abc import Sequence
from typing import Protocol

from headrace.model.allowance import Claim, Room
from headrace.shared.pipeline import Reply
from headrace.shared.rooms import room_from_counts
from headrace.shared.tally import Tallied

GRANTED = 0
"""How the reply to a granted claim begins (`lua/claim.lua`)."""


class Giver(Protocol):
    """What a lease asks of the counters that gave it."""

    def granted(self, claims: Sequence[Claim], keys: tuple[str, ...], reply: list[Reply]) -> "SharedLease":
        """The lease that a reply is."""

    def settled(self, tallied: Tallied, keys: tuple[str, ...], second: int, tokens: int, undone: bool) -> None:
        """The tally has taken a lease back: tell Valkey."""


class SharedLease:
    """What one exchange has been given, in the tally and, unless that was in an outage, in Valkey."""

    __slots__ = ("_counted", "_counters", "_keys", "_now", "_second", "_tallied")

    def __init__(
        self,
        counters: Giver,
        tallied: Tallied,
        keys: tuple[str, ...],
        counted: Sequence[int],
        now: float,
        second: int,
    ) -> None:
        self._counters = counters
        self._tallied = tallied
        self._keys = keys
        self._counted = counted
        self._now = now
        self._second = second
        """When Valkey gave it, on its clock; 0 if it did not."""

    def room(self, number: int) -> Room:
        """See `model.allowance.Lease`."""
        claim = self._tallied.claims[number]
        return room_from_counts(claim, self._counted[3 * number : 3 * number + 3], self._now)

    def settle(self, tokens: int, amount: int) -> None:
        """See `model.allowance.Lease`."""
        if self._tallied.held:
            self._tallied.settle(tokens, amount)
            self._counters.settled(self._tallied, self._keys, self._second, tokens, False)

    def undo(self) -> None:
        """Give everything back, the request too."""
        if self._tallied.held:
            self._tallied.undo()
            self._counters.settled(self._tallied, self._keys, self._second, 0, True)


class Asked:
    """Where the reply to a claim goes. What is granted to a task that was cancelled is given back at once."""

    __slots__ = ("claims", "counters", "future", "keys")

    def __init__(self, counters: Giver, claims: Sequence[Claim], keys: tuple[str, ...]) -> None:
        self.counters = counters
        self.claims = claims
        self.keys = keys
        self.future: asyncio.Future[SharedLease | Reply | Exception] = asyncio.get_running_loop().create_future()

    def __call__(self, reply: Reply | Exception) -> None:
        if isinstance(reply, list) and reply[0] == GRANTED:
            lease = self.counters.granted(self.claims, self.keys, reply)
            if self.future.done():
                lease.undo()
            else:
                self.future.set_result(lease)
        elif not self.future.done():
            self.future.set_result(reply)

    async def reply(self) -> "SharedLease | Reply | Exception":
        """The lease, or what the reply is instead."""
        try:
            return await self.future
        except asyncio.CancelledError:
            # Cancelled between the reply and this task's turn: nobody else will ever see the lease.
            if not self.future.cancelled() and isinstance(lease := self.future.result(), SharedLease):
                lease.undo()
            raise
