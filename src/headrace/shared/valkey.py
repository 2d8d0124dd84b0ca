"""Counters of many workers, in Valkey: a claim is one script there, and its settlement another.

         HERE                                                 AWAY
claim ─▶ script ─▶ granted: counted in the tally too          allow: by the tally alone · refuse: refused
settle ─▶ tally ─▶ script, unheard                            tally; written when Valkey is back

The tally is this worker's part, always up to date: what it holds is written to Valkey anew after each outage, and what
it counted is what an outage goes on with.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import hiredis

from headrace.model.allowance import Balance, Claim, Denial, Lease, Limit, Spent
from headrace.model.settings import SharedOutage
from headrace.shared.address import address_from_url
from headrace.shared.lease import GRANTED, Asked, SharedLease
from headrace.shared.lines import Lines
from headrace.shared.memory import stop_nothing
from headrace.shared.pipeline import Reply, number_from_reply, spent_from_reply, text_from_reply
from headrace.shared.purse import Purse, Purses, room_again_in
from headrace.shared.records import PURSE, Records
from headrace.shared.rooms import reset_s
from headrace.shared.seeding import Seed, Seeding
from headrace.shared.session import USUAL, Session, Timing
from headrace.shared.tally import Tallied, Tally

_TRIES = 4
"""How often a claim is made anew because its purse had to be found, or the session had ended."""
_REQUESTS, _TOKENS, _CONCURRENT, _BUDGET, _COPY, _STALE = range(1, 7)
_RATES = {_REQUESTS: Limit.REQUESTS, _TOKENS: Limit.TOKENS, _CONCURRENT: Limit.CONCURRENT}


@dataclass(frozen=True, slots=True)
class Hooks:
    """What counters need of their process."""

    loop_time: Callable[[], float]
    wall_time: Callable[[], float]
    say: Callable[[str], None]
    """Is given a line when an outage begins or ends."""
    seed: Seed | None = None
    on_spent: Callable[[str], None] = stop_nothing
    """As that of `MemoryCounters`."""


class ValkeyCounters:
    """Limits and budgets of many workers; see `model.allowance.Counters`.

    Raises ValueError for what is no address.
    """

    def __init__(self, url: str, incarnation: str, outage: SharedOutage, hooks: Hooks, timing: Timing = USUAL) -> None:
        self._address = address = address_from_url(url)
        self._allows = outage is SharedOutage.ALLOW
        self._wall_time = hooks.wall_time
        self._say = hooks.say
        self._lines = Lines(hooks.loop_time, remote=True)
        self._purses = Purses(incarnation, hooks.wall_time, hooks.on_spent)
        self._tally = Tally(self._purses, hooks.loop_time, hooks.wall_time, self._lines.wake)
        self._records = Records(self._tally, incarnation, timing.time_ms)
        self._session = Session(address, incarnation, self._records, timing)
        self._session.came, self._session.went, self._session.beaten = self._came, self._went, self._look_at_budgets
        self._seeding = Seeding(self._session, self._purses, self._records, hooks.seed)
        self._is_away = False

    @classmethod
    async def connect(
        cls, url: str, incarnation: str, outage: SharedOutage, hooks: Hooks, timing: Timing = USUAL
    ) -> "ValkeyCounters":
        """The same, started."""
        counters = cls(url, incarnation, outage, hooks, timing)
        await counters.start()
        return counters

    # ---- model.allowance.Counters

    async def start(self) -> None:
        """See `Counters.start`: try to reach Valkey once. If it is away, that goes on, and the policy holds."""
        await self._session.start()

    async def claim(self, claims: Sequence[Claim]) -> Lease | Denial:
        """See `Counters.claim`."""
        if self._lines:
            return await self._lines.claim(claims, self)
        found = await self.ask(claims)
        if not isinstance(found, Denial):
            return found
        return await self._lines.claim(claims, self, found)

    async def claim_one(self, options: Sequence[Claim], wait_s: float) -> tuple[int, Lease] | Denial:
        """See `Counters.claim_one`."""
        return await self._lines.claim_one(options, wait_s, self)

    async def balances(self, claims: Sequence[Claim]) -> Sequence[Balance]:
        """See `Counters.balances`; in an outage this worker's own."""
        keys = self._records.claim_keys(claims, [self._tally.purse(claim) for claim in claims])
        reply = await self._session.ask(self._records.look(keys))
        if not isinstance(reply, list):
            return [self._tally.balance(claim) for claim in claims]
        now = number_from_reply(reply[0]) / 1000
        return [self._balance(claim, reply[1 + at * 8 : 9 + at * 8], now) for at, claim in enumerate(claims)]

    def cover(self, spent: Sequence[Spent]) -> None:
        """See `Counters.cover`. What is new in it goes on to Valkey, soon."""
        for one in spent:
            purse = self._purses.get(one.purse)
            if purse is not None and purse.ledger == one:
                continue
            purse = self._purses.cover(one)
            if purse is not None:
                self._session.changed.add(PURSE + purse.name)
                self._seeding.cover(purse)

    def close(self) -> None:
        """See `Counters.close`. What is still held is given back in Valkey; what is settled from now on is not counted
        there any more, but it is in the ledger."""
        self._seeding.close()
        self._session.close()

    # ---- Source, for the lines

    async def ask(self, claims: Sequence[Claim]) -> Lease | Denial:
        """All of the claims now, or none."""
        for _ in range(_TRIES):
            if not self._session.here:
                return self._alone(claims)
            purses = [self._tally.purse(claim) for claim in claims]
            keys = self._records.claim_keys(claims, purses)
            asked = Asked(self, claims, keys)
            self._session.call(self._records.claim("take", claims, keys, purses, self._session.name), asked)
            reply = await asked.reply()
            if isinstance(reply, SharedLease):
                return reply
            denial = await self._denial(claims, purses, reply)
            if denial is not None:
                return denial
        return Denial(Limit.UNKNOWN, claims[0].subject)

    async def peek(self, claims: Sequence[Claim]) -> Denial | None:
        """What stands against the claims now; what cannot be told now is nothing."""
        if not self._session.here:
            return self._tally.denial(claims) if self._allows else Denial(Limit.UNKNOWN, claims[0].subject)
        purses = [self._tally.purse(claim) for claim in claims]
        keys = self._records.claim_keys(claims, purses)
        reply = await self._session.ask(self._records.claim("peek", claims, keys, purses, self._session.name))
        return None if isinstance(reply, list) and reply[0] == GRANTED else await self._denial(claims, purses, reply)

    # ---- replies

    def granted(self, claims: Sequence[Claim], keys: tuple[str, ...], reply: list[Reply]) -> SharedLease:
        """The lease that a reply is."""
        tallied = self._tally.take(claims)
        now = number_from_reply(reply[1]) / 1000
        return SharedLease(self, tallied, keys, [number_from_reply(one) for one in reply[2:]], now, int(now))

    def settled(self, tallied: Tallied, keys: tuple[str, ...], second: int, tokens: int, undone: bool) -> None:
        """The tally has taken a lease back: tell Valkey."""
        command = self._records.settle(tallied, keys, self._session.name, second, tokens, undone)
        if not self._session.here:
            self._session.changed.update(keys)
            if second:  # `changed` has no minutes: what is granted too late for its request would count for one
                self._session.call_if_slow(command)
            return

        def answer(reply: Reply | Exception) -> None:
            if not isinstance(reply, list):
                self._check(reply)
                return
            for place, purse in enumerate(purse for purse in tallied.purses if purse is not None and reply):
                self._purses.hear(purse, spent_from_reply(reply, place * 2))

        self._session.call(command, answer)

    async def _denial(self, claims: Sequence[Claim], purses: Sequence[Purse | None], reply: object) -> Denial | None:
        """What a reply that grants nothing says; None: ask again."""
        if not isinstance(reply, list):
            self._check(reply)
            return None
        what = reply[0]
        if what == _STALE:
            self._session.drop("it took this worker for dead")
            return None
        claim, purse = claims[reply[1] - 1], purses[reply[1] - 1]
        if what == _COPY and purse is not None:
            found = self._seeding.adopt(purse, text_from_reply(reply[2])) or await self._seeding.seed(purse)
            return None if found else Denial(Limit.UNKNOWN, claim.subject)
        if what == _BUDGET and purse is not None:
            self._purses.hear(purse, spent := spent_from_reply(reply, 2))
            return Denial(Limit.BUDGET, claim.subject, room_again_in(claim, spent, self._wall_time()))
        return Denial(_RATES[what], claim.subject, reply[2] / 1000 if reply[2] >= 0 else None)

    # ---- outages

    def _alone(self, claims: Sequence[Claim]) -> Lease | Denial:
        """What the policy has for claims while Valkey is away."""
        if not self._allows:
            return Denial(Limit.UNKNOWN, claims[0].subject)
        found = self._tally.attempt(claims)
        if isinstance(found, Denial):
            return found
        keys = self._records.claim_keys(claims, found.purses)
        self._session.changed.update(keys)
        return SharedLease(self, found, keys, found.counted, found.now, 0)

    def _check(self, reply: object) -> None:
        """An error as a reply ends the session: scripts that fail keep no limits."""
        if isinstance(reply, hiredis.ReplyError):
            self._session.drop(str(reply))

    def _came(self) -> None:
        self._seeding.came()
        if self._is_away:
            self._is_away = False
            self._say(f"Valkey at {self._address} is back: limits are counted there again.")

    def _went(self, reason: str) -> None:
        if not self._is_away:
            self._is_away = True
            policy = "each worker counts limits by itself" if self._allows else "limited requests are refused"
            self._say(f"Valkey at {self._address}: {reason}. Until it is back, {policy} (state.shared_outage).")

    def _look_at_budgets(self) -> None:
        """Hear whether budgets have been spent elsewhere that stop running exchanges here."""
        for purse in self._purses:
            if purse.stops and purse.held:
                self._session.send(("HMGET", PURSE + purse.name, "used", "held"), self._hearer(purse))

    def _hearer(self, purse: Purse) -> Callable[[Reply | Exception], None]:
        def hear(reply: Reply | Exception) -> None:
            if isinstance(reply, list):
                self._purses.hear(purse, spent_from_reply(reply, 0))

        return hear

    def _balance(self, claim: Claim, counts: list[Reply], now: float) -> Balance:
        requests, asked, tokens, used, places = (int(one) for one in counts[:5] if isinstance(one, int))
        spent, held = None, 0
        if claim.budget is not None:
            held = number_from_reply(counts[7])
            if counts[5] or self._purses.begins_at_nothing(claim.purse):
                spent = spent_from_reply(counts, 6)
        return Balance(requests, tokens, places, spent, held, reset_s(requests, asked, now), reset_s(tokens, used, now))
