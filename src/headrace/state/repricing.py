"""What an entry costs at the prices of another catalogue: pure. It is rated as the line rates it when it ends.

    cost     every attempt's usage at the price of its route, as that was when the exchange began
    charge   the committed attempt's alone, times the multiplier that the entry was written with

Where there is no price (any more), nothing better is known than what was: the money stays as it is.
"""

from headrace.metering.charge import FREE, NO_COST, charge_of, money_of
from headrace.metering.price import cost_of
from headrace.model.channel import Model
from headrace.model.entry import AttemptLine, Entry, Money
from headrace.model.outcome import End
from headrace.model.price import Price
from headrace.routing.catalogue import Catalogue


def repriced(entry: Entry, catalogue: Catalogue) -> Money:
    """The entry's money at the prices of `catalogue`; as it is where there is nothing to rate, or no price for it."""
    model = catalogue.find_model(entry.model) if entry.model else None
    last = entry.attempts[-1] if entry.attempts else None
    price = _price(entry, last, catalogue, model)
    # Of the committed attempt the entry has the usage; what stands at attempts is of those that came to nothing.
    failed = [(one.usage, _price(entry, one, catalogue, model)) for one in entry.attempts if one.usage.known]
    is_complete = entry.end == End.COMPLETED.value
    is_free = entry.operation in FREE or (entry.usage_origin == "none" and not is_complete)
    if (is_free and not failed) or (not is_free and price is None) or any(at is None for _, at in failed):
        return entry.money

    def price_of(name: str) -> Price | None:
        return catalogue.price_of(name, entry.at)

    charge, factor = NO_COST, entry.money.multiplier
    if not is_free:
        charge = charge_of(entry.usage, entry.usage_origin, price, price_of, completed=is_complete)
    spent = sum((cost_of(usage, at, price_of) for usage, at in failed), NO_COST)
    return money_of(charge, spent, price, factor)


def _price(entry: Entry, attempt: AttemptLine | None, catalogue: Catalogue, model: Model | None) -> Price | None:
    """What counted where the attempt went; by the model alone where the route is gone, or there was none."""
    if model is None:
        return None
    went = (attempt.channel, attempt.upstream_model) if attempt is not None else None
    routes = (route for route in model.routes if (route.channel, route.upstream_model or entry.model) == went)
    return catalogue.price(model, next(routes, None), entry.at)
