"""What a worker counts itself, beside a model that keeps every event and adds up."""

from dataclasses import dataclass, field

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headrace.model.allowance import Claim, Denial, Limit, Spent
from headrace.model.limits import Budget, Limits, Window
from headrace.shared.purse import Purses
from headrace.shared.tally import Tallied, Tally
from tests.shared.stage import claim

SUBJECTS = ("key:a", "key:b", "owner:o")
LIMITS = {
    "key:a": Limits(requests_per_minute=3, tokens_per_minute=50, concurrent=2),
    "key:b": Limits(tokens_per_minute=40),
    "owner:o": Limits(requests_per_minute=5, tokens_per_minute=90, concurrent=3),
}
BUDGETS = {"key:a": Budget(100, Window.TOTAL), "key:b": None, "owner:o": Budget(150, Window.TOTAL)}


@dataclass
class Plain:
    """One subject, as slowly as can be."""

    requests: list[int] = field(default_factory=list)
    tokens: list[tuple[int, int]] = field(default_factory=list)
    running: int = 0
    held: int = 0
    settled: int = 0

    def requests_at(self, second: int) -> int:
        return sum(one > second - 60 for one in self.requests)

    def tokens_at(self, second: int) -> int:
        return sum(tokens for one, tokens in self.tokens if one > second - 60)

    def denial(self, subject: str, second: int) -> set[Limit]:
        limits, found = LIMITS[subject], set()
        if limits.requests_per_minute is not None and self.requests_at(second) >= limits.requests_per_minute:
            found.add(Limit.REQUESTS)
        if limits.tokens_per_minute is not None and self.tokens_at(second) >= limits.tokens_per_minute:
            found.add(Limit.TOKENS)
        if limits.concurrent is not None and self.running >= limits.concurrent:
            found.add(Limit.CONCURRENT)
        return found

    def is_spent(self, subject: str) -> bool:
        budget = BUDGETS[subject]
        return budget is not None and self.settled + self.held >= budget.amount


