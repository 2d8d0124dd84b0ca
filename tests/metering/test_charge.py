"""What a committed answer comes to."""

import pytest

from headrace.metering.charge import MOST_AMOUNT, NO_COST, amount_of, charge_of, money_of
from headrace.metering.price import MILLION, Cost, cost_of
from headrace.model.entry import Money
from headrace.model.limits import NANO
from headrace.model.price import Price, Rates
from headrace.model.usage import NOTHING, Usage

USED = Usage(input_total=5, output_total=7)
PER_TOKEN, PER_CALL = Price(Rates(input=2, output=3, per_call=1)), Price(Rates(per_call=1))


def charge(usage: Usage, origin: str, price: Price | None, *, completed: bool = True) -> Cost:
    return charge_of(usage, origin, price, lambda name: None, completed=completed)


@pytest.mark.parametrize("origin", ["upstream", "upstream_partial", "estimated"])
@pytest.mark.parametrize("completed", [True, False])
def test_what_was_used_is_paid_whatever_the_end(origin: str, completed: bool) -> None:
    expected = cost_of(USED, PER_TOKEN, lambda name: None)
    assert charge(USED, origin, PER_TOKEN, completed=completed) == expected != NO_COST


def test_what_came_to_nothing_is_free() -> None:
    assert (
        charge(NOTHING, "none", PER_TOKEN, completed=False) == charge(NOTHING, "none", None, completed=False) == NO_COST
    )


def test_a_whole_answer_that_says_nothing_of_its_tokens() -> None:
    assert charge(NOTHING, "none", PER_CALL) == Cost(1_000_000)
    assert charge(NOTHING, "none", PER_TOKEN) == Cost(1_000_000, ("usage",))
    assert charge(NOTHING, "none", None) == Cost(0, ("price",))


def test_an_entry_s_money() -> None:
    charge, failed = Cost(10 * MILLION), Cost(5 * MILLION)
    assert money_of(charge, failed, PER_TOKEN, 2 * NANO) == Money(
        cost=15, charge=20, counted=20, price=PER_TOKEN.version, multiplier=2 * NANO
    )
    unknown = money_of(Cost(10 * MILLION, ("image",)), failed, None, NANO)
    assert unknown == Money(counted=10, unpriced=("image",))


def test_an_amount_that_cannot_be_is_not_known() -> None:
    """No column and no record could hold it; a budget is spent by it all the same."""
    nonsense = Cost((MOST_AMOUNT + 1) * MILLION)
    assert (amount_of(Cost(MOST_AMOUNT * MILLION)), amount_of(nonsense)) == (MOST_AMOUNT, None)
    assert money_of(nonsense, NO_COST, None, NANO) == Money(counted=MOST_AMOUNT)
