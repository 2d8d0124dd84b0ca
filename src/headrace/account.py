"""The money side of one exchange: what it may take before it begins, and what is to be paid for it in the end.

admit ──▶ a lease of key and owner ──▶ attempts ──▶ bill ──▶ settled, once, whatever ended it
                                       each with a lease of its credential, a usage and a cost of its own
"""

import time
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any

from headrace.admission.limits import claims, multiplier, refusal, room_behind, room_headers
from headrace.journal.logbook import NOTHING_SPENT, Bill, Spending
from headrace.metering.charge import FREE, MOST_AMOUNT, NO_COST, amount_of, charge_of, money_of
from headrace.metering.estimate import NONE, PARTIAL, UPSTREAM, completed_usage, input_tokens
from headrace.metering.price import Cost, cost_of, hold_of, rounded
from headrace.model.allowance import Claim, Denial, Lease
from headrace.model.channel import Model
from headrace.model.entry import NOT_PRICED
from headrace.model.estimate import NO_TEXT, Learned, TextCount
from headrace.model.headers import Headers
from headrace.model.key import Key
from headrace.model.outcome import End
from headrace.model.price import Price
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call
from headrace.model.usage import NOTHING, Usage
from headrace.model.wire import Dialect
from headrace.protocols.interface import Observer
from headrace.protocols.sent import count_request, rough_tokens
from headrace.routing.catalogue import Catalogue
from headrace.routing.plan import Candidate
from headrace.stages import Stages

Meanwhile = Callable[[Coroutine[Any, Any, int | None]], Awaitable[int | None]]
ALL_BUSY = Problem(
    Kind.CHANNELS_BUSY,
    "The gateway uses all that it may of every channel of this model. Try again later.",
    retry_after_s=1.0,
)
OUTPUT_TOKENS = 4096
"""What a hold is made for where nothing bounds the answer."""
_NO_BILL = Bill(NOTHING, NONE, NOT_PRICED, NO_TEXT, NO_TEXT)
_GENERATES = frozenset(
    ("chat.completions", "responses", "messages", "gemini.generate_content", "gemini.stream_generate_content")
)
"""Operations that answer with text, so that what was not reported can be estimated from it."""


