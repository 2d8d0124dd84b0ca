"""What was spent of each budget: read from the database, then moved on with what goes into it.

    UNKNOWN ──read──▶ KNOWN ──took──▶ KNOWN      a batch's entries are added as they are committed
       ▲                │
       └──lose, set budgets, a window begins, a minute has passed: another node's entries──┘

The sums are those of the database at `positions` of the ingestion at any time: both change in one go, in one task.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Final

import msgspec

from headrace.journal.place import Incarnation, Position
from headrace.link.figures import Figures, JournalPosition, OpenCharge, by_purse, follow
from headrace.model.allowance import Spent
from headrace.model.entry import Entry, Record
from headrace.model.estimate import Learned
from headrace.model.purses import Budgets
from headrace.state.ledger import OpenExchange

AHEAD_S: Final = 60.0
"""So long before a window begins its purses are told: its first request is not to wait for them."""
AGAIN_S: Final = 60.0
"""Between two readings: other nodes' entries, and journals that have been summed up, come no other way."""
_HOUR_S: Final = 3600

ReadSpent = Callable[[Sequence[str]], Awaitable[Iterable[Spent]]]
ReadOpen = Callable[[], Awaitable[Iterable[OpenExchange]]]


class Spending:
    """The sums of the purses of now and of windows that are about to begin.

    `read` asks the database for all of the purses that it is given, `read_open` for what runs; `clock` gives seconds
    since the epoch.
    """

    def __init__(self, read: ReadSpent, read_open: ReadOpen, clock: Callable[[], float]) -> None:
        self._read = read
        self._read_open = read_open
        self._clock = clock
        self._budgets = Budgets({})
        self._sums: dict[str, Spent] = {}
        self._changed: set[str] = set()
        self._open: dict[str, dict[str, OpenCharge]] = {}
        """Running exchanges by incarnation and id."""
        self._is_known = False
        self._read_at = 0.0

    @property
    def is_known(self) -> bool:
        """Whether the sums are those of the database."""
        return self._is_known

    @property
    def sums(self) -> tuple[Spent, ...]:
        """All of them, as they were last known."""
        return tuple(self._sums.values())

    @property
    def is_empty(self) -> bool:
        """Whether there is no budget at all."""
        return not self._budgets.windows

    def budget(self, budgets: Budgets) -> bool:
        """These are the budgets from now on. Whether they are others than before: then their sums have to be read."""
        if budgets == self._budgets:
            return False
        self._budgets = budgets
        self._is_known = False
        return True

    def lose(self) -> None:
        """What is in the database is not known any more."""
        self._is_known = False

    def take(self, source: Incarnation, records: Sequence[Record], settled: Sequence[Entry]) -> None:
        """These went into the database."""
        if self.is_empty:
            return
        running = self._open.setdefault(source.name, {})
        for purse, amount in by_purse(follow(running, (*records, *settled)), self._budgets).items():
            if (before := self._sums.get(purse)) is not None:
                parts = {**before.parts, source.name: before.parts.get(source.name, 0) + amount}
                self._sums[purse] = msgspec.structs.replace(before, parts=parts)
                self._changed.add(purse)

    async def refresh(self) -> None:
        """Read the sums again where it is time. May raise StateError; then they are as unknown as before."""
        now, budgets = self._clock(), self._budgets
        if self._is_known and not self._is_due(now):
            return
        purses = {**budgets.at(now), **budgets.at(now + AHEAD_S)}
        found = {one.purse: one for one in await self._read(tuple(purses))}
        running: dict[str, dict[str, OpenCharge]] = {}
        for open in await self._read_open() if purses else ():
            running.setdefault(open.incarnation, {})[open.opened.id] = _charge(open)
        self._open = running
        self._changed |= {purse for purse, one in found.items() if self._sums.get(purse) != one}
        self._sums = found
        self._is_known = budgets is self._budgets
        self._read_at = now

    @property
    def has_changed(self) -> bool:
        """Whether `changed` has any."""
        return bool(self._changed)

    def changed(self) -> tuple[Spent, ...]:
        """Those that are others than when this was last asked."""
        changed = tuple(self._sums[purse] for purse in self._changed if purse in self._sums)
        self._changed.clear()
        return changed

    def figures(self, positions: Mapping[str, Position], learned: dict[str, Learned]) -> Figures:
        """The present state, for the disk; `positions` are the ingestion's."""
        return Figures(
            at=self._clock(),
            spent=self.sums,
            positions={
                name: JournalPosition(at.segment, at.offset, tuple(self._open.get(name, {}).values()))
                for name, at in positions.items()
            },
            learned=learned,
        )

    def _is_due(self, now: float) -> bool:
        hours = [(int(moment) // _HOUR_S, int(moment + AHEAD_S) // _HOUR_S) for moment in (self._read_at, now)]
        return hours[0] != hours[1] or not 0 <= now - self._read_at < AGAIN_S


def _charge(one: OpenExchange) -> OpenCharge:
    opened, reached = one.opened, one.reached
    counted = reached.money.counted if reached is not None else 0
    return OpenCharge(opened.id, opened.key, opened.owner, opened.at, counted)
