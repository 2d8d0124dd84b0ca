"""The JSON of per-token prices that a community keeps: by model, fields such as `input_cost_per_token`.

A field's name is its kind, then perhaps `_above_200k_tokens`, then perhaps `_priority`, `_flex` or `_batches`. Figures
are currency units per token; they become units per million by moving the point. What cannot be said exactly in the
configuration's own form is left out with its reason: half a price would be a wrong one.
"""

import re
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from headrace.config.json_source import MAX_DIGITS
from headrace.config.source import Block, Value
from headrace.model.limits import NANO, decimal_text

Path = tuple[str, ...]
Figures = dict[Path, int]
"""Nano-units, by option."""

KINDS: dict[str, tuple[Path, int]] = {
    "input_cost_per_token": (("input",), 6),
    "cache_read_input_token_cost": (("cached_input",), 6),
    "cache_creation_input_token_cost": (("cache_write", "5m"), 6),
    "cache_creation_input_token_cost_above_1hr": (("cache_write", "1h"), 6),
    "output_cost_per_token": (("output",), 6),
    "output_cost_per_reasoning_token": (("reasoning",), 6),
    "input_cost_per_audio_token": (("audio_input",), 6),
    "output_cost_per_audio_token": (("audio_output",), 6),
    "input_cost_per_image_token": (("image",), 6),
    "output_cost_per_image_token": (("image_output",), 6),
    "file_search_cost_per_1k_calls": (("calls", "file_search"), -3),
}
"""The option that a field fills, and by how many places its point moves."""

_FIELD = re.compile(r"(?P<kind>.+?)(?:_above_(?P<above>[0-9]{1,6})k_tokens)?(?:_(?P<tier>priority|flex|batches))?")
_TIERS = {"batches": "batch"}
_SEARCH = "search_context_cost_per_query"


class LeftOutError(Exception):
    """This model, or this tier, cannot be taken; the text says why."""


def is_community(root: Block) -> bool:
    """Whether the file is of this kind: some model has a price per token."""
    return any(isinstance(one, Block) and not KINDS.keys().isdisjoint(one) for one in root.values())


class Reading:
    """Reads one model after the other, and remembers which fields have no counterpart."""

    def __init__(self) -> None:
        self.ignored: dict[str, list[str]] = {}
        """By field the models that it was left out of."""

    def price(self, name: str, entry: Block) -> Block:
        """The model's price in the configuration's form, its lines those of the entry. Raises LeftOutError."""
        base: dict[tuple[str, int], Figures] = {}
        for field, value in entry.items():
            found = _FIELD.fullmatch(field)
            kind = KINDS.get(found["kind"]) if found else None
            if found and kind and value is not None:
                figures = base.setdefault((found["tier"] or "", int(found["above"] or 0) * 1000), {})
                figures[kind[0]] = _nano(field, value, kind[1])
            elif field == _SEARCH and (each := _each_search(value)) is not None:
                base.setdefault(("", 0), {})["calls", "web_search"] = each
            elif "cost" in field and value not in (None, "0", "0.0"):
                self.ignored.setdefault(field, []).append(name)
        return self._price(name, base)

    def _price(self, name: str, figures: dict[tuple[str, int], Figures]) -> Block:
        if ("", 0) not in figures:
            raise LeftOutError("has no price per token")
        bounds = sorted({above for _, above in figures if above})
        if len(bounds) > 1:
            raise LeftOutError("has prices above more than one number of tokens")
        above = bounds[0] if bounds else 0
        factors = _factors(figures, "", above)
        price = _rates(figures["", 0])
        for tier in sorted({tier for tier, _ in figures if tier}):
            if (tier, 0) in figures and _has_factors(figures, tier, above, factors):
                tiers = price.setdefault("tiers", Block())
                assert isinstance(tiers, Block)
                tiers[_TIERS.get(tier, tier)] = _rates(figures[tier, 0])
            else:
                self.ignored.setdefault(f"the tier {tier}, whose long context costs otherwise", []).append(name)
        if factors:
            long = price["long_context"] = Block()
            long["above"] = str(above)
            inner = long["factors"] = Block()
            inner.update((dimension, decimal_text(factor)) for dimension, factor in sorted(factors.items()))
        return price


def _nano(field: str, value: Value, places: int) -> int:
    """Nano-units of a figure whose point moves by `places`. Raises LeftOutError."""
    try:
        number = Decimal(value) if isinstance(value, str) else Decimal("NaN")
    except InvalidOperation:
        number = Decimal("NaN")
    if not number.is_finite() or number < 0 or abs(number.adjusted()) > MAX_DIGITS:
        raise LeftOutError(f"{field} is no price")
    nano = Fraction(number) * NANO * Fraction(10) ** places
    if nano.denominator != 1:
        raise LeftOutError(f"{field} has more digits than a price can have")
    return int(nano)


def _each_search(value: Value) -> int | None:
    """What a search costs, where it is the same for every size of it."""
    figures = {_nano(_SEARCH, one, 0) for one in value.values()} if isinstance(value, Block) else set()
    return figures.pop() if len(figures) == 1 else None


def _has_factors(figures: dict[tuple[str, int], Figures], tier: str, above: int, factors: dict[str, int]) -> bool:
    try:
        return _factors(figures, tier, above) == factors
    except LeftOutError:
        return False


def _factors(figures: dict[tuple[str, int], Figures], tier: str, above: int) -> dict[str, int]:
    """By dimension what a long context multiplies the tier's prices by, in billionths. Raises LeftOutError."""
    base, found = figures.get((tier, 0), {}), dict[str, int]()
    for path, figure in figures.get((tier, above), {}).items() if above else ():
        plain = base.get(path, 0)
        if not plain and figure:
            raise LeftOutError(f"{path[0]} has a price in a long context only")
        factor, rest = divmod(figure * NANO, plain) if plain else (NANO, 0)
        if rest or found.setdefault(path[0], factor) != factor:
            raise LeftOutError(f"{path[0]} costs in a long context what no factor says exactly")
    return {dimension: factor for dimension, factor in found.items() if factor != NANO}


def _rates(figures: Figures) -> Block:
    """The figures as options. Reasoning that costs what output does is left to follow it, in a long context too."""
    block = Block()
    for path, figure in figures.items():
        if path == ("reasoning",) and figure == figures.get(("output",)):
            continue
        inner = block if len(path) == 1 else block.setdefault(path[0], Block())
        assert isinstance(inner, Block)
        inner[path[-1]] = decimal_text(figure)
    return block
