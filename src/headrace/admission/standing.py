"""What GET /v1/usage says: a key's limits, what it has used of them, what is left, and when it is whole again.

Money is text with an exact decimal number of currency units; times are RFC 3339, durations seconds.
"""

from collections.abc import Sequence
from datetime import UTC, datetime

import msgspec

from headrace.admission.limits import claims
from headrace.model.allowance import Allowance, Balance, Claim, window_end
from headrace.model.key import Key
from headrace.model.limits import Budget, Limits, decimal_text
from headrace.model.owner import Owner


def standing_claims(key: Key, owner: Owner | None, now: float) -> tuple[Claim, ...]:
    """Whose balances the page tells: the key's, then its owner's if it has one. `now` in seconds since the epoch."""
    of = [Allowance(f"key:{key.name}", key.limits, key.budget)]
    if owner is not None:
        of.append(Allowance(f"owner:{owner.name}", owner.limits, owner.budget))
    return claims(of, now, 0, 0)


def usage_page(key: Key, asked: Sequence[Claim], balances: Sequence[Balance], now: float) -> bytes:
    """The page's JSON."""
    page: dict[str, object] = {"object": "usage", "at": _moment(now)}
    for claim, balance in zip(asked, balances, strict=True):
        kind, _, name = claim.subject.partition(":")
        page[kind] = {"name": name, **_standing(claim, balance)}
    page["expires_at"] = _moment(key.expires) if key.expires is not None else None
    page["expired"] = key.expires is not None and now >= key.expires
    return msgspec.json.encode(page)


def _standing(claim: Claim, balance: Balance) -> dict[str, object]:
    limits = claim.limits
    return {
        "requests_per_minute": _rate(limits.requests_per_minute, balance.requests, balance.requests_reset_s),
        "tokens_per_minute": _rate(limits.tokens_per_minute, balance.tokens, balance.tokens_reset_s),
        "concurrent": _places(limits, balance),
        "budget": _budget(claim.budget, claim.window, balance) if claim.budget is not None else None,
    }


def _rate(limit: int | None, used: int, reset_s: float) -> dict[str, object] | None:
    if limit is None:
        return None
    return {"limit": limit, "used": used, "remaining": max(limit - used, 0), "reset_s": round(reset_s, 1)}


def _places(limits: Limits, balance: Balance) -> dict[str, object] | None:
    if limits.concurrent is None:
        return None
    left = max(limits.concurrent - balance.running, 0)
    return {"limit": limits.concurrent, "used": balance.running, "remaining": left}


def _budget(budget: Budget, window: int, balance: Balance) -> dict[str, object]:
    spent, end = balance.spent, window_end(budget.window, window)
    left = max(budget.amount - spent - balance.held, 0) if spent is not None else None
    return {
        "amount": decimal_text(budget.amount),
        "window": budget.window.value,
        "spent": decimal_text(spent) if spent is not None else None,
        "held": decimal_text(balance.held),
        "remaining": decimal_text(left) if left is not None else None,
        "resets_at": _moment(end) if end is not None else None,
    }


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
