"""What a key, an owner or an upstream credential may use: rates, places at a time, and money."""

from dataclasses import dataclass
from enum import Enum

NANO = 1_000_000_000
"""Money and factors are whole numbers of billionths: of a currency unit, and of one."""


def decimal_text(nano: int) -> str:
    """Billionths (not negative) → the shortest decimal that says exactly the same: 1_250_000_000 → `1.25`."""
    whole, fraction = divmod(nano, NANO)
    return f"{whole}.{fraction:09}".rstrip("0").rstrip(".")


@dataclass(frozen=True, slots=True)
class Limits:
    """Rates and places; None is no limit. A minute is any 60 whole seconds."""

    requests_per_minute: int | None = None
    tokens_per_minute: int | None = None
    concurrent: int | None = None
    """Exchanges of any kind at a time."""
    wait: float = 5.0
    """Seconds that a request over one of these limits waits for room, at most. No credential has a wait."""
    upstream_wait: float = 30.0
    """Seconds that a key's request waits while all credentials are full, at most. It counts for keys only."""

    @property
    def limited(self) -> bool:
        """Whether anything is limited."""
        return self.requests_per_minute is not None or self.tokens_per_minute is not None or self.concurrent is not None


NO_LIMITS = Limits()


class Window(Enum):
    """What a budget is for: a calendar unit in UTC, or all time."""

    MONTH = "month"
    DAY = "day"
    HOUR = "hour"
    TOTAL = "total"


class Exceeded(Enum):
    """What happens to running streams when the budget is spent."""

    FINISH = "finish"
    STOP = "stop"


@dataclass(frozen=True, slots=True)
class Budget:
    """How much may be spent in a window."""

    amount: int
    """Nano-units of the currency. 0 is a budget that cannot spend."""
    window: Window = Window.MONTH
    exceeded: Exceeded = Exceeded.FINISH
    status: int = 402
    """The HTTP status that says so: 402 or 429."""
