"""What is spent of budgets."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.model.allowance import Claim, Spent
from headrace.model.limits import Budget, Limits, Window
from headrace.shared.purse import Purses, room_again_in
from tests.shared.stage import HOUR, claim


def purses_at(now: list[float], told: list[str] | None = None) -> Purses:
    return Purses("w1", lambda: now[0], (told if told is not None else []).append)


PARTS = st.dictionaries(st.sampled_from(["w1", "w2", "w3"]), st.integers(0, 50), max_size=3)


@given(st.lists(st.tuples(st.integers(0, 50), PARTS), max_size=8), st.integers(0, 60))
def test_what_is_known_never_falls(told: list[tuple[int, dict[str, int]]], own: int) -> None:
    purses, purse, last = purses_at([0.0]), claim(amount=9).purse, own
    purses.open(purse).own = own
    for settled, parts in told:
        covered = purses.cover(Spent(purse=purse, settled=settled, parts=parts))
        assert covered is not None
        others = settled + sum(part for name, part in parts.items() if name != "w1")
        assert covered.spent >= max(last, others + max(own, parts.get("w1", 0)))
        last = covered.spent


def test_a_new_window_begins_at_nothing_only_where_the_old_one_was_known() -> None:
    purses = purses_at([float(HOUR)])
    first = claim(amount=9)
    assert purses.find(first) is None
    purses.cover(Spent(purse=first.purse, settled=4))
    for window in (HOUR + 3600, HOUR + 7200):
        later = Claim("key:a", Limits(), Budget(9, Window.HOUR), window=window)
        found = purses.find(later)
        assert found is not None
        assert found.spent == 0
    earlier = Claim("key:a", Limits(), Budget(9, Window.HOUR), window=HOUR - 3600)
    assert purses.find(earlier) is None
    assert purses.find(Claim("key:b", Limits(), Budget(9, Window.HOUR), window=HOUR + 3600)) is None


def test_windows_that_are_over_are_forgotten_unless_something_is_held() -> None:
    now = [float(HOUR)]
    purses = purses_at(now)
    held = purses.open(claim("key:held", amount=9).purse)
    held.held = 1
    kept = purses.open("key:kept|total|0")
    for number in range(3000):
        purses.open(claim(f"key:{number}", amount=9).purse)
    now[0] += 3600
    for number in range(5000):
        purses.open(f"key:{number}|hour|{HOUR + 3600}")
    assert purses.get("key:1|hour|" + str(HOUR)) is None
    assert purses.get(held.name) is held
    assert purses.get(kept.name) is kept
    assert len(purses) == 5002
    assert purses.cover(Spent(purse=claim("key:late", amount=9).purse)) is None


def test_who_runs_is_told_again_after_the_budget_has_grown() -> None:
    told: list[str] = []
    purses = purses_at([0.0], told)
    purse = purses.open(claim(amount=9).purse)
    purse.amount, purse.stops = 10, True
    purses.hear(purse, 9)
    assert told == []
    purses.hear(purse, 10)
    purses.hear(purse, 11)
    assert told == [purse.name]
    purse.amount, purse.stops = 20, True  # as the next claim has it
    purses.cover(Spent(purse=purse.name, settled=20))
    assert told == [purse.name] * 2


def test_when_a_budget_begins_anew() -> None:
    wall = HOUR + 100.0
    assert room_again_in(claim(amount=9), 9, wall) == 3500
    assert room_again_in(claim(amount=9), 8, wall) is None  # holds may be settled sooner
    assert room_again_in(claim(amount=0), 0, wall) is None
    assert room_again_in(claim(), 0, wall) is None
    assert room_again_in(Claim("key:a", Limits(), Budget(9, Window.TOTAL)), 9, wall) is None
