"""The wheel: in due order, nobody in vain, whatever the loop does."""

import gc
import random
import weakref
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from headrace.relay.timers import QUANTUM_S, Wheel
from tests.relay.loop import Loop


class Ticker:
    """Notes when it was looked at; `then` says when to look next."""

    def __init__(
        self, name: str, log: list[tuple[str, float]], then: Callable[[float], float | None] | None = None
    ) -> None:
        self.name = name
        self.log = log
        self.then = then

    def tick(self, now: float) -> float | None:
        """Look."""
        self.log.append((self.name, now))
        return self.then(now) if self.then is not None else None


@pytest.fixture
def loop() -> Iterator[Loop]:
    loop = Loop()
    yield loop
    loop.close()


@pytest.fixture
def wheel(loop: Loop) -> Wheel:
    return Wheel(loop)  # type: ignore[arg-type]


def test_in_due_order_and_within_a_quantum(loop: Loop, wheel: Wheel) -> None:
    log: list[tuple[str, float]] = []
    generator = random.Random(1)
    dues = {str(number): 1000.0 + generator.uniform(0.0, 20.0) for number in range(500)}
    for name, due in dues.items():
        wheel.add(Ticker(name, log), due)
    assert len(wheel) == 500
    loop.advance(25.0)
    assert len(log) == 500 and len(wheel) == 0
    for name, at in log:
        assert 0.0 <= at - dues[name] <= 2 * QUANTUM_S + 1e-6
    order = [dues[name] for name, _ in log]
    assert all(later > earlier - QUANTUM_S for earlier, later in pairwise(order))


def test_each_is_touched_only_when_it_is_due(loop: Loop, wheel: Wheel) -> None:
    """Ten thousand that wait cost the turns nothing: a turn looks at those that are due."""
    log: list[tuple[str, float]] = []
    for number in range(10_000):
        wheel.add(Ticker(f"far{number}", log), 5000.0)
    wheel.add(Ticker("near", log), 1001.0)
    loop.advance(60.0)
    assert [name for name, _ in log] == ["near"]


def test_it_says_when_to_look_next(loop: Loop, wheel: Wheel) -> None:
    log: list[tuple[str, float]] = []
    wheel.add(Ticker("a", log, lambda now: now + 1.0 if now < 1004.0 else None), 1001.0)
    loop.advance(20.0)
    assert [round(now - 1000.0) for _, now in log] == [1, 2, 3, 4]
    assert len(wheel) == 0


def test_a_due_time_that_is_past(loop: Loop, wheel: Wheel) -> None:
    """It is looked at in the next turn, not in this one: a ticker that is always late does not spin."""
    log: list[tuple[str, float]] = []
    wheel.add(Ticker("late", log, lambda now: now - 5.0), 1.0)
    loop.advance(1.0)
    assert 18 <= len(log) <= 21


def test_moved_forward_but_not_back(loop: Loop, wheel: Wheel) -> None:
    log: list[tuple[str, float]] = []
    ticker = Ticker("a", log)
    wheel.add(ticker, 1010.0)
    wheel.add(ticker, 1002.0)
    wheel.add(ticker, 1020.0)
    assert len(wheel) == 1
    loop.advance(30.0)
    assert [round(now - 1000.0) for _, now in log] == [2]


def test_moved_forward_and_back_again(loop: Loop, wheel: Wheel) -> None:
    """An old place is empty, not a second one."""
    log: list[tuple[str, float]] = []
    ticker = Ticker("a", log, lambda now: 1010.0 if now < 1009.0 else None)
    wheel.add(ticker, 1010.0)
    wheel.add(ticker, 1001.0)
    loop.advance(30.0)
    assert [round(now - 1000.0) for _, now in log] == [1, 10]


def test_removed(loop: Loop, wheel: Wheel) -> None:
    log: list[tuple[str, float]] = []
    kept, gone = Ticker("kept", log), Ticker("gone", log)
    wheel.add(kept, 1001.0)
    wheel.add(gone, 1001.0)
    wheel.remove(gone)
    wheel.remove(gone)
    loop.advance(5.0)
    assert [name for name, _ in log] == ["kept"]


