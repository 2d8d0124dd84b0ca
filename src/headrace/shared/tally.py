"""What a worker counts itself: all accounts and purses in its memory. Nothing here waits, so a check and what it takes
are one step.

attempt ─▶ Tallied ── settle, once ─▶ places back, the rest of the tokens counted, the amount in place of the hold
      └──▶ Denial     undo, once ───▶ as if it had never been given
take ────▶ Tallied: what another worker has given
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from headrace.model.allowance import Balance, Claim, Denial, Limit, Room, Spent
from headrace.model.limits import Exceeded
from headrace.model.succession import Minute
from headrace.shared.account import Account
from headrace.shared.purse import Purse, Purses, room_again_in
from headrace.shared.rooms import reset_s, room_from_counts

_FIRST_SWEEP = 1024


class Tallied:
    """A lease that this worker's tally has given."""

    __slots__ = ("_tally", "accounts", "claims", "counted", "held", "now", "purses")

    def __init__(self, tally: "Tally", claims: Sequence[Claim], now: float) -> None:
        self._tally = tally
        self.claims = claims
        self.accounts: list[Account] = []
        self.purses: list[Purse | None] = []
        """By claim; None without a budget."""
        self.now = now
        """When it was given."""
        self.counted: list[int] = []
        """By claim, just behind it: requests, tokens, and the newest second with tokens."""
        self.held = True

    def room(self, number: int) -> Room:
        """See `model.allowance.Lease`."""
        return room_from_counts(self.claims[number], self.counted[3 * number : 3 * number + 3], self.now)

    def settle(self, tokens: int, amount: int) -> None:
        """See `model.allowance.Lease`."""
        if self.held:
            self.held = False
            self._tally.settle(self, tokens, amount)

    def undo(self) -> None:
        """Give everything back, the request too: nobody had any use of it."""
        if self.held:
            for account in self.accounts:
                account.uncount(int(self.now))
            self.settle(0, 0)


class Watcher(Protocol):
    """Hears of what a tally gives itself, and of its end."""

    def given(self, lease: Tallied) -> None:
        """One more."""

    def settled(self, lease: Tallied, tokens: int) -> None:
        """One less; its amount counts already."""


