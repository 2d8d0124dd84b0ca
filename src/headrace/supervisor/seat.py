"""The state machine of one seat: the place of a worker or of the control process, whoever fills it.

    EMPTY ──fill──▶ STARTING ──ready──▶ TAKEN ──replace──▶ CHANGING ──ready (successor)──▶ TAKEN
                     ▲    │               │                  │ │
                     │    └─────died──────┤                  │ └─ died (successor) ──▶ TAKEN, the old one stays
                     │                    ▼                  └─── died (old one) ───▶ STARTING: the successor is it
                     └────rested──── RESTING
    any ──close──▶ CLOSED

Who leaves after a change drains apart and has no seat any more. A child that dies is followed at once. So are the first
three in a row that die within 10 s of their start, for clients wait; more in a row are a loop, and each of them is
followed after a rest: 0.1 s, which doubles up to 5 s.

Time is passed in, in seconds; a child is its number, which rises with each.
"""

from dataclasses import dataclass
from enum import Enum, auto
from typing import Final

SHORT_LIFE_S: Final = 10.0
SHORT_LIVES: Final = 3
"""So many in a row are followed at once."""
FIRST_REST_S: Final = 0.1
LONGEST_REST_S: Final = 5.0


class Phase(Enum):
    """How a seat is."""

    EMPTY = auto()
    """Nobody was asked to take it yet."""
    STARTING = auto()
    """A child starts; nobody serves."""
    TAKEN = auto()
    """A child serves."""
    CHANGING = auto()
    """A child serves, and its successor starts."""
    RESTING = auto()
    """Too many died too soon; the next one follows after a rest."""
    CLOSED = auto()
    """Nobody follows any more."""


@dataclass(frozen=True, slots=True)
class Spawn:
    """Start this child."""

    number: int


@dataclass(frozen=True, slots=True)
class Replaced:
    """This child's successor serves: let it drain."""

    number: int


@dataclass(frozen=True, slots=True)
class Rest:
    """Call `rested` after so many seconds."""

    seconds: float


Action = Spawn | Replaced | Rest


class Seat:
    """One seat. Each method returns what to do, in order."""

    def __init__(self) -> None:
        self.phase = Phase.EMPTY
        self.sitting: int | None = None
        """The child that serves, or that starts where nobody serves."""
        self.successor: int | None = None
        """The child that starts beside one that serves."""
        self._next = 1
        self._born: dict[int, float] = {}
        self._short_lives = 0
        """How many in a row have died soon."""
        self._rest_s = FIRST_REST_S
        """How long the next rest is."""

    def fill(self, now: float) -> tuple[Action, ...]:
        """The first child."""
        if self.phase is not Phase.EMPTY:
            return ()
        return self._start(now)

    def ready(self, number: int) -> tuple[Action, ...]:
        """A child serves."""
        if self.phase is Phase.STARTING and number == self.sitting:
            self.phase = Phase.TAKEN
        elif self.phase is Phase.CHANGING and number == self.successor:
            self.phase = Phase.TAKEN
            old, self.sitting, self.successor = self.sitting, number, None
            assert old is not None
            return (Replaced(old),)
        return ()

    def replace(self, now: float) -> tuple[Action, ...]:
        """Begin to change the child that serves; nothing where none does, or a change is under way."""
        if self.phase is not Phase.TAKEN:
            return ()
        self.phase = Phase.CHANGING
        self.successor = self._born_now(now)
        return (Spawn(self.successor),)

    def died(self, number: int, now: float) -> tuple[Action, ...]:
        """A child is gone. One that had left its seat before changes nothing."""
        lived_s = now - self._born.pop(number, now)
        if self.phase is Phase.CLOSED:
            return ()
        if number == self.successor:
            self.phase, self.successor = Phase.TAKEN, None
        elif number == self.sitting and self.phase is Phase.CHANGING:
            self.phase = Phase.STARTING
            self.sitting, self.successor = self.successor, None
        elif number == self.sitting:
            return self._follow(lived_s, now)
        return ()

    def rested(self, now: float) -> tuple[Action, ...]:
        """The rest is over."""
        return self._start(now) if self.phase is Phase.RESTING else ()

    def close(self) -> None:
        """Nobody follows any more; those who are here are to be drained."""
        self.phase = Phase.CLOSED

    def _follow(self, lived_s: float, now: float) -> tuple[Action, ...]:
        self.sitting = None
        self._short_lives = 0 if lived_s >= SHORT_LIFE_S else self._short_lives + 1
        if self._short_lives <= SHORT_LIVES:
            self._rest_s = FIRST_REST_S
            return self._start(now)
        rest_s, self._rest_s = self._rest_s, min(self._rest_s * 2, LONGEST_REST_S)
        self.phase = Phase.RESTING
        return (Rest(rest_s),)

    def _start(self, now: float) -> tuple[Action, ...]:
        self.phase = Phase.STARTING
        self.sitting = self._born_now(now)
        return (Spawn(self.sitting),)

    def _born_now(self, now: float) -> int:
        number = self._next
        self._next += 1
        self._born[number] = now
        return number
