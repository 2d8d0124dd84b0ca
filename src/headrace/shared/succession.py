"""The counters of two workers during a roll: the older one tells what it has given, the younger one counts it.

    HandOver ─▶ Outgoing ──Held, Given, Released──▶ (links) ──▶ Inherited ─▶ the successor's tally
                                                     Gone  ──▶

Money is told as what the incarnation has settled in all, and the larger of that and the ledger's word on its journal
counts; so it is neither counted twice nor missed while its entry is on the way.
"""

from collections import deque
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Final, TypeVar

from headrace.model.succession import Given, Gone, HandOver, Held, OpenLease, Released
from headrace.shared.tally import Tallied, Tally

SLICE: Final = 500
"""Leases or subjects in one message: the loop waits some 2 ms for it."""

T = TypeVar("T")


class Succession:
    """A worker's part in rolls, as the older one and as the younger. `send` brings a message to the control process;
    `soon` calls something in a later turn of the loop."""

    def __init__(
        self,
        tally: Tally,
        incarnation: str,
        send: Callable[[object], None],
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._outgoing = Outgoing(tally, incarnation, send, soon)
        self._inherited = Inherited(tally)

    def hear(self, message: HandOver | Held | Given | Released | Gone) -> None:
        """What came over the link."""
        match message:
            case HandOver(wanted=True):
                self._outgoing.begin()
            case HandOver():
                self._outgoing.end()
            case Held():
                self._inherited.hold(message)
            case Given():
                self._inherited.give(message.incarnation, message.lease)
            case Released():
                self._inherited.release(message)
            case Gone(incarnation=incarnation):
                self._inherited.drop(incarnation)

    def link_is_new(self) -> Callable[[], None]:
        """The link is another one: nobody is told anything until that is asked for again. What is returned is to be
        called when all have had the time to tell again what they hold: who has not is taken for gone."""
        self._outgoing.end()
        return self._inherited.doubt()


class Outgoing:
    """Tells what this worker's tally has given itself."""

    def __init__(
        self,
        tally: Tally,
        incarnation: str,
        send: Callable[[object], None],
        soon: Callable[[Callable[[], None]], object],
    ) -> None:
        self._tally = tally
        self._incarnation = incarnation
        self._send = send
        self._soon = soon
        self._numbers: dict[Tallied, int] = {}
        self._last_number = 0
        self._waiting: deque[object] = deque()
        """What is still to be sent, a message in each turn."""

    def begin(self) -> None:
        """Tell everything, then each change."""
        self._tally.watcher = self
        self._numbers = {lease: number for lease, number in self._numbers.items() if lease.held}
        is_idle = not self._waiting
        self._waiting += self._account()
        if is_idle:
            self._send_next()

    def end(self) -> None:
        """Tell nothing more."""
        self._tally.watcher = None
        self._waiting.clear()

    def given(self, lease: Tallied) -> None:
        """For the tally: a lease was given."""
        self._tell(Given(incarnation=self._incarnation, lease=self._open(lease, lease.now)))

    def settled(self, lease: Tallied, tokens: int) -> None:
        """For the tally: a lease was settled, and counts in its purses already."""
        number = self._numbers.pop(lease, None)
        if number is not None:
            spent = {purse.name: purse.own for purse in lease.purses if purse is not None}
            self._tell(Released(incarnation=self._incarnation, number=number, tokens=tokens, spent=spent))

    def _account(self) -> Iterator[Held]:
        tally, name = self._tally, self._incarnation
        now = tally.now
        yield Held(incarnation=name, first=True, spent={purse.name: purse.own for purse in tally.purses if purse.own})
        for leases in _slices(self._open(lease, now) for lease in tally.open):
            yield Held(incarnation=name, leases=leases)
        for minutes in _slices(tally.minutes()):
            yield Held(incarnation=name, minutes=minutes)
        yield Held(incarnation=name, last=True)

    def _open(self, lease: Tallied, now: float) -> OpenLease:
        number = self._numbers.get(lease)
        if number is None:
            self._last_number = number = self._numbers[lease] = self._last_number + 1
        return OpenLease(number=number, claims=tuple(lease.claims), age_s=now - lease.now)

    def _tell(self, message: object) -> None:
        """Behind what waits."""
        if self._waiting:
            self._waiting.append(message)
        else:
            self._send(message)

    def _send_next(self) -> None:
        if self._waiting:
            self._send(self._waiting.popleft())
        if self._waiting:
            self._soon(self._send_next)


class Inherited:
    """What older workers hold, in the tally of this one."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally
        self._leases: dict[str, dict[int, Tallied]] = {}
        """By incarnation and number."""
        self._told: dict[str, set[int]] = {}
        """The numbers in an account that is not whole yet."""
        self._minutes: dict[str, set[str]] = {}
        """The subjects whose minute was taken, by incarnation: later requests of theirs come one by one."""
        self._doubted: set[str] = set()

    def hold(self, message: Held) -> None:
        """A part of all that an older worker holds."""
        name = message.incarnation
        if message.first:
            self._told[name] = set()
            self._doubted.discard(name)
        leases, told = self._leases.setdefault(name, {}), self._told.setdefault(name, set())
        for lease in message.leases:
            told.add(lease.number)
            if lease.number not in leases:
                leases[lease.number] = self._tally.take(lease.claims, lease.age_s)
        minutes = self._minutes.setdefault(name, set())
        for minute in message.minutes:
            if minute.subject not in minutes:
                minutes.add(minute.subject)
                self._tally.add_minute(minute)
        self._spend(name, message.spent)
        if message.last:
            del self._told[name]
            for number in leases.keys() - told:
                _give_back(leases.pop(number))

    def give(self, incarnation: str, lease: OpenLease) -> None:
        """An older worker has given one more."""
        leases = self._leases.setdefault(incarnation, {})
        if lease.number not in leases:
            leases[lease.number] = self._tally.take(lease.claims)
            if (told := self._told.get(incarnation)) is not None:
                told.add(lease.number)

    def release(self, message: Released) -> None:
        """An older worker has settled one."""
        self._spend(message.incarnation, message.spent)
        lease = self._leases.get(message.incarnation, {}).pop(message.number, None)
        if lease is not None:
            lease.settle(message.tokens, 0)  # the amount is among what the incarnation has spent

    def drop(self, incarnation: str) -> None:
        """An older worker is gone. What it has used in the last minute is used all the same."""
        for lease in self._leases.pop(incarnation, {}).values():
            _give_back(lease)
        self._told.pop(incarnation, None)

    def doubt(self) -> Callable[[], None]:
        """Drop who has not told again what it holds when the returned is called."""
        self._doubted = set(self._leases)
        return self._drop_doubted

    def _drop_doubted(self) -> None:
        for incarnation in self._doubted:
            self.drop(incarnation)
        self._doubted = set()

    def _spend(self, incarnation: str, spent: dict[str, int]) -> None:
        for purse, amount in spent.items():
            self._tally.purses.hear_of(purse, incarnation, amount)


def _give_back(lease: Tallied) -> None:
    """Places and holds; its tokens stay as they were estimated."""
    lease.settle(lease.claims[0].tokens, 0)


def _slices(of: Iterator[T]) -> Iterator[tuple[T, ...]]:
    while part := tuple(islice(of, SLICE)):
        yield part