class Tally:
    """All accounts and purses of a worker. `loop_time` counts minutes and never falls; `wall_time` is for the windows
    of budgets; `released` hears of claims whose places are free again."""

    def __init__(
        self,
        purses: Purses,
        loop_time: Callable[[], float],
        wall_time: Callable[[], float],
        released: Callable[[Sequence[Claim]], None],
    ) -> None:
        self.purses = purses
        self._loop_time = loop_time
        self._wall_time = wall_time
        self._released = released
        self._accounts: dict[str, Account] = {}
        self._sweep_at = _FIRST_SWEEP
        self.open: set[Tallied] = set()
        """The leases that this tally has given itself."""
        self.watcher: Watcher | None = None

    @property
    def now(self) -> float:
        """The time that minutes are counted by."""
        return self._loop_time()

    @property
    def accounts(self) -> dict[str, Account]:
        """By subject; those that nothing is known of are absent."""
        return self._accounts

    def attempt(self, claims: Sequence[Claim]) -> Tallied | Denial:
        """All of the claims, or none."""
        now = self._loop_time()
        denial = self._denial(claims, now)
        if denial is not None:
            return denial
        lease = self._take(claims, now)
        self.open.add(lease)
        if self.watcher is not None:
            self.watcher.given(lease)
        return lease

    def denial(self, claims: Sequence[Claim]) -> Denial | None:
        """What stands against the claims now; nothing is taken."""
        return self._denial(claims, self._loop_time())

    def take(self, claims: Sequence[Claim], age_s: float | None = None) -> Tallied:
        """Count the claims without asking: another has given them already. With `age_s` that was so long ago, and
        their requests and tokens come by `add_minute`."""
        now = self._loop_time()
        return self._take(claims, now) if age_s is None else self._take(claims, now, given=now - age_s)

    def minutes(self) -> Iterator[Minute]:
        """What was used in the last minute, by subject."""
        second = int(self._loop_time())
        for subject, account in self._accounts.items():
            account.advance(second)
            if used := account.used:
                yield Minute(subject=subject, seconds=used)

    def add_minute(self, minute: Minute) -> None:
        """Count what another has let in, in the last minute."""
        second = int(self._loop_time())
        account = self._accounts.get(minute.subject) or self._open(minute.subject, second)
        account.advance(second)
        for ago, requests, tokens in minute.seconds:
            account.add(ago, requests, tokens)

    def _denial(self, claims: Sequence[Claim], now: float) -> Denial | None:
        """A budget counts before a rate, as it is never waited for; of rates and places the one that takes longest."""
        second, accounts = int(now), self._accounts
        full: list[tuple[Claim, Account]] | None = None
        for claim in claims:
            account = accounts.get(claim.subject) or self._open(claim.subject, second)
            if account.second != second:
                account.advance(second)
            budget = claim.budget
            if budget is not None:
                purse = account.purse
                if purse is None or purse.start != claim.window or purse.window is not budget.window or not purse.known:
                    purse = self.purses.find(claim)
                    if purse is None:
                        return Denial(Limit.UNKNOWN, claim.subject)
                if purse.own + purse.others + purse.corrected + purse.held >= budget.amount:
                    again = room_again_in(claim, purse.spent, self._wall_time())
                    return Denial(Limit.BUDGET, claim.subject, again)
            limits = claim.limits
            if (
                ((limit := limits.concurrent) is not None and account.running >= limit)
                or ((limit := limits.requests_per_minute) is not None and account.requests >= limit)
                or ((limit := limits.tokens_per_minute) is not None and account.tokens >= limit)
            ):
                full = [*(full or ()), (claim, account)]
        return _longest(full, now) if full else None

    def _take(self, claims: Sequence[Claim], now: float, given: float | None = None) -> Tallied:
        """With `given` they were given then, and count in their minute already."""
        second, accounts = int(now), self._accounts
        lease = Tallied(self, claims, now if given is None else given)
        for claim in claims:
            account = accounts.get(claim.subject) or self._open(claim.subject, second)
            if account.second != second:
                account.advance(second)
            if given is None:
                account.count(claim.tokens)
            account.running += 1
            lease.accounts.append(account)
            lease.counted += (account.requests, account.tokens, account.token_second)
            budget = claim.budget
            if budget is None:
                lease.purses.append(None)
                continue
            purse = account.purse
            if purse is None or purse.start != claim.window or purse.window is not budget.window:
                purse = account.purse = self.purses.open(claim.purse)
            purse.held += claim.hold
            purse.amount = budget.amount
            purse.stops = budget.exceeded is Exceeded.STOP
            lease.purses.append(purse)
        return lease

    def purse(self, claim: Claim) -> Purse | None:
        """The purse of a claim, known or not; None without a budget."""
        if claim.budget is None:
            return None
        account = self._accounts.get(claim.subject)
        purse = account.purse if account is not None else None
        if purse is None or purse.start != claim.window or purse.window is not claim.budget.window:
            purse = self.purses.open(claim.purse)
        return purse

    def settle(self, lease: Tallied, tokens: int, amount: int) -> None:
        """What a lease calls at its end."""
        second, given = int(self._loop_time()), int(lease.now)
        for claim, account, purse in zip(lease.claims, lease.accounts, lease.purses, strict=True):
            account.running -= 1
            if tokens != claim.tokens:
                if account.second != second:
                    account.advance(second)
                account.correct(given, tokens - claim.tokens)
            if purse is not None:
                purse.held -= claim.hold
                purse.own += amount
                if purse.stops:
                    self.purses.look(purse)
        if lease in self.open:
            self.open.remove(lease)
            if self.watcher is not None:
                self.watcher.settled(lease, tokens)
        self._released(lease.claims)

    def balance(self, claim: Claim) -> Balance:
        """How a claim's subject stands now."""
        now = self._loop_time()
        account = self._accounts.get(claim.subject)
        purse = self.purses.find(claim) if claim.budget is not None else None
        spent, held = (purse.spent, purse.held) if purse is not None else (None, 0)
        if account is None:
            return Balance(0, 0, 0, spent, held)
        account.advance(int(now))
        return Balance(
            account.requests,
            account.tokens,
            account.running,
            spent,
            held,
            reset_s(account.requests, account.request_second, now),
            reset_s(account.tokens, account.token_second, now),
        )

    def cover(self, spent: Sequence[Spent]) -> None:
        """What the ledger says of budgets."""
        for one in spent:
            self.purses.cover(one)

    def _open(self, subject: str, second: int) -> Account:
        if len(self._accounts) >= self._sweep_at:
            self._sweep(second)
        account = self._accounts[subject] = Account(second)
        return account

    def _sweep(self, second: int) -> None:
        """Forget idle subjects. The next sweep comes when there are twice as many, so that it costs little for each."""
        for account in self._accounts.values():
            account.advance(second)
        self._accounts = {subject: account for subject, account in self._accounts.items() if not account.idle}
        self._sweep_at = max(_FIRST_SWEEP, 2 * len(self._accounts))


def _longest(full: Sequence[tuple[Claim, Account]], now: float) -> Denial:
    """Which denial keeps the claims longest. When a place comes free cannot be told; it counts as soonest."""
    denials = [denial for claim, account in full for denial in _denials(claim, account, now)]
    return max(denials, key=lambda denial: denial.retry_after_s or 0.0)


def _denials(claim: Claim, account: Account, now: float) -> list[Denial]:
    limits, subject, found = claim.limits, claim.subject, []
    if limits.concurrent is not None and account.running >= limits.concurrent:
        found.append(Denial(Limit.CONCURRENT, subject))
    if (limit := limits.requests_per_minute) is not None and account.requests >= limit:
        found.append(Denial(Limit.REQUESTS, subject, account.second + account.request_room_in(limit) - now))
    if (limit := limits.tokens_per_minute) is not None and account.tokens >= limit:
        found.append(Denial(Limit.TOKENS, subject, account.second + account.token_room_in(limit) - now))
    return found
