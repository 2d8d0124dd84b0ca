"""A roll's two tallies, with the links between them as queues: what the older one gives counts in the younger one."""

import asyncio
from collections import deque
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import msgspec
import pytest

from headrace.link.messages import ToWorker
from headrace.model.allowance import Claim, Denial, Lease, Limit, Spent
from headrace.model.succession import Gone, HandOver, Held, Released
from headrace.shared import succession as module
from headrace.shared.memory import MemoryCounters
from headrace.shared.succession import Succession
from tests.shared.stage import NOON, balance, claim, denied, granted, nothing_spent

T = TypeVar("T")


class Roll:
    """An older and a younger worker, on one clock. What the older one says waits in `sent` until it is `carried`."""

    def __init__(self) -> None:
        self.time = NOON
        self.sent: deque[object] = deque()
        self.later: deque[Callable[[], None]] = deque()
        self.old = MemoryCounters("old", self._now, self._now)
        self.new = MemoryCounters("new", self._now, self._now)
        self.giving = self.old.succession(self.sent.append, self.later.append)
        self.taking: Succession = self.new.succession(lambda message: None, self.later.append)

    def _now(self) -> float:
        return self.time

    def hand_over(self) -> None:
        self.giving.hear(HandOver())
        self.carry()

    def carry(self) -> None:
        while self.sent or self.later:
            while self.sent:
                self.deliver(self.sent.popleft())
            if self.later:
                self.later.popleft()()

    def deliver(self, message: object) -> None:
        """As a link does it."""
        heard = msgspec.msgpack.decode(msgspec.msgpack.encode(message), type=ToWorker)
        self.taking.hear(heard)  # type: ignore[arg-type]

    def given(self, *claims: Claim) -> Lease:
        return granted(done(self.old.claim(claims)))

    def refused(self, one: Claim) -> Denial:
        return denied(done(self.new.claim([one])))


def done(of: Coroutine[Any, Any, T]) -> T:
    """What comes out of it: it does not wait."""
    with pytest.raises(StopIteration) as end:
        of.send(None)
    found: T = end.value.value
    return found


@pytest.fixture
def roll() -> Roll:
    return Roll()


def test_places_are_taken_until_the_older_one_gives_them_back(roll: Roll) -> None:
    lease = roll.given(claim(concurrent=1), claim("owner:o", concurrent=1))
    roll.hand_over()
    for one in (claim(concurrent=1), claim("owner:o", concurrent=1)):
        assert (roll.refused(one)).limit is Limit.CONCURRENT
    lease.settle(0, 0)
    roll.carry()
    granted(done(roll.new.claim([claim(concurrent=1), claim("owner:o", concurrent=1)])))


def test_who_waits_at_the_younger_one_hears_of_a_place_at_the_older(roll: Roll) -> None:
    async def scenario() -> None:
        asked = claim("credential:c/one", concurrent=1)
        lease = roll.given(asked)
        roll.hand_over()
        waiting = asyncio.create_task(roll.new.claim_one([asked], 60.0))
        await asyncio.sleep(0)
        lease.settle(0, 0)
        roll.carry()
        found = await waiting
        assert not isinstance(found, Denial)
        assert found[0] == 0

    asyncio.run(scenario())


def test_a_minute_is_counted_once_and_leaves_when_it_would_have(roll: Roll) -> None:
    asked = claim(requests_per_minute=3, tokens_per_minute=1000, tokens=10)
    (roll.given(asked)).settle(200, 0)
    roll.time += 30
    roll.given(asked)
    roll.hand_over()
    stand = done(balance(roll.new, asked))
    assert (stand.requests, stand.tokens, stand.running) == (2, 210, 1)
    roll.given(asked)
    roll.carry()
    assert (roll.refused(asked)).limit is Limit.REQUESTS
    roll.time += 30
    stand = done(balance(roll.new, asked))
    assert (stand.requests, stand.tokens, stand.running) == (2, 20, 2)


def test_tokens_are_corrected_in_the_second_they_were_counted_in(roll: Roll) -> None:
    asked = claim(tokens_per_minute=1000, tokens=300)
    lease = roll.given(asked)
    roll.time += 20
    roll.hand_over()
    lease.settle(100, 0)
    roll.carry()
    assert (done(balance(roll.new, asked))).tokens == 100
    roll.time += 40
    assert (done(balance(roll.new, asked))).tokens == 0


