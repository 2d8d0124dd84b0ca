"""What an entry costs at other prices than those that it was rated with."""

import msgspec
import pytest

from headrace.metering.charge import FREE
from headrace.model.catalogue import CatalogueParts
from headrace.model.channel import Model, Route
from headrace.model.entry import AttemptLine, Entry, Money
from headrace.model.limits import NANO
from headrace.model.price import Price, Rates
from headrace.model.usage import NOTHING, ExtraUsage, Usage
from headrace.routing.catalogue import Catalogue
from headrace.state.repricing import repriced

MILLION = 1_000_000
OLD, NEW, BY_ROUTE = (
    Price(Rates(input=10, output=20)),
    Price(Rates(input=30, output=50), since=100.0),
    Price(Rates(input=1, output=1)),
)
CATALOGUE = Catalogue(
    CatalogueParts(
        models=(
            Model("m", (Route("a"), Route("b"), Route("cheap", "up", prices=(BY_ROUTE,))), prices=(OLD, NEW)),
            Model("g-*", (Route("a"), Route("cheap", prices=(BY_ROUTE,))), prices=(OLD,)),
            Model("bare", (Route("a"),)),
        )
    )
)
USED = Usage(input_total=MILLION, output_total=MILLION)
WAS = Money(cost=1, charge=2, counted=2, price="was", multiplier=2 * NANO)


NOTHING_SAID: dict[str, object] = {"usage": NOTHING, "usage_origin": "none", "end": "refused"}


def attempt(channel: str, upstream_model: str = "m", usage: Usage = NOTHING) -> AttemptLine:
    return AttemptLine(
        channel=channel, credential="x", upstream_model=upstream_model, started_s=0.0, ended_s=1.0, usage=usage
    )


PLAIN = Entry(
    id="x", at=50.0, duration_s=1.0, protocol="chat", operation="chat.completions", key="k", model="m", end="completed",
    reason="stop", usage=USED, usage_origin="upstream", money=WAS, attempts=(attempt("b"),),
)  # fmt: skip


def changed(**fields: object) -> Entry:
    return msgspec.structs.replace(PLAIN, **fields)


def test_the_multiplier_stays() -> None:
    assert repriced(PLAIN, CATALOGUE) == Money(cost=30, charge=60, counted=60, price=OLD.version, multiplier=2 * NANO)


@pytest.mark.parametrize(("at", "cost", "price"), [(99.9, 30, OLD), (100.0, 80, NEW)])
def test_the_price_is_that_of_the_moment(at: float, cost: int, price: Price) -> None:
    money = repriced(changed(at=at), CATALOGUE)
    assert (money.cost, money.price) == (cost, price.version)


@pytest.mark.parametrize(
    ("model", "went", "cost"),
    [
        ("m", ("cheap", "up"), 2),
        ("m", ("cheap", "m"), 30),
        ("m", ("gone", "m"), 30),
        ("g-1", ("cheap", "g-1"), 2),
        ("g-1", ("a", "g-1"), 30),
    ],
)
def test_the_price_is_that_of_the_route(model: str, went: tuple[str, str], cost: int) -> None:
    assert repriced(changed(model=model, attempts=(attempt(*went),)), CATALOGUE).cost == cost


def test_attempts_that_failed_cost_and_are_not_charged() -> None:
    attempts = (attempt("a", usage=USED), attempt("cheap", "up", USED), attempt("b"))
    money = repriced(changed(attempts=attempts), CATALOGUE)
    assert (money.cost, money.charge, money.counted) == (30 + 2 + 30, 60, 60)


@pytest.mark.parametrize("fields", [NOTHING_SAID, *({"operation": one} for one in FREE)])
def test_what_is_free_costs_what_failed_before_it(fields: dict[str, object]) -> None:
    assert repriced(changed(**fields), CATALOGUE) == WAS
    money = repriced(changed(**fields, attempts=(attempt("a", usage=USED), attempt("b"))), CATALOGUE)
    assert (money.cost, money.charge, money.counted) == (30, 0, 0)


def test_a_whole_answer_without_a_word_on_its_tokens() -> None:
    silent = changed(usage=NOTHING, usage_origin="none")
    assert repriced(silent, CATALOGUE).unpriced == ("usage",)
    by_call = Model("m", (Route("b"),), prices=(Price(Rates(per_call=7)),))
    money = repriced(silent, Catalogue(CatalogueParts(models=(by_call,))))
    assert (money.cost, money.charge, money.unpriced) == (7, 14, ())


@pytest.mark.parametrize("model", ["", "unknown", "bare"])
def test_without_a_price_it_stays_as_it_is(model: str) -> None:
    assert repriced(changed(model=model), CATALOGUE) == WAS


def test_what_has_no_price_makes_the_cost_unknown() -> None:
    money = repriced(changed(usage=msgspec.structs.replace(USED, cached_input=1)), CATALOGUE)
    assert (money.cost, money.charge, money.unpriced) == (None, None, ("cached_input",))
    assert money.counted == 2 * 30, "budgets count the part that has a price"


def test_models_that_were_used_on_the_way_have_their_own_price() -> None:
    extra = (ExtraUsage(kind="advisor", model="g-9", usage=USED),)
    entry = changed(at=100.0, usage=msgspec.structs.replace(USED, extra=extra))
    assert repriced(entry, CATALOGUE).cost == 80 + 30


def test_an_exchange_that_went_nowhere() -> None:
    assert repriced(changed(attempts=(), **NOTHING_SAID), CATALOGUE) == WAS
