"""When the last candidate is asked once more."""

import pytest

from headrace.model.problem import Kind, Problem
from headrace.upstream.repeat import LAST_TRY_S, LONGEST_PAUSE_S, pause_before_repeat


def failure(kind: Kind = Kind.UPSTREAM_ERROR, after: float | None = None, status: int | None = None) -> Problem:
    return Problem(kind, "", retry_after_s=after, status=status)


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_after_a_received_5xx_or_429(status: int) -> None:
    assert pause_before_repeat(status, failure()) == LAST_TRY_S
    assert pause_before_repeat(status, failure(after=0.2)) == 0.2
    assert pause_before_repeat(status, failure(after=LONGEST_PAUSE_S)) == LONGEST_PAUSE_S
    assert pause_before_repeat(status, failure(after=LONGEST_PAUSE_S + 0.1)) is None


@pytest.mark.parametrize("status", [None, 401, 404, 302, 200])
def test_not_after_anything_else(status: int | None) -> None:
    assert pause_before_repeat(status, failure(Kind.UPSTREAM_BAD_REPLY)) is None


def test_an_error_in_a_200_counts_as_its_status() -> None:
    assert pause_before_repeat(200, failure(status=503)) == LAST_TRY_S
    assert pause_before_repeat(200, failure(Kind.UPSTREAM_RATE_LIMITED)) == LAST_TRY_S