def test_a_hold_becomes_what_was_spent_and_the_ledger_does_not_count_it_again(roll: Roll) -> None:
    asked = claim(amount=1000, hold=700)
    for counters in (roll.old, roll.new):
        counters.cover(nothing_spent(asked))
    (roll.given(asked)).settle(0, 50)
    lease = roll.given(asked)
    roll.hand_over()
    stand = done(balance(roll.new, asked))
    assert (stand.spent, stand.held) == (50, 700)
    lease.settle(0, 300)
    roll.carry()
    stand = done(balance(roll.new, asked))
    assert (stand.spent, stand.held) == (350, 0), "its entry may not be in the ledger yet"
    for parts in ({"old": 50}, {"old": 350}, {"old": 350, "third": 5}):
        roll.new.cover([Spent(purse=asked.purse, settled=20, parts=parts)])
    assert (done(balance(roll.new, asked))).spent == 20 + 350 + 5
    roll.new.cover([Spent(purse=asked.purse, settled=20 + 350, parts={"third": 6})])
    assert (done(balance(roll.new, asked))).spent == 20 + 350 + 6, "its journal has been summed up"


def test_all_that_it_holds_may_be_more_than_one_message(roll: Roll, monkeypatch: pytest.MonkeyPatch) -> None:
    """Changes meanwhile come behind it."""
    monkeypatch.setattr(module, "SLICE", 2)
    asked = [claim(f"key:{number}", concurrent=1) for number in range(7)]
    leases = [roll.given(one) for one in asked]
    roll.giving.hear(HandOver())
    leases[6].settle(0, 0)
    late = claim("key:late", concurrent=1)
    roll.given(late)
    assert len(roll.sent) == 1, "one message in a turn"
    roll.carry()
    for one in [*asked[:6], late]:
        roll.refused(one)
    granted(done(roll.new.claim([asked[6]])))


def test_told_again_it_is_the_same_and_what_was_missed_is_made_good(roll: Roll) -> None:
    asked = claim(concurrent=2, requests_per_minute=100, amount=1000, hold=10)
    for counters in (roll.old, roll.new):
        counters.cover(nothing_spent(asked))
    first, second = roll.given(asked), roll.given(asked)
    roll.hand_over()
    roll.hand_over()
    stand = done(balance(roll.new, asked))
    assert (stand.requests, stand.running, stand.held) == (2, 2, 20)
    drop_old = roll.taking.link_is_new()
    roll.giving.link_is_new()
    first.settle(0, 7)
    assert not roll.sent, "nobody listens"
    roll.hand_over()
    drop_old()
    stand = done(balance(roll.new, asked))
    assert (stand.requests, stand.running, stand.held, stand.spent) == (2, 1, 10, 7)
    second.settle(0, 0)
    roll.carry()
    assert (done(balance(roll.new, asked))).running == 0


def test_a_dead_one_holds_nothing_but_its_minute_was_used(roll: Roll) -> None:
    asked = claim(concurrent=1, requests_per_minute=10, amount=1000, hold=10)
    for counters in (roll.old, roll.new):
        counters.cover(nothing_spent(asked))
    roll.given(asked)
    roll.hand_over()
    roll.deliver(Gone(incarnation="old"))
    stand = done(balance(roll.new, asked))
    assert (stand.requests, stand.running, stand.held) == (1, 0, 0)
    roll.deliver(Released(incarnation="old", number=1))
    assert (done(balance(roll.new, asked))).running == 0, "its late word changes nothing"


def test_who_died_while_the_link_was_away_does_not_hold_for_ever(roll: Roll) -> None:
    roll.given(claim(concurrent=1))
    roll.hand_over()
    drop = roll.taking.link_is_new()
    roll.refused(claim(concurrent=1))
    drop()
    granted(done(roll.new.claim([claim(concurrent=1)])))


def test_it_hands_on_only_what_it_has_given_itself(roll: Roll) -> None:
    """The third worker of a slot hears of the first one's leases from the first one."""
    roll.given(claim(concurrent=1))
    roll.hand_over()
    said: list[object] = []
    second = roll.new.succession(said.append, lambda call: call())
    second.hear(HandOver())
    assert [one.leases for one in said if isinstance(one, Held)] == [()] * len(said)


def test_nobody_is_told_when_there_is_no_successor_any_more(roll: Roll) -> None:
    lease = roll.given(claim(concurrent=1))
    roll.hand_over()
    roll.giving.hear(HandOver(wanted=False))
    roll.given(claim("key:b"))
    lease.settle(0, 0)
    assert not roll.sent
