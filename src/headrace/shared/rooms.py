"""What is left behind a claim, worked out when somebody asks: most replies of unlimited keys never do."""

from collections.abc import Sequence

from headrace.model.allowance import Claim, Room
from headrace.shared.account import MINUTE


def rooms_from_counts(claims: Sequence[Claim], counted: Sequence[int], now: float) -> Sequence[Room]:
    """By claim. `counted` has for each, just behind it: requests, tokens, and the newest second with tokens, on the
    clock of `now`."""
    counts = iter(counted)
    return [_room(claim, next(counts), next(counts), next(counts), now) for claim in claims]


def reset_s(count: int, newest: int, now: float) -> float:
    """Seconds until nothing is left of a count whose newest bucket is `newest`."""
    return max(newest + MINUTE - now, 0.0) if count else 0.0


def _room(claim: Claim, requests: int, tokens: int, token_second: int, now: float) -> Room:
    per_minute, tokens_per_minute = claim.limits.requests_per_minute, claim.limits.tokens_per_minute
    return Room(
        max(per_minute - requests, 0) if per_minute is not None else None,
        reset_s(requests, int(now), now),
        max(tokens_per_minute - tokens, 0) if tokens_per_minute is not None else None,
        reset_s(tokens, token_second, now),
    )
