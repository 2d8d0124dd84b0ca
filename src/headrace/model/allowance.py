"""What an exchange asks of a key's, an owner's or a credential's allowance, and what it is given.

Claims ──Counters.claim──▶ Lease ──settle──▶ given back, exactly once
               └─────────▶ Denial            whatever ended the exchange
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple, Protocol

import msgspec

from headrace.model.key import Key
from headrace.model.limits import Budget, Limits, Window
from headrace.model.owner import Owner


class Limit(Enum):
    """What refused."""

    REQUESTS = "requests_per_minute"
    TOKENS = "tokens_per_minute"
    CONCURRENT = "concurrent"
    BUDGET = "budget"
    UNKNOWN = "unknown"
    """It cannot be told: the store does not answer (and the policy is to refuse), or what was spent is not known."""


class Allowance(NamedTuple):
    """What one subject may use."""

    subject: str
    limits: Limits
    budget: Budget | None


def allowances(key: Key, owner: Owner | None) -> tuple[Allowance, ...]:
    """Those of the key and its owner that limit anything: the key's first."""
    found: tuple[Allowance, ...] = ()
    if key.is_limited:
        found = (Allowance(f"key:{key.name}", key.limits, key.budget),)
    if owner is not None and owner.is_limited:
        found += (Allowance(f"owner:{owner.name}", owner.limits, owner.budget),)
    return found


class Claim(msgspec.Struct, frozen=True, gc=False):
    """What one exchange asks of one subject: a request, a place, its tokens and, with a budget, its hold.

    Two are made for a request: a struct takes 0.2 µs, a frozen dataclass 1.4.
    """

    subject: str
    """`key:NAME`, `owner:NAME` or `credential:CHANNEL/NAME`."""
    limits: Limits
    budget: Budget | None = None
    tokens: int = 0
    """Estimated input: counted at admission; the rest at settlement."""
    hold: int = 0
    """Nano-units that it may come to cost."""
    window: int = 0
    """Where the budget's window begins: seconds since the epoch, 0 for `total`. It stays the exchange's to its end."""

    @property
    def purse(self) -> str:
        """What names the budget in this window."""
        return purse_of(self.subject, self.budget.window, self.window) if self.budget is not None else ""


@dataclass(frozen=True, slots=True)
class Denial:
    """Nothing was taken from any of the claims."""

    limit: Limit
    subject: str
    retry_after_s: float | None = None
    """When there is room again, as far as that can be told."""


class Room(NamedTuple):
    """What is left of one subject's limits behind a claim; None where nothing is limited."""

    requests_left: int | None
    requests_reset_s: float
    """Seconds until all of it is there again."""
    tokens_left: int | None
    tokens_reset_s: float


@dataclass(frozen=True, slots=True)
class Balance:
    """How one subject stands, for its own eyes."""

    requests: int
    """In the last 60 whole seconds."""
    tokens: int
    running: int
    spent: int | None
    """Nano-units in the window; None where it is not known, or there is no budget."""
    held: int
    requests_reset_s: float = 0.0
    tokens_reset_s: float = 0.0


class Lease(Protocol):
    """What one exchange has been given."""

    def room(self, number: int) -> Room:
        """What was left just behind the claim in that place."""

    def settle(self, tokens: int, amount: int) -> None:
        """Give the places back; count `tokens` (all of them, with those of the claim) and `amount` (nano-units) in
        place of the hold. Only the first call does anything; it never waits and never raises."""


class Counters(Protocol):
    """Where limits are kept: in the worker's memory, or in Valkey."""

    async def start(self) -> None:
        """Called once, before anything is claimed: reach for what is elsewhere, for a moment at most."""

    async def claim(self, claims: Sequence[Claim]) -> Lease | Denial:
        """All of the claims at once, or none. Where one has no room, wait for it up to that claim's `limits.wait`,
        first come, first served; a budget is never waited for, nor is room that cannot come in time."""

    async def claim_one(self, options: Sequence[Claim], wait_s: float) -> tuple[int, Lease] | Denial:
        """The first of the options that has room, as its place among them; wait up to `wait_s` for any."""

    async def balances(self, claims: Sequence[Claim]) -> Sequence[Balance]:
        """How the claims' subjects stand now. Takes nothing."""

    def cover(self, spent: "Sequence[Spent]") -> None:
        """What the ledger says of budgets; it never falls back behind what is known already."""

    def close(self) -> None:
        """Stop what runs in the background; leases may still be settled."""


CORRECTIONS: Final = "corrections"
"""The part of `Spent` that no journal has: what rating entries again has changed. It goes up and down, and may be
negative; the newest figure counts, not the largest."""


class Spent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the ledger has of one budget in one window. Nano-units.

    A journal's part only ever grows, and the ledger's part of it is a beginning of what its worker knows: the larger of
    the two is the truth. So the parts may be told again, late and in any order.
    """

    purse: str
    settled: int = 0
    """By journals that are not among `parts`, for good."""
    parts: dict[str, int] = {}
    """By the journals of running and of recently ended workers: incarnation → amount."""

    @property
    def total(self) -> int:
        """All of it."""
        return self.settled + sum(self.parts.values())


def purse_of(subject: str, window: Window, start: int) -> str:
    """What names a budget in one window."""
    return f"{subject}|{window.value}|{start}"


def window_start(window: Window, at: float) -> int:
    """Where the window of a moment begins: the UTC calendar month, day or hour; 0 for `total`. Seconds since the
    epoch."""
    if window is Window.TOTAL:
        return 0
    if window is Window.HOUR:
        return int(at // 3600) * 3600
    if window is Window.DAY:
        return int(at // 86400) * 86400
    return _month_start(int(at // 86400))


@lru_cache(maxsize=64)
def _month_start(day: int) -> int:
    """Of a day since the epoch. Asked for each request of a monthly budget; worked out once a day, in 4 µs."""
    moment = datetime.fromtimestamp(day * 86400, UTC)
    return int(datetime(moment.year, moment.month, 1, tzinfo=UTC).timestamp())


def window_end(window: Window, start: int) -> int | None:
    """Where the next window begins; None for `total`."""
    if window is Window.TOTAL:
        return None
    if window is Window.HOUR:
        return start + 3600
    if window is Window.DAY:
        return start + 86400
    moment = datetime.fromtimestamp(start, UTC)
    year, month = (moment.year + 1, 1) if moment.month == 12 else (moment.year, moment.month + 1)
    return int(datetime(year, month, 1, tzinfo=UTC).timestamp())