class Account:
    """One exchange's. `at` is when it began, in seconds since the epoch: its charge counts in the windows of then."""

    __slots__ = (
        "_asked", "_at", "_call", "_catalogue", "_denial", "_failed", "_key", "_lease", "_model", "_place",
        "_place_tokens", "_route", "_sent", "_stages",
    )  # fmt: skip

    def __init__(self, stages: Stages, catalogue: Catalogue, key: Key, at: float) -> None:
        self._stages = stages
        self._catalogue = catalogue
        self._key = key
        self._at = at
        self._call: Call | None = None
        self._model: Model | None = None
        self._route: Candidate | None = None
        """Where the running or the last attempt went."""
        self._sent: TextCount | None = None
        self._asked: Sequence[Claim] = ()
        self._lease: Lease | None = None
        self._denial: Denial | None = None
        self._place: Lease | None = None
        """In the limits of the running attempt's credential."""
        self._place_tokens = 0
        """What of tokens was claimed there."""
        self._failed = NO_COST
        """Of the attempts that came to nothing."""

    # ---- before

    async def admit(self, call: Call, model: Model, candidates: Sequence[Candidate]) -> Problem | None:
        """Take what the exchange may need, all or nothing; it may wait for room. None: it may run."""
        self._call, self._model = call, model
        key = self._key
        of = self._catalogue.allowances(key)
        if not of:
            return None
        tokens = self._asked_tokens()
        hold = 0
        if call.operation in FREE:
            of = tuple(one._replace(budget=None) for one in of if one.limits.limited)
        elif any(one.budget is not None for one in of):
            price = self._hold(candidates, tokens)
            if price is None:
                return _no_price(call.model)
            hold = price
        self._asked = claims(of, self._at, tokens, hold)
        given = await self._stages.counters.claim(self._asked) if self._asked else None
        if isinstance(given, Denial):
            self._denial = given
            return refusal(given, self._asked)
        self._lease = given
        return None

    def _asked_tokens(self) -> int:
        """The input, as it counts until it is settled."""
        rough = rough_tokens(self._call.body) if self._call is not None else None
        return rough if rough is not None else input_tokens(self.count_sent(), self._learned())

    def _hold(self, candidates: Sequence[Candidate], tokens: int) -> int | None:
        """The price of the estimated input and of all the output that may come, where it goes to the dearest of the
        candidates; None where one of them has no price for both."""
        call, model = self._call, self._model
        assert call is not None and model is not None
        generates = call.operation in _GENERATES
        learned = self._learned()
        bounds = (
            call.max_output * call.choices if call.max_output is not None else None,
            model.max_output,
            learned.output_p95 if learned is not None else None,
        )
        output = min((bound for bound in bounds if bound is not None), default=OUTPUT_TOKENS)
        most = 0
        for candidate in candidates:
            price = self._price(candidate)
            if price is None or (generates and None in (price.rates.input, price.rates.output)):
                return None
            most = max(most, hold_of(tokens, output, price))
        return min(rounded(most, self._multiplier()), MOST_AMOUNT)

    def room_headers(self, dialect: Dialect) -> Headers:
        """What the key's own limits have left behind this exchange, let in or not; nothing where it has none."""
        lease, denial, limits = self._lease, self._denial, self._key.limits
        if lease is not None and limits.limited:
            return room_headers(dialect, limits, lease.room(0), time.time())
        if denial is not None and denial.subject.startswith("key:"):
            return room_headers(dialect, limits, room_behind(denial), time.time())
        return []

    def count_sent(self) -> TextCount:
        """Counts over the request's text; to be asked for before the body is dropped, or not to be had."""
        if self._sent is None:
            self._sent = count_request(self._call.body) if self._call is not None and self._call.body else NO_TEXT
        return self._sent

    def is_paid_from(self, purse: str) -> bool:
        """Whether it runs on that budget."""
        return self._lease is not None and any(claim.purse == purse for claim in self._asked)

    # ---- attempts

    async def find_place(self, candidates: Sequence[Candidate], meanwhile: Meanwhile) -> int | None:
        """The first of the candidates whose credential has room, as its place among them, and room taken there for
        one attempt. Where none has, wait for any; None: none came, or the exchange is over.

        `meanwhile` awaits work under the exchange's own limits, and gives None where it ended.
        """
        if not candidates[0].credential.limits.limited:
            return 0
        found = await meanwhile(self._claim_place(candidates))
        if found is None:
            self._leave()
        return found

    async def _claim_place(self, candidates: Sequence[Candidate]) -> int | None:
        limited: list[Claim] = []
        tokens = self._asked_tokens()
        for one in candidates:
            if not one.credential.limits.limited:
                break
            subject = f"credential:{one.channel.name}/{one.credential.name}"
            limited.append(Claim(subject, one.credential.limits, tokens=tokens))
        unlimited = len(limited) if len(limited) < len(candidates) else None
        wait_s = self._key.limits.upstream_wait if unlimited is None else 0.0
        found = await self._stages.counters.claim_one(limited, wait_s)
        if isinstance(found, Denial):
            return unlimited
        number, self._place = found
        self._place_tokens = tokens
        return number

    def _leave(self, usage: Usage = NOTHING) -> None:
        """Give the credential's place back. What was not reported counts as it was claimed."""
        place, self._place = self._place, None
        if place is not None:
            place.settle(_tokens(usage) if usage.known else self._place_tokens, 0)

    def attempting(self, candidate: Candidate) -> None:
        """An attempt begins there."""
        self._route = candidate

    def attempted(self, observer: Observer | None, *, failed: bool) -> Spending:
        """The attempt is over. One that failed gives its credential's place back, and what its upstream reported stays
        its own; the committed one is settled with the bill."""
        if not failed:
            return NOTHING_SPENT
        usage = observer.usage if observer is not None else NOTHING
        self._leave(usage)
        if not usage.known:
            return NOTHING_SPENT
        cost = self._cost(usage)
        self._failed += cost
        return Spending(usage, PARTIAL, amount_of(cost))

    # ---- after

    def bill(self, observer: Observer | None, end: End | None, *, begun: bool = False) -> Bill:
        """What is to be paid: at the end, or (`end` None) so far. `observer` is None where no answer was committed;
        `begun` tells whether any of it has come. It never raises, as the meter does not."""
        try:
            return self._made_bill(observer, end, begun=begun)
        except Exception as error:  # noqa: BLE001  a defect in estimates or prices must cost no entry and no place
            self._stages.report(f"an exchange of the key {self._key.name} has no bill: {type(error).__name__}: {error}")
            return _NO_BILL

    def _made_bill(self, observer: Observer | None, end: End | None, *, begun: bool) -> Bill:
        call = self._call
        if call is None or observer is None:
            return self._billed(NOTHING, NONE, NO_COST, NO_TEXT)
        generated = observer.features.counted()
        reported, is_final = observer.usage, observer.usage_is_final
        if call.operation in FREE:
            return self._billed(NOTHING, NONE, NO_COST, generated)
        is_seen = call.stream or reported.known or not generated.empty
        if call.operation in _GENERATES and end is not End.FAILED and is_seen:
            sent, key = self._sent_for(reported, is_final), self._key.name
            usage, origin = completed_usage(reported, is_final, sent, generated, self._learned(), key=key, begun=begun)
        else:
            usage, origin = reported, (UPSTREAM if is_final else PARTIAL) if reported.known else NONE
        return self._billed(usage, origin, self._charge(usage, origin, end), generated)

    def _charge(self, usage: Usage, origin: str, end: End | None) -> Cost:
        """What the committed attempt comes to."""
        price = self._price(self._route)
        return charge_of(usage, origin, price, self._price_of, completed=end is End.COMPLETED)

    def _sent_for(self, reported: Usage, is_final: bool) -> TextCount:
        """Counts over the request's text, made now if they are needed and the body is still there."""
        is_told = is_final and reported.input_total is not None
        return NO_TEXT if self._sent is None and is_told else self.count_sent()

    def _billed(self, usage: Usage, origin: str, charge: Cost, generated: TextCount) -> Bill:
        money = money_of(charge, self._failed, self._price(self._route), self._multiplier())
        return Bill(usage, origin, money, self._sent or NO_TEXT, generated)

    def settle(self, bill: Bill) -> None:
        """Give back what was taken, and count what was used in its place. Only the first call does anything."""
        self._leave(bill.usage)
        lease, self._lease = self._lease, None
        if lease is not None:
            lease.settle(_tokens(bill.usage), bill.money.counted)

    # ---- look-ups

    def _cost(self, usage: Usage) -> Cost:
        return cost_of(usage, self._price(self._route), self._price_of)

    def _price(self, candidate: Candidate | None) -> Price | None:
        if self._model is None:
            return None
        return self._catalogue.price(self._model, candidate.route if candidate is not None else None, self._at)

    def _price_of(self, name: str) -> Price | None:
        return self._catalogue.price_of(name, self._at)

    def _learned(self) -> Learned | None:
        return self._stages.lessons.of(self._call.model) if self._call is not None else None

    def _multiplier(self) -> int:
        return multiplier(self._key, self._catalogue.owner(self._key.owner))


def _tokens(usage: Usage) -> int:
    """All of them."""
    return (usage.input_total or 0) + (usage.output_total or 0)


def _no_price(model: str) -> Problem:
    return Problem(
        Kind.MODEL_NOT_ALLOWED,
        f"This API key or its owner has a budget, and the model {model[:200]!r} has no price, or none for all of its"
        " tokens, so nobody can tell what it would spend. Choose another model, or ask the operator for a price.",
        param="model",
    )
