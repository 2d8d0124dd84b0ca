"""Pure: whether the last candidate may be asked once more when no other is left, and after which pause."""

from headrace.model.problem import Kind, Problem

LAST_TRY_S = 0.8
"""The pause before one more try on the same credential."""
LONGEST_PAUSE_S = 3.0
"""The longest Retry-After that such a try waits for."""


def pause_before_repeat(status: int | None, failure: Problem) -> float | None:
    """Seconds to wait; None where it may not be asked again.

    `status` is that of the last reply, None where there was none: only a *received* 5xx, 529 or 429 is worth it.
    """
    said = status or 0
    if said == 200 and failure.kind in (Kind.UPSTREAM_ERROR, Kind.UPSTREAM_RATE_LIMITED):
        said = failure.http_status  # a first event that is an error says it as well as a status does
    if said != 429 and said < 500:
        return None
    wait = failure.retry_after_s if failure.retry_after_s is not None else LAST_TRY_S
    return wait if wait <= LONGEST_PAUSE_S else None
