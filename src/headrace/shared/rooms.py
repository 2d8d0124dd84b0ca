"""What is left behind a claim, worked out when somebody asks: most replies of unlimited keys never do."""

from collections.abc import Sequence

from headrace.model.allowance import Claim, Room
from headrace.shared.account import MINUTE


def room_from_counts(claim: Claim, counted: Sequence[int], now: float) -> Room:
    """Of one claim. `counted` just behind it: requests, tokens, and the newest second with tokens, on the clock of
    `now`."""
    requests, tokens, token_second = counted
    per_minute, tokens_per_minute = claim.limits.requests_per_minute, claim.limits.tokens_per_minute
    return Room(
        max(per_minute - requests, 0) if per_minute is not None else None,
        reset_s(requests, int(now), now),
        max(tokens_per_minute - tokens, 0) if tokens_per_minute is not None else None,
        reset_s(tokens, token_second, now),
    )


def reset_s(count: int, newest: int, now: float) -> float:
    """Seconds until nothing is left of a count whose newest bucket is `newest`."""
    return max(newest + MINUTE - now, 0.0) if count else 0.0
