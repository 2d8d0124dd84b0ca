"""What costs what in the tests of money: prices by protocol, keys with budgets, and what the upstream plays.

The model `prose` goes at random to a scenario that answers whole, to one that is cut and to one that falls silent. So
all of these are one model, and what its whole answers teach serves to estimate the others.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from headrace.state.spending import KEY, OWNER
from tests.chaos.gateway_file import PATHS

_PARAGRAPH = (
    "Water that runs down a headrace turns the wheel, 24 hours a day; nobody counts the drops, but the miller counts"
    " the sacks: 17 of rye, 230 of wheat. 水は水路を流れて水車を回す。 What was ground is written down, line by line. "
)
_ODD = 0.013
"""Seconds between events: no multiple of anything that the gateway does."""
SCENARIOS: dict[str, dict[str, object]] = {
    "whole": {"text": _PARAGRAPH * 2, "gap": _ODD},
    "cut": {"text": _PARAGRAPH * 2, "gap": _ODD, "cut": {"after_events": 60, "how": "rst"}},
    "silent": {"text": _PARAGRAPH * 2, "gap": _ODD, "cut": {"after_events": 50, "how": "stall"}},
    "quick": {"text": "a few words that come at once"},
    "failing": {"text": _PARAGRAPH, "gap": _ODD, "error_at": 20},
    "refused": {"status": 400},
    "broken": {"status": 500},
    "endless": {"text": _PARAGRAPH, "repeat": 1000, "gap": 0.05},
}
"""By the upstream's name of the model."""
PLAYED: Mapping[str, int] = {"prose": 14, "quick": 3, "failing": 1, "refused": 1, "broken": 1}
"""What clients ask for, and how often."""
_WEIGHTS = {"whole": 6, "cut": 2, "silent": 1}
TEXTS = tuple(_PARAGRAPH * number for number in range(1, 5))
"""What clients send."""


@dataclass(frozen=True, slots=True)
class Rate:
    """Currency units per million tokens, as the file has them."""

    input: str
    output: str


RATES: Mapping[str, Rate] = {
    "chat": Rate("1.25", "10"),
    "responses": Rate("0.123456789", "0.987654321"),
    "messages": Rate("3", "15.000000001"),
    "gemini": Rate("0.3", "2.5"),
}
"""By protocol. Some make fractions of a nano-unit of every exchange."""


@dataclass(frozen=True, slots=True)
class Payer:
    """A key. Each may run up to 500 exchanges at a time, which is counted and never reached."""

    name: str
    secret: str
    multiplier: str = "1"
    owner: str = ""


OWNED = "team"
PAYERS = (
    Payer("plain", "sk-hr-plain-0123456789abcdef"),
    Payer("dear", "sk-hr-dear-0123456789abcdef", multiplier="1.5", owner=OWNED),
    Payer("shared", "sk-hr-shared-0123456789abcdef", owner=OWNED),
)
SUBJECTS = (*((KEY, payer.name) for payer in PAYERS), (OWNER, OWNED))
"""Whose spending is counted: kind and name."""


def objects() -> str:
    """The sections `models`, `keys` and `owners`."""
    played = "".join(
        f"  {model}: {_routes({model: 1})}\n" for model in ("quick", "failing", "refused", "broken", "endless")
    )
    counted = "limits: {concurrent: 500}, budget: {amount: 1000000, window: total}"
    keys = "".join(
        f"  - {{name: {one.name}, secret: {one.secret}, multiplier: {one.multiplier}, {counted}"
        f"{f', owner: {one.owner}' if one.owner else ''}}}\n"
        for one in PAYERS
    )
    return f"models:\n  prose: {_routes(_WEIGHTS)}\n{played}keys:\n{keys}owners:\n  - {{name: {OWNED}, {counted}}}\n"


def _routes(weights: Mapping[str, int]) -> str:
    routes = ", ".join(
        f"{{channel: up-{protocol}, upstream_model: {scenario}, weight: {weight},"
        f" price: {{input: {RATES[protocol].input}, output: {RATES[protocol].output}}}}}"
        for protocol in PATHS
        for scenario, weight in weights.items()
    )
    return f"{{routes: [{routes}], max_attempts: 1}}"


def cost_of(protocol: str, input_tokens: int, output_tokens: int) -> Fraction:
    """Nano-units, exactly."""
    rate = RATES[protocol]
    return (Fraction(rate.input) * input_tokens + Fraction(rate.output) * output_tokens) * 1000


def multiplier_of(key: str) -> Fraction:
    """Of a key of ours."""
    return next(Fraction(one.multiplier) for one in PAYERS if one.name == key)
