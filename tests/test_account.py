"""The money side of an exchange: what it claims, what it is billed, and that all is given back once."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import pytest

from headrace.account import OUTPUT_TOKENS, Account
from headrace.metering.lessons import Lessons
from headrace.metering.price import Cost
from headrace.model.allowance import Claim, Denial, Lease, Limit, Room
from headrace.model.catalogue import CatalogueParts
from headrace.model.channel import BaseUrl, Channel, Credential, Model, Route
from headrace.model.estimate import Learned
from headrace.model.key import Key
from headrace.model.limits import NANO, Budget, Limits
from headrace.model.outcome import End
from headrace.model.owner import Owner
from headrace.model.price import Price, Rates
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call
from headrace.model.usage import Usage
from headrace.model.wire import Asked, WireProtocol
from headrace.protocols.chat import Chat
from headrace.protocols.chat_usage import Counts
from headrace.protocols.interface import Observer
from headrace.routing.catalogue import Catalogue

AT = 1_796_000_000.0
PRICE = Price(Rates(input=3 * NANO, output=15 * NANO))
CHANNEL = Channel(
    "up",
    BaseUrl("https", "up", 443, ""),
    frozenset({WireProtocol.CHAT}),
    (Credential("one", "s", limits=Limits(concurrent=1)), Credential("two", "s")),
)
MODEL = Model("m", (Route("up"),), prices=(PRICE,))
CALL = Call(WireProtocol.CHAT, "chat.completions", "m", Asked.EVENTS, b'{"model":"m","messages":[]}')


@dataclass
class Given:
    claims: Sequence[Claim]
    settled: list[tuple[int, int]] = field(default_factory=list)

    def room(self, number: int) -> Room:
        return Room(None, 0.0, None, 0.0)

    def settle(self, tokens: int, amount: int) -> None:
        self.settled.append((tokens, amount))


@dataclass
class Counting:
    """Gives everything, or what it is told to."""

    denial: Denial | None = None
    full: bool = False
    given: list[Given] = field(default_factory=list)
    waits: list[float] = field(default_factory=list)

    async def claim(self, claims: Sequence[Claim]) -> Lease | Denial:
        if self.denial is not None:
            return self.denial
        self.given.append(Given(claims))
        return self.given[-1]

    async def claim_one(self, options: Sequence[Claim], wait_s: float) -> tuple[int, Lease] | Denial:
        self.waits.append(wait_s)
        if self.full:
            return Denial(Limit.CONCURRENT, options[0].subject)
        self.given.append(Given(options))
        return 0, self.given[-1]


@dataclass
class Stages:
    counters: Counting = field(default_factory=Counting)
    lessons: Lessons = field(default_factory=Lessons)
    reports: list[str] = field(default_factory=list)

    def report(self, line: str) -> None:
        self.reports.append(line)


LONG = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % (b"the wheel turns " * 20)


def account(key: Key, *, model: Model = MODEL, owner: Owner | None = None, stages: Stages | None = None) -> Account:
    parts = CatalogueParts((CHANNEL,), (model,), (key,), (owner,) if owner is not None else ())
    return Account(stages or Stages(), Catalogue(parts), key, AT)  # type: ignore[arg-type]


def admitted(of: Account, key: Key, *, call: Call = CALL, model: Model = MODEL) -> Problem | None:
    catalogue = Catalogue(CatalogueParts((CHANNEL,), (model,), (key,)))
    return asyncio.run(of.admit(call, model, catalogue.places(model, "m", WireProtocol.CHAT)))


def observer(*, reported: tuple[int, int] | None = None, final: bool = True, text: str = "") -> Observer:
    made = Chat().observer(CALL, added_usage=False)
    made.features.text(text)
    if reported is not None:
        made._counts = Counts(*reported)  # type: ignore[attr-defined]
    made.usage_is_final = final
    return made


RICH = Key("k", b"d", budget=Budget(NANO))


# ---- before


def test_a_key_without_limits_claims_nothing() -> None:
    stages = Stages()
    key = Key("k", b"d")
    assert admitted(account(key, stages=stages), key) is None
    assert stages.counters.given == []


def test_key_and_owner_are_claimed_together() -> None:
    stages = Stages()
    key = replace(RICH, owner="team", limits=Limits(requests_per_minute=5))
    owner = Owner("team", Limits(concurrent=3))
    assert admitted(account(key, owner=owner, stages=stages), key) is None
    (lease,) = stages.counters.given
    assert [(claim.subject, claim.budget is not None) for claim in lease.claims] == [
        ("key:k", True),
        ("owner:team", False),
    ]


@pytest.mark.parametrize(
    ("asked", "choices", "most", "learned", "tokens"),
    [
        (None, 1, None, None, OUTPUT_TOKENS),
        (100, 1, None, None, 100),
        (100, 3, None, None, 300),
        (100, 3, 250, None, 250),
        (None, 1, 250, 40, 40),
        (10, 1, 250, 40, 10),
    ],
)
def test_a_hold_is_for_the_least_output_that_is_known(
    asked: int | None, choices: int, most: int | None, learned: int | None, tokens: int
) -> None:
    stages = Stages()
    stages.lessons.take({"m": Learned(output_p95=learned)} if learned else {})
    call = replace(CALL, max_output=asked, choices=choices)
    model = replace(MODEL, max_output=most)
    assert admitted(account(RICH, model=model, stages=stages), RICH, call=call, model=model) is None
    claim = stages.counters.given[0].claims[0]
    assert claim.hold == claim.tokens * 3_000 + tokens * 15_000


def test_a_budget_takes_no_model_without_a_price() -> None:
    stages = Stages()
    bare = replace(MODEL, prices=())
    problem = admitted(account(RICH, model=bare, stages=stages), RICH, model=bare)
    assert problem is not None and problem.kind is Kind.MODEL_NOT_ALLOWED
    assert stages.counters.given == []


def test_counting_tokens_is_free_whatever_is_left() -> None:
    stages = Stages(Counting(Denial(Limit.BUDGET, "key:k")))
    call = replace(CALL, operation="messages.count_tokens")
    of = account(RICH, stages=stages)
    assert admitted(of, RICH, call=call) is None
    assert of.bill(observer(reported=(5, 5)), End.COMPLETED, begun=True).money.charge == 0


# ---- after


def test_what_was_taken_is_given_back_once() -> None:
    stages = Stages()
    of = account(RICH, stages=stages)
    admitted(of, RICH)
    bill = of.bill(observer(reported=(1, 3)), End.COMPLETED, begun=True)
    of.settle(bill)
    of.settle(bill)
    assert stages.counters.given[0].settled == [(4, 48_000)]


@pytest.mark.parametrize("end", [End.REFUSED, End.CLIENT_GONE, End.INTERRUPTED])
def test_without_an_answer_nothing_is_charged(end: End) -> None:
    of = account(RICH)
    admitted(of, RICH)
    bill = of.bill(None, end)
    assert (bill.usage, bill.origin, bill.money.charge, bill.money.cost) == (Usage(), "none", 0, 0)


def test_a_report_before_more_output_is_not_enough() -> None:
    of = account(RICH)
    admitted(of, RICH)
    bill = of.bill(observer(reported=(9, 1), final=False, text="the wheel turns " * 50), End.INTERRUPTED, begun=True)
    assert bill.origin == "estimated" and bill.usage.input_total == 9
    assert 100 < (bill.usage.output_total or 0) < 300


def test_a_failure_of_which_nothing_is_reported_is_free() -> None:
    of = account(RICH)
    admitted(of, RICH)
    text = "the wheel turns " * 50
    assert of.bill(observer(text=text, final=False), End.FAILED, begun=True).money.charge == 0
    assert of.bill(observer(reported=(1, 3), text=text), End.FAILED, begun=True).money.charge == 48_000
    early = of.bill(observer(reported=(1, 3), final=False, text=text), End.FAILED, begun=True)
    assert (early.money.charge, early.origin) == (48_000, "upstream_partial"), "what it reported, and no estimate"


def test_the_factors_of_key_and_owner_are_multiplied() -> None:
    key = Key("k", b"d", owner="team", multiplier=3 * NANO // 2)
    of = account(key, owner=Owner("team", multiplier=2 * NANO))
    admitted(of, key)
    money = of.bill(observer(reported=(1, 3)), End.COMPLETED, begun=True).money
    assert (money.cost, money.charge, money.multiplier) == (48_000, 144_000, 3 * NANO)


def test_a_failed_attempt_that_reported_is_a_cost_of_its_own() -> None:
    of = account(RICH)
    admitted(of, RICH)
    spending = of.attempted(observer(reported=(1, 0)), failed=True)
    assert (spending.usage, spending.origin, spending.cost) == (
        Usage(input_total=1, output_total=0),
        "upstream_partial",
        3_000,
    )
    money = of.bill(observer(reported=(1, 3)), End.COMPLETED, begun=True).money
    assert (money.cost, money.charge) == (51_000, 48_000)


# ---- credentials


async def at_once(work: object) -> int | None:
    return await work  # type: ignore[no-any-return,misc]


def place(of: Account) -> int | None:
    catalogue = Catalogue(CatalogueParts((CHANNEL,), (MODEL,)))
    return asyncio.run(of.find_place(catalogue.places(MODEL, "m", WireProtocol.CHAT), at_once))


def test_a_full_credential_is_passed_over_without_a_wait() -> None:
    stages = Stages(Counting(full=True))
    of = account(RICH, stages=stages)
    assert place(of) == 1
    assert stages.counters.waits == [0.0]


@pytest.mark.parametrize(("reported", "tokens"), [((5, 7), 12), (None, 100)])
def test_a_failed_attempt_gives_its_place_back(reported: tuple[int, int] | None, tokens: int) -> None:
    """What is not known of it counts as it was claimed: it may have been done."""
    stages = Stages()
    of = account(RICH, stages=stages)
    admitted(of, RICH, call=replace(CALL, body=LONG))
    assert place(of) == 0
    claimed = stages.counters.given[1].claims[0].tokens
    of.attempted(observer(reported=reported) if reported else None, failed=True)
    of.attempted(None, failed=True)
    assert stages.counters.given[1].settled == [(tokens if reported else claimed, 0)] and claimed > 0


def test_the_committed_attempt_s_place_is_settled_with_the_bill() -> None:
    stages = Stages()
    of = account(RICH, stages=stages)
    admitted(of, RICH, call=replace(CALL, body=LONG))
    assert place(of) == 0
    of.attempted(observer(), failed=False)
    bill = of.bill(observer(text="the wheel turns " * 50, final=False), End.INTERRUPTED, begun=True)
    of.settle(bill)
    used = (bill.usage.input_total or 0) + (bill.usage.output_total or 0)
    assert used > 100 and stages.counters.given[1].settled == [(used, 0)]


def test_a_reply_that_nobody_could_read_has_no_known_cost() -> None:
    call = replace(CALL, asked=Asked.JSON)
    of = account(RICH)
    admitted(of, RICH, call=call)
    money = of.bill(observer(), End.COMPLETED, begun=True).money
    assert (money.charge, money.cost, money.unpriced) == (None, None, ("usage",))


def test_a_budget_takes_no_model_whose_answers_have_no_price() -> None:
    half = replace(MODEL, prices=(Price(Rates(input=3 * NANO)),))
    problem = admitted(account(RICH, model=half), RICH, model=half)
    assert problem is not None and problem.kind is Kind.MODEL_NOT_ALLOWED


def test_a_defect_in_pricing_costs_neither_entry_nor_place(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> Cost:
        raise RuntimeError("a defect")

    stages = Stages()
    of = account(RICH, stages=stages)
    admitted(of, RICH)
    with monkeypatch.context() as patch:
        patch.setattr("headrace.account.charge_of", broken)
        bill = of.bill(observer(reported=(1, 3)), End.COMPLETED, begun=True)
    assert (bill.money.cost, bill.money.charge) == (None, None)
    assert stages.reports == ["an exchange of the key k has no bill: RuntimeError: a defect"]
    of.settle(bill)
    assert stages.counters.given[0].settled == [(0, 0)]
