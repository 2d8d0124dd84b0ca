"""Each running exchange in its turn, once an interval, if it moved; and never many at once."""

from collections.abc import Callable

import pytest

from headrace.journal.checkpoints import LOOK_S, MOST_A_TURN, Checkpoints
from headrace.model.entry import Checkpoint, Record
from tests.journal.disk import Handle

EVERY_S = 10.0


class Loop:
    """Time by hand."""

    def __init__(self) -> None:
        self.now = 100.0
        self.calls: list[tuple[float, Handle]] = []
        self.turns = 0

    def time(self) -> float:
        return self.now

    def call_later(self, delay: float, call: Callable[[], object]) -> Handle:
        self.calls.append((self.now + delay, handle := Handle(call)))
        return handle

    def call_soon(self, call: Callable[[], object]) -> Handle:
        return self.call_later(0.0, call)

    def run_until(self, time: float) -> None:
        """Turn by turn: what a call calls soon is another turn's."""
        while due := [one for one in self.calls if one[0] <= time]:
            first = min(due, key=lambda one: one[0])
            self.calls.remove(first)
            self.now = max(self.now, first[0])
            if not first[1].cancelled:
                self.turns += 1
                first[1].call()
        self.now = time


class Exchange:
    """One that moves when it is told to."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.moved = True
        self.asked: list[float] = []

    def checkpoint(self, now: float) -> Checkpoint | None:
        self.asked.append(now)
        moved, self.moved = self.moved, False
        return Checkpoint(id=self.name, duration_s=now) if moved else None


@pytest.fixture
def loop() -> Loop:
    return Loop()


@pytest.fixture
def noted() -> list[Record]:
    return []


@pytest.fixture
def checkpoints(loop: Loop, noted: list[Record]) -> Checkpoints:
    return Checkpoints(loop, EVERY_S, noted.append)  # type: ignore[arg-type]


def test_once_an_interval(loop: Loop, checkpoints: Checkpoints, noted: list[Record]) -> None:
    loop.run_until(103.0)
    one = Exchange("one")
    checkpoints.begin(one)
    loop.run_until(112.9)
    assert noted == []
    for times in range(1, 5):
        one.moved = True
        loop.run_until(113.0 + (times - 1) * EVERY_S + 0.5)
        assert len(noted) == times
    assert noted[0] == Checkpoint(id="one", duration_s=113.0)
    assert one.asked == [113.0, 123.0, 133.0, 143.0]


def test_nothing_of_one_that_has_not_moved(loop: Loop, checkpoints: Checkpoints, noted: list[Record]) -> None:
    one = Exchange("one")
    checkpoints.begin(one)
    loop.run_until(150.0)
    assert len(noted) == 1 and len(one.asked) == 5
    one.moved = True
    loop.run_until(160.0)
    assert len(noted) == 2


def test_nothing_of_one_that_has_ended(loop: Loop, checkpoints: Checkpoints, noted: list[Record]) -> None:
    one, other = Exchange("one"), Exchange("other")
    checkpoints.begin(one)
    loop.run_until(105.0)
    checkpoints.begin(other)
    checkpoints.end(one)
    checkpoints.end(Exchange("never begun"))
    assert len(checkpoints) == 1
    loop.run_until(116.0)
    assert noted == [Checkpoint(id="other", duration_s=115.0)] and one.asked == []
    checkpoints.end(other)
    loop.run_until(200.0)
    assert loop.calls == [] and len(other.asked) == 1, "with none that runs nothing wakes up"
    checkpoints.begin(one)
    loop.run_until(210.0)
    assert one.asked == [210.0]


def test_many_at_once_are_spread_over_turns(loop: Loop, checkpoints: Checkpoints, noted: list[Record]) -> None:
    count = 10 * MOST_A_TURN + 1
    assert MOST_A_TURN <= 200
    for number in range(count):
        checkpoints.begin(Exchange(str(number)))
    loop.run_until(110.0)
    assert len(noted) == count and loop.turns == 11
    assert [record.id for record in noted] == [str(number) for number in range(count)], "each once, in order"
    loop.turns = 0
    loop.run_until(120.0)
    assert loop.turns == 11


def test_few_now_and_then_share_a_wake_up(loop: Loop, checkpoints: Checkpoints) -> None:
    exchanges = [Exchange(str(number)) for number in range(1000)]
    for number, one in enumerate(exchanges):
        loop.run_until(100.0 + number * EVERY_S / 1000)
        checkpoints.begin(one)
    loop.run_until(109.999)
    loop.turns = 0
    loop.run_until(119.999)
    assert loop.turns <= EVERY_S / LOOK_S + 1
    loop.run_until(120.5)
    waits = [one.asked[0] - 100.0 - number * EVERY_S / 1000 for number, one in enumerate(exchanges)]
    assert min(waits) >= EVERY_S - 1e-6 and max(waits) <= EVERY_S + LOOK_S + 1e-6


def test_one_that_fails_holds_up_no_other(loop: Loop, checkpoints: Checkpoints, noted: list[Record]) -> None:
    """The loop's exception handler hears of it."""

    class Failing(Exchange):
        def checkpoint(self, now: float) -> Checkpoint | None:
            raise RuntimeError("a defect")

    checkpoints.begin(Failing("failing"))
    checkpoints.begin(Exchange("other"))
    with pytest.raises(RuntimeError):
        loop.run_until(110.0)
    loop.run_until(111.0)
    assert [record.id for record in noted] == ["other"]


def test_closed(loop: Loop, checkpoints: Checkpoints) -> None:
    one = Exchange("one")
    checkpoints.begin(one)
    checkpoints.close()
    checkpoints.close()
    loop.run_until(200.0)
    assert one.asked == [] and len(checkpoints) == 0
