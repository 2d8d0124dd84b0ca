"""What a request takes of its key's and its owner's allowance, what a client hears where there is no room, and the
headers that tell it how much is left."""

import math
from collections.abc import Sequence
from datetime import UTC, datetime

from headrace.model.allowance import Allowance, Claim, Denial, Limit, Room, window_end, window_start
from headrace.model.headers import Headers
from headrace.model.key import Key
from headrace.model.limits import NANO, Limits
from headrace.model.owner import Owner
from headrace.model.problem import Kind, Problem
from headrace.model.wire import Dialect

LONGEST_RETRY_S = 60.0
SOON_S = 1.0
"""What is said where nobody can tell when there will be room."""

_PARTS = (b"limit", b"remaining", b"reset")
_OPENAI, _ANTHROPIC = (
    tuple(tuple(form % {b"what": what, b"part": part} for part in _PARTS) for what in (b"requests", b"tokens"))
    for form in (b"x-ratelimit-%(part)b-%(what)b", b"anthropic-ratelimit-%(what)b-%(part)b")
)
"""Names of the headers for requests and for tokens, in the order of `_PARTS`. Spelled once: each request has them."""

_WHOSE = {"key": "this API key", "owner": "the owner of this API key"}


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


def refusal(denial: Denial, asked: Sequence[Claim]) -> Problem:
    """What the client hears of a denial."""
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
            return _used_up(claim, whose, renews=denial.retry_after_s is not None)
        case Limit.UNKNOWN:
            return Problem(
                Kind.OVERLOADED,
                f"The limits of {whose} cannot be checked now. Keep the key, and try again later.",
                retry_after_s=max(wait, 2.0),
            )


def _used_up(claim: Claim, whose: str, *, renews: bool) -> Problem:
    """All of a budget is spent or held. `renews`: it is spent, and only its next window brings more."""
    budget = claim.budget
    assert budget is not None
    end = window_end(budget.window, claim.window)
    if not budget.amount:
        said = f"The budget of {whose} is spent: it is 0. Ask the operator for more."
    elif renews and end is not None:
        said = f"The budget of {whose} is spent. It is whole again at {_moment(end)}; or ask the operator for more."
    elif end is None:
        said = f"The budget of {whose} is spent, or held by requests that run. Ask the operator for more."
    else:
        said = f"What is left of the budget of {whose} is held by requests that run. Try again when one has ended."
    return Problem(
        Kind.INSUFFICIENT_QUOTA,
        said,
        status=budget.status,
        should_retry=False if budget.status == 429 else None,
    )


def room_behind(denial: Denial) -> Room:
    """What a denial says of the limit that it is for."""
    reset_s = denial.retry_after_s or 0.0
    return Room(
        0 if denial.limit is Limit.REQUESTS else None,
        reset_s,
        0 if denial.limit is Limit.TOKENS else None,
        reset_s,
    )


def room_headers(dialect: Dialect, limits: Limits, room: Room, now: float) -> Headers:
    """A key's own limits and what is left of them, in the words of the dialect; `now` in seconds since the epoch.

    OpenAI: `x-ratelimit-{limit,remaining,reset}-{requests,tokens}`, the reset as a duration (`12s`); Anthropic:
    `anthropic-ratelimit-{requests,tokens}-{limit,remaining,reset}`, the reset as a time (RFC 3339).
    """
    names = _ANTHROPIC if dialect is Dialect.ANTHROPIC else _OPENAI
    headers: Headers = []
    for (limit_name, left_name, reset_name), limit, left, reset_s in (
        (names[0], limits.requests_per_minute, room.requests_left, room.requests_reset_s),
        (names[1], limits.tokens_per_minute, room.tokens_left, room.tokens_reset_s),
    ):
        if limit is None or left is None:
            continue
        reset = _moment(math.ceil(now + reset_s)).encode() if names is _ANTHROPIC else b"%ds" % math.ceil(reset_s)
        headers += (
            (limit_name, b"%d" % limit),
            (left_name, b"%d" % left if left > 0 else b"0"),
            (reset_name, reset),
        )
    return headers


def _moment(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
