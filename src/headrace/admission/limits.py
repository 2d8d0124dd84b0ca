"""What a request takes of its key's and its owner's allowance, what a client hears where there is no room, and the
headers that tell it how much is left."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from headrace.model.allowance import Claim, Denial, Limit, Room, window_end, window_start
from headrace.model.headers import Headers
from headrace.model.key import Key
from headrace.model.limits import NANO, Budget, Limits
from headrace.model.owner import Owner
from headrace.model.problem import Kind, Problem
from headrace.model.wire import Dialect

LONGEST_RETRY_S = 60.0
SOON_S = 1.0
"""What is said where nobody can tell when there will be room."""

_WHOSE = {"key": "this API key", "owner": "the owner of this API key"}


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


def multiplier(key: Key, owner: Owner | None) -> int:
    """What a charge is multiplied by, in billionths: the key's factor times its owner's, half up."""
    if owner is None or owner.multiplier == NANO:
        return key.multiplier
    return (key.multiplier * owner.multiplier * 2 + NANO) // (NANO * 2)


def claims(of: Sequence[Allowance], at: float, tokens: int, hold: int) -> tuple[Claim, ...]:
    """What an exchange that begins at `at` (seconds since the epoch) asks of them: `tokens` of input, and a hold in
    nano-units where there is a budget."""
    return tuple(
        [
            Claim(subject, limits, None, tokens)
            if budget is None
            else Claim(subject, limits, budget, tokens, hold, window_start(budget.window, at))
            for subject, limits, budget in of
        ]
    )


def refusal(denial: Denial, asked: Sequence[Claim], now: float) -> Problem:
    """What the client hears of a denial; `now` in seconds since the epoch."""
    claim = next(one for one in asked if one.subject == denial.subject)
    whose = _WHOSE[denial.subject.partition(":")[0]]
    wait = min(max(denial.retry_after_s if denial.retry_after_s is not None else SOON_S, SOON_S), LONGEST_RETRY_S)
    limits = claim.limits
    match denial.limit:
        case Limit.REQUESTS:
            said = f"The limit of {limits.requests_per_minute} requests per minute of {whose} is reached"
            return Problem(Kind.RATE_LIMIT_EXCEEDED, f"{said}. Wait for Retry-After.", retry_after_s=wait)
        case Limit.TOKENS:
            said = f"The limit of {limits.tokens_per_minute} tokens per minute of {whose} is reached"
            return Problem(Kind.RATE_LIMIT_EXCEEDED, f"{said}. Wait for Retry-After.", retry_after_s=wait)
        case Limit.CONCURRENT:
            said = f"{limits.concurrent} requests of {whose} run already, which is the limit"
            return Problem(Kind.CONCURRENCY_LIMIT_EXCEEDED, f"{said}. Wait for one to end.", retry_after_s=wait)
        case Limit.BUDGET:
            return _spent(claim, whose, now)
        case Limit.UNKNOWN:
            return Problem(
                Kind.OVERLOADED,
                f"The limits of {whose} cannot be checked now. Keep the key, and try again later.",
                retry_after_s=max(wait, 2.0),
            )


def _spent(claim: Claim, whose: str, now: float) -> Problem:
    budget = claim.budget
    assert budget is not None
    end = window_end(budget.window, claim.window)
    if not budget.amount:
        until = "it is 0. Ask the operator for more"
    elif end is None:
        until = "Ask the operator for more"
    else:
        until = f"It is whole again at {_moment(end)}; or ask the operator for more"
    separator = ": " if not budget.amount else ". "
    return Problem(
        Kind.INSUFFICIENT_QUOTA,
        f"The budget of {whose} is spent{separator}{until}.",
        status=budget.status,
        should_retry=False if budget.status == 429 else None,
    )


def room_headers(dialect: Dialect, limits: Limits, room: Room, now: float) -> Headers:
    """A key's own limits and what is left of them, in the words of the dialect; `now` in seconds since the epoch.

    OpenAI: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, the reset as a duration (`12s`); Anthropic:
    `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`, the reset as a time (RFC 3339).
    """
    counts = (
        (b"requests", limits.requests_per_minute, room.requests_left, room.requests_reset_s),
        (b"tokens", limits.tokens_per_minute, room.tokens_left, room.tokens_reset_s),
    )
    headers: Headers = []
    for what, limit, left, reset_s in counts:
        if limit is None or left is None:
            continue
        if dialect is Dialect.ANTHROPIC:
            names = [b"anthropic-ratelimit-%b-%b" % (what, part) for part in (b"limit", b"remaining", b"reset")]
            reset = _moment(math.ceil(now + reset_s)).encode()
        else:
            names = [b"x-ratelimit-%b-%b" % (part, what) for part in (b"limit", b"remaining", b"reset")]
            reset = b"%ds" % math.ceil(reset_s)
        headers += zip(names, (b"%d" % limit, b"%d" % max(left, 0), reset), strict=True)
    return headers


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
