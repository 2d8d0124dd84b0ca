"""What an entry costs at the prices of another catalogue: pure. It is rated as the line rates it when it ends.

    cost     every attempt's usage at the price of its route, as that was when the exchange began
    charge   the committed attempt's alone, times the multiplier that the entry was written with

Where there is no price (any more), nothing better is known than what was: the money stays as it is.
"""

from headrace.metering.free import FREE
from headrace.metering.price import Cost, cost_of, rounded
from headrace.model.channel import Model
from headrace.model.entry import AttemptLine, Entry, Money
from headrace.model.price import Price
from headrace.model.usage import Usage
from headrace.routing.catalogue import Catalogue


def repriced(entry: Entry, catalogue: Catalogue) -> Money:
    """The entry's money at the prices of `catalogue`; as it is where there is nothing to rate, or no price for it."""
    model = catalogue.find_model(entry.model) if entry.model else None
    is_free = entry.usage_origin == "none" or entry.operation in FREE
    # Of the committed attempt the entry has the usage; what stands at attempts is of those that came to nothing.
    failed = [(one.usage, _price(entry, one, catalogue, model)) for one in entry.attempts if one.usage.known]
    last = entry.attempts[-1] if entry.attempts else None
    committed = [] if is_free else [(entry.usage, _price(entry, last, catalogue, model))]
    if not (failed or committed) or any(price is None for _, price in (*failed, *committed)):
        return entry.money

    def cost(usages: list[tuple[Usage, Price | None]]) -> Cost:
        each = (cost_of(usage, price, lambda name: catalogue.price_of(name, entry.at)) for usage, price in usages)
        return sum(each, Cost())

    charge, factor = cost(committed), entry.money.multiplier
    whole, price = charge + cost(failed), _price(entry, last, catalogue, model)
    return Money(
        cost=rounded(whole.millionths) if whole.known else None,
        charge=rounded(charge.millionths, factor) if charge.known else None,
        counted=rounded(charge.millionths, factor),
        price=price.version if price is not None else "",
        multiplier=factor,
        unpriced=whole.unpriced,
    )


def _price(entry: Entry, attempt: AttemptLine | None, catalogue: Catalogue, model: Model | None) -> Price | None:
    """What counted where the attempt went; by the model alone where the route is gone, or there was none."""
    if model is None:
        return None
    went = (attempt.channel, attempt.upstream_model) if attempt is not None else None
    routes = (route for route in model.routes if (route.channel, route.upstream_model or entry.model) == went)
    return catalogue.price(model, next(routes, None), entry.at)
