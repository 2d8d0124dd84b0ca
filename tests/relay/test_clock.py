"""The clocks of a stream: what is due is what passes, and nothing is looked at in vain."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.relay.clock import NEVER, TAIL_S, Clock, Verdict
from tests.relay.driver import limits

LIMITS = limits(
    keepalive=10.0,
    early_open=10.0,
    early_open_cold=25.0,
    first_event=120.0,
    stall=120.0,
    stall_with_pings=290.0,
    open=240.0,
    total=3600.0,
    end_grace=1.0,
)


def running(at: float = 100.0) -> Clock:
    clock = Clock(LIMITS, 90.0, at)
    clock.begin(at)
    clock.uploaded_at = clock.answered_at = at
    return clock


def test_the_order_of_what_has_passed_at_once() -> None:
    """The exchange's end before an attempt's, and all before a silence."""
    clock = running()
    assert clock.verdict(100.0, waiting=True) is None
    assert clock.verdict(1e9, waiting=True) is Verdict.TOTAL
    assert clock.verdict(341.0, waiting=True) is Verdict.OPEN
    assert clock.verdict(341.0, waiting=False) is Verdict.FIRST_EVENT
    clock.first_seen = True
    assert clock.verdict(341.0, waiting=False) is Verdict.STALL
    clock.tail_at = 100.0
    assert clock.tailing and clock.verdict(341.0, waiting=False) is Verdict.TAIL
    clock.held_since = 100.0
    assert clock.verdict(341.0, waiting=False) is Verdict.PREAMBLE
    clock.ending_at = 1e10
    assert clock.verdict(1e10, waiting=False) is None
    assert clock.verdict(1e10 + 1.0, waiting=False) is Verdict.GRACE
    assert clock.due(waiting=False, head_sent=True) == 1e10 + 1.0


def test_a_clock_at_rest() -> None:
    clock = running()
    clock.rest()
    assert clock.verdict(339.0, waiting=True) is None
    assert clock.due(waiting=True, head_sent=True) == 110.0, "the keepalive"
    assert clock.due(waiting=True, head_sent=False) == 125.0, "the cold early open"


def test_who_may_never_be_opened_early() -> None:
    clock = Clock(limits(early_open_cold=None, early_open=None), 0.0, 0.0)
    assert not clock.may_open(1e8)
    clock.answered_at = 0.0
    assert not clock.may_open(1e8)
    assert clock.due(waiting=False, head_sent=False) == 1e9


@given(
    events=st.lists(
        st.tuples(st.sampled_from(["progress", "heartbeat", "pause", "resume", "tail", "hold"]), st.floats(0.0, 500.0)),
        max_size=12,
    ),
    waiting=st.booleans(),
    uploaded=st.booleans(),
    early=st.booleans(),
)
def test_a_limit_passes_when_it_is_due_and_not_before(
    events: list[tuple[str, float]], waiting: bool, uploaded: bool, early: bool
) -> None:
    """`due` is never later than the first limit that passes; at `due` something has passed or may be sent."""
    clock = Clock(LIMITS if early else limits(first_event=120.0, stall=120.0, total=3600.0), 0.0, 0.0)
    clock.begin(0.0)
    if uploaded:
        clock.uploaded_at = clock.answered_at = 0.0
    now = 0.0
    for what, later in events:
        now += later
        if what == "progress":
            clock.first_seen = uploaded = True
            clock.progress_at = clock.out_at = now
            clock.uploaded_at = min(clock.uploaded_at, now)
        elif what == "heartbeat":
            clock.heartbeat_at = now
        elif what == "pause":
            clock.pause(now)
        elif what == "resume":
            clock.resume(now)
        elif what == "tail" and clock.first_seen:
            clock.tail_at = now
        elif what == "hold":
            clock.held_since = min(clock.held_since, now)
    due = clock.due(waiting, head_sent=not waiting)
    assert due < NEVER
    before = max(now, due - 0.001)
    if before < due:
        assert clock.verdict(before, waiting) is None
    at = max(now, due)
    acted = clock.verdict(at, waiting) or (clock.keepalive_due(at) if not waiting else clock.may_open(at))
    assert acted or not uploaded, "only an upload that is not over is looked at in vain"


def test_the_tail_is_ten_seconds() -> None:
    clock = running()
    clock.tail_at = 200.0
    assert clock.verdict(200.0 + TAIL_S - 0.1, waiting=False) is None
    assert clock.verdict(200.0 + TAIL_S, waiting=False) is Verdict.TAIL
