"""What a committed answer comes to: as it ends, and when its entry is rated again."""

from headrace.metering.price import Cost, PriceOf, cost_of, rounded
from headrace.model.entry import Money
from headrace.model.limits import NANO
from headrace.model.price import Price
from headrace.model.usage import Usage

FREE = frozenset(("messages.count_tokens", "responses.input_tokens", "gemini.count_tokens"))
"""Operations that cost nothing anywhere: they count tokens, and generate none."""
NO_COST = Cost()
MOST_AMOUNT = 2**62
"""Nano-units, 4.6 billion units: what is more is nonsense of an upstream's, and no record or column could hold it."""
_NO_TOKENS = Usage(input_total=0, output_total=0)


def charge_of(usage: Usage, origin: str, price: Price | None, price_of: PriceOf, *, completed: bool) -> Cost:
    """The cost of an answer's usage. A whole answer without a word on its tokens (`origin` is none) is free only where
    nothing of its price is for tokens."""
    if origin != "none":
        return cost_of(usage, price, price_of)
    if not completed:
        return NO_COST
    if price is None:
        return Cost(0, ("price",))
    return cost_of(_NO_TOKENS, price, price_of) + Cost(0, ("usage",) if price.rates.per_token else ())


def amount_of(cost: Cost, factor: int = NANO) -> int | None:
    """Nano-units of a cost, times `factor` (in billionths); None where it is not known, or cannot be."""
    amount = rounded(cost.millionths, factor)
    return amount if cost.known and amount <= MOST_AMOUNT else None


def money_of(charge: Cost, failed: Cost, price: Price | None, factor: int) -> Money:
    """An entry's money: `charge` of the committed attempt, `failed` of all others, `factor` what a charge is multiplied
    by, in billionths."""
    cost = charge + failed
    return Money(
        cost=amount_of(cost),
        charge=amount_of(charge, factor),
        counted=min(rounded(charge.millionths, factor), MOST_AMOUNT),
        price=price.version if price is not None else "",
        multiplier=factor,
        unpriced=cost.unpriced,
    )
