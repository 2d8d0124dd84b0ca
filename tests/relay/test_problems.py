"""What a relay itself finds wrong is said in words that tell the client what to do."""

import pytest

from headrace.model.outcome import End
from headrace.model.problem import Kind
from headrace.model.wire import BodyEnd
from headrace.relay import problems


@pytest.mark.parametrize(
    ("how", "kind", "status"),
    [
        (BodyEnd.CUT, Kind.UPSTREAM_UNREACHABLE, 502),
        (BodyEnd.FRAMED, Kind.UPSTREAM_BAD_REPLY, 502),
        (BodyEnd.CLOSED, Kind.UPSTREAM_BAD_REPLY, 502),
    ],
)
def test_nothing_came(how: BodyEnd, kind: Kind, status: int) -> None:
    problem = problems.nothing_came(how)
    assert (problem.kind, problem.http_status) == (kind, status)


def test_what_ends_an_exchange() -> None:
    total, over = problems.TIME_OVER["total"], problems.TIME_OVER["open"]
    assert (total.end, over.end) == (End.STOPPED, End.REFUSED)
    assert total.problem is not None and not total.problem.facts.retryable
    assert over.problem is not None and over.problem.http_status == 504
    assert problems.STALLED.http_status == problems.REPLY_TIMEOUT.http_status == 504
    assert problems.CUT.problem is problems.INTERRUPTED


def test_a_stop_does_not_ask_to_try_again() -> None:
    assert "try again" not in problems.TOTAL.message.lower()
