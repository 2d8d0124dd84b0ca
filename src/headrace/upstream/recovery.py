"""When an upstream will take requests again, as its headers say it: `retry-after` in its forms, rate-limit resets."""

import math
import re
from datetime import UTC, datetime

from headrace.model.request import ReplyHead

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_HTTP_DATE = re.compile(r"\w{3}, (\d{2}) (\w{3}) (\d{4}) (\d{2}):(\d{2}):(\d{2}) GMT")
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)")
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|h|m|s))+")
_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_RESETS = (
    ("x-ratelimit-remaining-tokens", "x-ratelimit-reset-tokens"),
    ("x-ratelimit-remaining-requests", "x-ratelimit-reset-requests"),
    ("anthropic-ratelimit-input-tokens-remaining", "anthropic-ratelimit-input-tokens-reset"),
    ("anthropic-ratelimit-output-tokens-remaining", "anthropic-ratelimit-output-tokens-reset"),
    ("anthropic-ratelimit-tokens-remaining", "anthropic-ratelimit-tokens-reset"),
    ("anthropic-ratelimit-requests-remaining", "anthropic-ratelimit-requests-reset"),
)
"""(what is left, when it is full again) by provider, the likelier limit first."""


def retry_after_s(head: ReplyHead, now: float) -> float | None:
    """Seconds until the upstream wants to hear again, or None if it does not say. `now` in seconds since the epoch.

    `retry-after-ms` before `retry-after` (seconds or HTTP-date) before the resets of the limits that are used up; with
    none used up, the first reset that is named. Not capped, never negative.
    """
    ms = _number(_text(head, "retry-after-ms"))
    if ms is not None:
        return ms / 1000
    value = _text(head, "retry-after")
    seconds = _number(value)
    if seconds is None and value:
        seconds = _until_http_date(value, now)
    return seconds if seconds is not None else _reset_s(head, now)


def _reset_s(head: ReplyHead, now: float) -> float | None:
    used_up: list[float] = []
    named: list[float] = []
    for remaining, reset in _RESETS:
        wait = _until(_text(head, reset), now)
        if wait is None:
            continue
        named.append(wait)
        if _number(_text(head, remaining)) == 0:
            used_up.append(wait)
    if used_up:
        return max(used_up)
    return named[0] if named else None


def _until(value: str, now: float) -> float | None:
    """OpenAI's durations (`6m0s`, `17ms`) or Anthropic's RFC 3339 times."""
    if not value:
        return None
    if _DURATION.fullmatch(value):
        return sum(float(number) * _UNIT_S[unit] for number, unit in _DURATION_PART.findall(value))
    if "T" not in value:
        return _number(value)
    try:
        at = datetime.fromisoformat(value)
    except ValueError:
        return None
    return max(0.0, (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp() - now)


def _until_http_date(value: str, now: float) -> float | None:
    """RFC 9110 section 5.6.7, its preferred form only: `Sun, 06 Nov 1994 08:49:37 GMT`."""
    match = _HTTP_DATE.fullmatch(value)
    if match is None or match[2].lower() not in _MONTHS:
        return None
    day, year, hour, minute, second = (int(match[group]) for group in (1, 3, 4, 5, 6))
    try:
        at = datetime(year, _MONTHS.index(match[2].lower()) + 1, day, hour, minute, second, tzinfo=UTC)
    except ValueError:
        return None
    return max(0.0, at.timestamp() - now)


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if number >= 0 and math.isfinite(number) else None


def _text(head: ReplyHead, name: str) -> str:
    value = head.header(name.encode())
    return value.decode("latin-1").strip() if value else ""
