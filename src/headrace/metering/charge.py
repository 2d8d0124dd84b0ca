"""What a committed answer comes to: as it ends, and when its entry is rated again."""

from headrace.metering.price import Cost, PriceOf, cost_of
from headrace.model.price import Price
from headrace.model.usage import Usage

FREE = frozenset(("messages.count_tokens", "responses.input_tokens", "gemini.count_tokens"))
"""Operations that cost nothing anywhere: they count tokens, and generate none."""
NO_COST = Cost()
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