def test_what_was_removed_or_moved_is_let_go(loop: Loop, wheel: Wheel) -> None:
    """case B071: a limit of an hour does not keep a finished exchange for an hour."""
    log: list[tuple[str, float]] = []
    wheel.add(Ticker("other", log), 9000.0)
    ticker = Ticker("a", log)
    reference = weakref.ref(ticker)
    wheel.add(ticker, 4600.0)
    wheel.add(ticker, 1600.0)
    wheel.remove(ticker)
    del ticker
    gc.collect()
    assert reference() is None


def test_one_removes_another_in_its_turn(loop: Loop, wheel: Wheel) -> None:
    log: list[tuple[str, float]] = []
    second = Ticker("second", log)

    def first(now: float) -> None:
        wheel.remove(second)

    wheel.add(Ticker("first", log, first), 1001.0)
    wheel.add(second, 1001.0)
    loop.advance(5.0)
    assert [name for name, _ in log] == ["first"]


def test_one_adds_another_in_its_turn(loop: Loop, wheel: Wheel) -> None:
    log: list[tuple[str, float]] = []
    second = Ticker("second", log)

    def first(now: float) -> None:
        wheel.add(second, now)

    wheel.add(Ticker("first", log, first), 1001.0)
    loop.advance(5.0)
    assert [name for name, _ in log] == ["first", "second"]
    assert log[1][1] > log[0][1]


@pytest.mark.parametrize("held_up", [0.5, 100.0])
def test_a_loop_held_up_for_long(loop: Loop, wheel: Wheel, held_up: float) -> None:
    """All that fell due meanwhile is looked at in the first turn, in order, once."""
    log: list[tuple[str, float]] = []
    for number in range(5):
        wheel.add(Ticker(str(number), log), 1000.1 + number * 0.07)
    loop.hang(held_up)
    loop.advance(0.0)
    assert [name for name, _ in log] == ["0", "1", "2", "3", "4"]
    assert {now for _, now in log} == {1000.0 + held_up}


def test_it_stands_still_when_there_is_nobody(loop: Loop, wheel: Wheel) -> None:
    log: list[tuple[str, float]] = []
    wheel.add(Ticker("a", log), 1001.0)
    loop.advance(10.0)
    assert not loop.calls
    wheel.add(Ticker("b", log), 1011.0)
    loop.advance(10.0)
    assert [name for name, _ in log] == ["a", "b"] and not loop.calls


def test_closed(loop: Loop, wheel: Wheel) -> None:
    log: list[tuple[str, float]] = []
    wheel.close()
    wheel.add(Ticker("a", log), 1001.0)
    wheel.close()
    loop.advance(10.0)
    assert log == [] and len(wheel) == 0


def test_closed_in_a_turn(loop: Loop, wheel: Wheel) -> None:
    log: list[tuple[str, float]] = []
    wheel.add(Ticker("first", log, lambda now: wheel.close()), 1001.0)
    wheel.add(Ticker("second", log), 1001.0)
    loop.advance(10.0)
    assert [name for name, _ in log] == ["first"] and not loop.calls


def test_one_that_raises_stops_no_other(loop: Loop, wheel: Wheel) -> None:
    """A fault in one exchange must not end the limits of all."""
    log: list[tuple[str, float]] = []

    def broken(now: float) -> None:
        raise ZeroDivisionError

    wheel.add(Ticker("broken", log, broken), 1001.0)
    wheel.add(Ticker("same bucket", log), 1001.0)
    wheel.add(Ticker("later", log), 1002.0)
    with pytest.raises(ZeroDivisionError):
        loop.advance(10.0)
    loop.advance(10.0)
    assert [name for name, _ in log] == ["broken", "same bucket", "later"]
    assert len(wheel) == 0
