"""What is spent and held of budgets, each in its window.

A purse adds up what this worker settled itself, which it knows first, and what the ledger has of everybody else. Both
only grow. A budget whose spending was never told cannot be judged, unless an earlier window of it was: a new one begins
at 0.
"""

from collections.abc import Callable, Iterator

from headrace.model.allowance import CORRECTIONS, Claim, Spent, window_end
from headrace.model.limits import Window

_FIRST_SWEEP = 1024
_DEAF_S = 2.0
"""Longer than any command is waited for."""


class Purse:
    """One budget in one window. Nano-units."""

    __slots__ = (
        "amount",
        "copy",
        "corrected",
        "deaf_until",
        "held",
        "known",
        "ledger",
        "name",
        "others",
        "own",
        "start",
        "stops",
        "told",
        "window",
    )

    def __init__(self, name: str, window: Window, start: int) -> None:
        self.name = name
        self.window = window
        self.start = start
        self.known = False
        """Whether what others spent is known."""
        self.own = 0
        """What this worker settled."""
        self.others = 0
        """What all others settled."""
        self.corrected = 0
        """What rating entries again has changed; it goes up and down."""
        self.deaf_until = 0.0
        """Until then (wall time) what a shared store says of everybody may lack the last correction."""
        self.held = 0
        """What this worker's open exchanges may come to cost."""
        self.amount = 0
        """The budget, as the last claim had it."""
        self.stops = False
        """Whether it is still to be told that it is spent."""
        self.ledger: Spent | None = None
        """What the ledger said last."""
        self.told: dict[str, int] = {}
        """What older workers of a roll said that they have settled, by incarnation: more than the ledger has yet."""
        self.copy = ""
        """What a shared store calls its copy of the purse; another name is another copy."""

    @property
    def spent(self) -> int:
        """What everybody settled."""
        return self.own + self.others + self.corrected


class Purses:
    """All purses of a worker. `on_spent` is told the name of one with `exceeded: stop` when all of it is spent."""

    def __init__(self, incarnation: str, wall_time: Callable[[], float], on_spent: Callable[[str], None]) -> None:
        self._incarnation = incarnation
        self._wall_time = wall_time
        self._on_spent = on_spent
        self._purses: dict[str, Purse] = {}
        self._covered: dict[str, int] = {}
        """By subject and kind of window: the latest that the ledger told of."""
        self._sweep_at = _FIRST_SWEEP

    def __len__(self) -> int:
        return len(self._purses)

    def __iter__(self) -> Iterator[Purse]:
        return iter(self._purses.values())

    def get(self, name: str) -> Purse | None:
        """The purse of a name, if there is one."""
        return self._purses.get(name)

    def find(self, claim: Claim) -> Purse | None:
        """The purse of a claim with a budget, if what was spent of it is known."""
        purse = self._purses.get(claim.purse)
        if purse is None and not self.begins_at_nothing(claim.purse):
            return None
        purse = purse or self.open(claim.purse)
        return purse if purse.known else None

    def open(self, name: str) -> Purse:
        """The purse of a name, known or not."""
        purse = self._purses.get(name)
        if purse is None:
            if len(self._purses) >= self._sweep_at:
                self._sweep()
            _, window, start = _parts(name)
            purse = self._purses[name] = Purse(name, window, start)
            purse.known = self.begins_at_nothing(name)
        return purse

    def cover(self, spent: Spent) -> Purse | None:
        """Take in what the ledger has. None: the window is over, and nothing here asks for it."""
        kind, window, start = _parts(spent.purse)
        self._covered[kind] = max(start, self._covered.get(kind, start))
        purse = self._purses.get(spent.purse)
        if purse is None:
            if self._is_over(window, start):
                return None
            purse = self.open(spent.purse)
        if purse.told and purse.ledger is not None:
            for name in purse.ledger.parts.keys() - spent.parts.keys():
                purse.told.pop(name, None)  # its journal has ended, and is in `settled`
        purse.ledger = spent
        purse.known = True
        purse.own = max(purse.own, spent.parts.get(self._incarnation, 0))
        corrected = spent.parts.get(CORRECTIONS, 0)
        if purse.corrected != corrected:
            purse.corrected, purse.deaf_until = corrected, self._wall_time() + _DEAF_S
        self._count_others(purse)
        return purse

    def hear_of(self, name: str, incarnation: str, amount: int) -> None:
        """Take in what an older worker says that it has settled, in all, and whose entries may be on their way."""
        _, window, start = _parts(name)
        if name in self._purses or not self._is_over(window, start):
            purse = self.open(name)
            purse.told[incarnation] = max(purse.told.get(incarnation, 0), amount)
            self._count_others(purse)

    def _count_others(self, purse: Purse) -> None:
        ledger = purse.ledger
        parts = ledger.parts if ledger is not None else {}
        known = ledger.total - parts.get(self._incarnation, 0) - purse.corrected if ledger is not None else 0
        ahead = sum(max(amount - parts.get(name, 0), 0) for name, amount in purse.told.items())
        purse.others = max(purse.others, known + ahead)
        self.look(purse)

    def hear(self, purse: Purse, spent: int) -> None:
        """Take in what everybody spent, as far as a shared store has heard of it. Just behind a correction it may lack
        that, and what it says is passed over."""
        if purse.deaf_until and self._wall_time() < purse.deaf_until:
            return
        purse.deaf_until = 0.0
        purse.others = max(purse.others, spent - purse.own - purse.corrected)
        self.look(purse)

    def look(self, purse: Purse) -> None:
        """Tell, once, if running exchanges are to stop because all is spent."""
        if purse.stops and purse.spent >= purse.amount:
            purse.stops = False
            self._on_spent(purse.name)

    def begins_at_nothing(self, name: str) -> bool:
        """Whether an earlier window of the same budget was told of: so nothing was spent before this one."""
        kind, _, start = _parts(name)
        return self._covered.get(kind, start) < start

    def _is_over(self, window: Window, start: int) -> bool:
        end = window_end(window, start)
        return end is not None and end <= self._wall_time()

    def _sweep(self) -> None:
        """Forget windows that are over; the next sweep comes when there are twice as many, so it costs little."""
        gone = [name for name, one in self._purses.items() if not one.held and self._is_over(one.window, one.start)]
        for name in gone:
            del self._purses[name]
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._purses))


def room_again_in(claim: Claim, spent: int, wall: float) -> float | None:
    """Seconds until a used-up budget begins anew; None if never, or if settled holds may make room before that."""
    budget = claim.budget
    if budget is None or not 0 < budget.amount <= spent or (end := window_end(budget.window, claim.window)) is None:
        return None
    return max(end - wall, 0.0)


def _parts(name: str) -> tuple[str, Window, int]:
    """A purse's subject and kind of window in one, its window, and where that begins."""
    kind, _, start = name.rpartition("|")
    return kind, Window(kind.rpartition("|")[2]), int(start)
