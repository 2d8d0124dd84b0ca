"""Micro-benchmarks of what limits and metering cost a short request: admit, bill, settle.

Run with `pytest --benchmark-only bench/micro`. A round is 1,000 requests, so milliseconds per round are microseconds of
one core per request.
"""

import time
from collections.abc import Coroutine
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.load import wire
from bench.load.protocols import CHAT, chat_body
from headrace.account import Account
from headrace.metering.lessons import Lessons
from headrace.model.allowance import Spent, purse_of, window_start
from headrace.model.catalogue import CatalogueParts
from headrace.model.channel import BaseUrl, Channel, Credential, Model, Route
from headrace.model.key import Key
from headrace.model.limits import NANO, Budget, Limits, Window
from headrace.model.outcome import End
from headrace.model.owner import Owner
from headrace.model.price import Price, Rates
from headrace.model.request import Call
from headrace.model.wire import Asked, WireProtocol
from headrace.protocols.chat import Chat
from headrace.protocols.sent import count_request, rough_tokens
from headrace.routing.catalogue import Catalogue
from headrace.shared.memory import MemoryCounters

REQUESTS = 1000
BODY = CHAT.post(1, chat_body(512)).partition(b"\r\n\r\n")[2]
CHANNEL = Channel("up", BaseUrl("https", "up", 443, ""), frozenset({WireProtocol.CHAT}), (Credential("one", "secret"),))
FREE = Model("m", (Route("up"),))
PRICED = replace(FREE, prices=(Price(Rates(input=3 * NANO, output=15 * NANO)),))
KEY = Key("k", b"digest")
MUCH = Limits(requests_per_minute=10**9, tokens_per_minute=10**12, concurrent=10**6)
BUDGET = Budget(10**9 * NANO)
LIMITED = replace(KEY, owner="o", limits=MUCH, budget=BUDGET)
OWNER = Owner("o", MUCH, BUDGET)


@dataclass
class Stages:
    """What an account asks of its worker."""

    counters: MemoryCounters = field(default_factory=lambda: MemoryCounters("w", time.monotonic, time.time))
    lessons: Lessons = field(default_factory=Lessons)


def done(of: Coroutine[Any, Any, object]) -> object:
    """What comes out of it: it does not wait."""
    try:
        of.send(None)
    except StopIteration as end:
        return end.value
    raise AssertionError("it waits")


@pytest.mark.parametrize(
    ("key", "model"),
    [(KEY, FREE), (KEY, PRICED), (LIMITED, PRICED)],
    ids=["unlimited, no price", "unlimited, priced", "limited in everything, budget, priced"],
)
def test_an_exchange(benchmark: BenchmarkFixture, key: Key, model: Model) -> None:
    """All of its account; what its observer reads is made once."""
    stages, now = Stages(), time.time()
    catalogue = Catalogue(CatalogueParts((CHANNEL,), (model,), (key,), (OWNER,)))
    start = window_start(Window.MONTH, now)
    stages.counters.cover([Spent(purse=purse_of(one, Window.MONTH, start)) for one in ("key:k", "owner:o")])
    call = Call(WireProtocol.CHAT, "chat.completions", "m", Asked.JSON, BODY)
    candidates = catalogue.places(model, "m", WireProtocol.CHAT)
    observer = Chat().observer(call, added_usage=False)
    observer.observe_body(wire.REPLY_BODY)

    def run() -> None:
        for _ in range(REQUESTS):
            account = Account(stages, catalogue, key, now)  # type: ignore[arg-type]
            problem = done(account.admit(call, model, candidates))
            assert problem is None
            account.attempting(candidates[0])
            account.attempted(observer, failed=False)
            account.settle(account.bill(observer, End.COMPLETED))

    benchmark(run)


@pytest.mark.parametrize("size", [300, 1000])
@pytest.mark.parametrize("count", [rough_tokens, count_request])
def test_a_body(benchmark: BenchmarkFixture, count: Any, size: int) -> None:
    """What of a request's text is counted: its length before it is admitted, all of it before it is dropped."""
    text = "The river turns the wheel, and 2 of 3 mills grind. " * 30
    body = b'{"model":"m","messages":[{"role":"user","content":"%s"}]}' % text[: size - 56].encode()

    def run() -> None:
        for _ in range(REQUESTS):
            count(body)

    benchmark(run)