class Machine(RuleBasedStateMachine):
    """Claims, time and ends in any order."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        purses = Purses("w1", lambda: self.now, lambda purse: None)
        self.released = 0
        self.tally = Tally(purses, lambda: self.now, lambda: self.now, self.release)
        self.plain = {subject: Plain() for subject in SUBJECTS}
        self.leases: list[tuple[Tallied, int]] = []
        self.ended: list[Tallied] = []
        self.tally.cover([Spent(purse=f"{subject}|total|0") for subject in SUBJECTS])

    def release(self, claims: object) -> None:
        self.released += 1

    @rule(seconds=st.one_of(st.floats(0, 3), st.sampled_from([0.5, 1, 30, 58, 59, 59.5, 60, 61, 119, 500])))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(
        subjects=st.sampled_from([("key:a",), ("key:b",), ("key:a", "owner:o"), ("key:b", "owner:o")]),
        tokens=st.integers(0, 40),
        hold=st.integers(0, 60),
    )
    def ask(self, subjects: tuple[str, ...], tokens: int, hold: int) -> None:
        second = int(self.now)
        asked = [Claim(name, LIMITS[name], BUDGETS[name], tokens, hold) for name in subjects]
        found = self.tally.attempt(asked)
        spent = [name for name in subjects if self.plain[name].is_spent(name)]
        denials = {(name, one) for name in subjects for one in self.plain[name].denial(name, second)}
        if isinstance(found, Denial):
            if spent:
                assert (found.limit, found.subject) == (Limit.BUDGET, spent[0])
            else:
                assert (found.subject, found.limit) in denials
                self.check_wait(found)
            return
        assert not spent
        assert not denials
        for name in subjects:
            plain = self.plain[name]
            plain.requests.append(second)
            plain.tokens.append((second, tokens))
            plain.running += 1
            plain.held += hold if BUDGETS[name] else 0
        assert [found.room(number).requests_left for number in range(len(subjects))] == [
            None
            if (limit := LIMITS[name].requests_per_minute) is None
            else limit - self.plain[name].requests_at(second)
            for name in subjects
        ]
        self.leases.append((found, hold))

    def check_wait(self, denial: Denial) -> None:
        """There is room exactly when the denial says, unless a place is missing."""
        plain, wait_s = self.plain[denial.subject], denial.retry_after_s
        if denial.limit is Limit.CONCURRENT:
            assert wait_s is None
            return
        assert wait_s is not None
        assert 0 < wait_s <= 60
        then = int(self.now + wait_s + 1e-6)
        assert denial.limit not in plain.denial(denial.subject, then)
        assert denial.limit in plain.denial(denial.subject, then - 1)

    @precondition(lambda self: self.leases)
    @rule(which=st.integers(0, 20), tokens=st.integers(0, 90), amount=st.integers(0, 80))
    def settle(self, which: int, tokens: int, amount: int) -> None:
        lease, hold = self.leases.pop(which % len(self.leases))
        lease.settle(tokens, amount)
        self.give_back(lease, hold, tokens, amount)

    @precondition(lambda self: self.leases)
    @rule(which=st.integers(0, 20))
    def undo(self, which: int) -> None:
        lease, hold = self.leases.pop(which % len(self.leases))
        lease.undo()
        for one in lease.claims:
            self.plain[one.subject].requests.remove(int(lease.now))
        self.give_back(lease, hold, 0, 0)

    def give_back(self, lease: Tallied, hold: int, tokens: int, amount: int) -> None:
        for one in lease.claims:
            plain = self.plain[one.subject]
            more = tokens - one.tokens
            plain.tokens.append((int(self.now) if more > 0 else int(lease.now), more))
            plain.running -= 1
            if one.budget is not None:
                plain.held -= hold
                plain.settled += amount
        self.ended.append(lease)

    @precondition(lambda self: self.ended)
    @rule(tokens=st.integers(0, 90), amount=st.integers(0, 80))
    def settle_again(self, tokens: int, amount: int) -> None:
        released = self.released
        self.ended[-1].settle(tokens, amount)
        self.ended[-1].undo()
        assert self.released == released

    @invariant()
    def is_as_added_up(self) -> None:
        second = int(self.now)
        for name, plain in self.plain.items():
            found = self.tally.balance(Claim(name, LIMITS[name], BUDGETS[name]))
            assert (found.requests, found.tokens) == (plain.requests_at(second), plain.tokens_at(second))
            assert (found.running, found.held) == (plain.running, plain.held)
            assert found.spent == (plain.settled if BUDGETS[name] else None)
            newest = max((one for one in plain.requests if one > second - 60), default=None)
            assert found.requests_reset_s == (0.0 if newest is None else newest + 60 - self.now)


Machine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestMachine = Machine.TestCase


def new_tally(now: list[float]) -> Tally:
    purses = Purses("w1", lambda: now[0], lambda purse: None)
    return Tally(purses, lambda: now[0], lambda: now[0], lambda claims: None)


def test_idle_subjects_are_forgotten_and_others_are_not() -> None:
    now = [0.0]
    tally = new_tally(now)
    kept = tally.attempt([claim("key:running")])
    for number in range(20_000):
        now[0] += 0.1
        found = tally.attempt([claim(f"key:{number}")])
        assert isinstance(found, Tallied)
        found.settle(0, 0)
    assert len(tally.accounts) <= 2 * 600 + 1024
    assert tally.accounts["key:running"].running == 1
    assert isinstance(kept, Tallied)


def test_the_denial_that_lasts_longest_is_told() -> None:
    now = [0.5]
    tally = new_tally(now)
    both = [claim(requests_per_minute=1), claim("owner:o", concurrent=1)]
    assert isinstance(tally.attempt(both), Tallied)
    denial = tally.denial(both)
    assert denial is not None
    assert (denial.subject, denial.limit, denial.retry_after_s) == ("key:a", Limit.REQUESTS, 59.5)


def test_what_another_has_given_is_counted_without_asking() -> None:
    tally = new_tally([0.0])
    full = [claim(concurrent=1, amount=5, hold=5)]
    leases = [tally.take(full) for _ in range(3)]
    assert (tally.accounts["key:a"].running, tally.balance(full[0]).spent) == (3, None)
    tally.cover([Spent(purse=full[0].purse)])
    assert tally.balance(full[0]).held == 15
    for lease in leases:
        lease.settle(0, 1)
    assert (tally.accounts["key:a"].running, tally.balance(full[0]).spent) == (0, 3)
