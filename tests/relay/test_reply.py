"""The machine of a reply without streaming, as conversations."""

import pytest

from headrace.model.outcome import End, Failure, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.settings import StreamSettings
from headrace.model.wire import BodyEnd
from headrace.relay.reply import FAULT_S, HOLD_BYTES, Judge, ReplyClock, ReplyMachine
from headrace.relay.state import State, Step
from headrace.relay.trace import Trace

LIMITS = StreamSettings(reply=600.0, stall=120.0, total=3600.0, max_event=200_000)
BAD = Failure(Problem(Kind.UPSTREAM_BAD_REPLY, "HTML"))
GOOD = Outcome(End.COMPLETED, "stop")


class Talk:
    """One machine; keeps what it was judged by and what it concluded from."""

    def __init__(self, failure: Failure | None = None) -> None:
        self.machine = ReplyMachine(LIMITS, ReplyClock(LIMITS, 0.0), Trace())
        self.judged: list[tuple[int, bool]] = []
        self.concluded: list[bytes | None] = []
        self.failure = failure

    def begin(self, now: float = 0.0) -> "Talk":
        self.machine.begin(now)
        return self

    def answered(self, now: float = 0.0, fault: bool = False) -> "Talk":
        self.machine.answered(self._judge(), self._conclude, fault, now)
        assert self.step == (Step() if fault else None), "`due` has come nearer"
        return self

    def _judge(self) -> Judge:
        def judge(body: bytes, whole: bool) -> Failure | None:
            self.judged.append((len(body), whole))
            return self.failure

        return judge

    def _conclude(self, body: bytes | None) -> Outcome:
        self.concluded.append(body)
        return GOOD

    @property
    def step(self) -> Step | None:
        step, self.machine.step = self.machine.step, None
        return step

    def feed(self, data: bytes, now: float = 0.0) -> bytes:
        return self.machine.feed(data, now)

    def over(self, how: BodyEnd = BodyEnd.FRAMED, now: float = 0.0) -> Step | None:
        self.machine.upstream_end(how, now)
        return self.step

    def tick(self, now: float) -> Step | None:
        self.machine.tick(now, drained=True)
        return self.step


def test_a_short_reply_is_held_and_judged_whole() -> None:
    talk = Talk().begin().answered()
    assert talk.feed(b"{") == b"" and talk.feed(b"}") == b""
    assert talk.machine.held == 2
    assert talk.over() == Step(open=True, write=b"{}", ended=True)
    assert talk.judged == [(2, True)] and talk.concluded == [b"{}"]
    assert talk.machine.outcome is GOOD and talk.machine.held == 0
    assert talk.machine.trace.released == talk.machine.trace.received == 2


@pytest.mark.parametrize("body", [b"", b"{}", b"x" * (HOLD_BYTES + 1)])
def test_a_reply_that_is_all_here_goes_the_same_way(body: bytes) -> None:
    talk = Talk().begin().answered(fault=not body)
    talk.machine.whole(body, 1.0)
    assert talk.step == Step(open=True, write=body, ended=True)
    assert talk.judged == [(len(body), True)] and talk.concluded == [body]
    assert talk.machine.outcome is GOOD and not talk.machine.takes_whole and talk.machine.held == 0
    trace = talk.machine.trace
    assert (trace.released, trace.received, trace.events) == (len(body), len(body), 1)


def test_a_bad_reply_that_is_all_here_fails_the_attempt() -> None:
    talk = Talk(BAD).begin().answered()
    talk.machine.whole(b"{}", 1.0)
    assert talk.step == Step(failed=BAD)
    assert talk.machine.state is State.WAITING and talk.machine.trace.released == 0
    assert talk.begin().answered().machine.takes_whole, "the next attempt begins anew"


def test_a_long_reply_is_judged_by_its_beginning() -> None:
    talk = Talk().begin().answered()
    assert talk.feed(b"x" * (HOLD_BYTES - 1)) == b""
    assert talk.feed(b"yz") == b"" and talk.step == Step(write=b"x" * (HOLD_BYTES - 1) + b"yz")
    assert talk.judged == [(HOLD_BYTES + 1, False)]
    assert talk.feed(b"w") == b"w"
    assert talk.machine.state is State.COMMITTED
    assert talk.machine.held == HOLD_BYTES + 2, "the copy is the worker's memory too"
    assert talk.over() == Step(ended=True)
    assert talk.machine.held == 0
    assert talk.concluded == [b"x" * (HOLD_BYTES - 1) + b"yzw"]


def test_an_empty_reply_is_a_reply() -> None:
    """A 404 without a body is relayed as it came: its head must go out."""
    talk = Talk().begin().answered(fault=True)
    assert talk.over() == Step(open=True, ended=True)
    assert talk.machine.outcome is GOOD


def test_a_bad_reply_fails_the_attempt() -> None:
    talk = Talk(BAD).begin().answered()
    talk.feed(b"<html>")
    assert talk.over() == Step(failed=BAD)
    assert talk.machine.state is State.WAITING
    long = Talk(BAD).begin().answered()
    assert long.feed(b"x" * HOLD_BYTES) == b""
    assert long.step == Step(failed=BAD)


def test_the_next_attempt_begins_anew() -> None:
    talk = Talk(BAD).begin().answered(fault=True)
    talk.feed(b"busy")
    talk.over()
    talk.failure = None
    talk.begin(5.0)
    assert talk.tick(604.9) is None
    step = talk.tick(605.0)
    assert step is not None and step.failed is not None, "it is no error reply that is waited for"
    assert step.failed.problem.kind is Kind.UPSTREAM_TIMEOUT and step.failed.final
    talk.begin(700.0).answered(701.0)
    talk.feed(b"{}", 702.0)
    assert talk.over(now=703.0) == Step(open=True, write=b"{}", ended=True)
    assert talk.concluded == [b"{}"]


def test_reply_bounds_the_first_byte_of_each_attempt() -> None:
    """It is not tried again, the work may be done."""
    talk = Talk().begin(100.0)
    assert talk.machine.due() == 700.0
    talk.answered(650.0)
    assert talk.tick(699.0) is None
    step = talk.tick(700.0)
    assert step is not None and step.failed is not None
    assert step.failed.final and step.failed.problem.http_status == 504


def test_stall_bounds_the_gaps() -> None:
    talk = Talk().begin().answered()
    talk.feed(b"{", 10.0)
    assert talk.machine.due() == 130.0
    step = talk.tick(130.0)
    assert step is not None and step.failed is not None
    assert step.failed.final and step.failed.problem.kind is Kind.UPSTREAM_STALLED


def test_a_stall_behind_the_commit_aborts() -> None:
    talk = Talk().begin().answered()
    talk.feed(b"x" * HOLD_BYTES, 10.0)
    assert talk.step == Step(write=b"x" * HOLD_BYTES) and talk.tick(129.0) is None
    assert talk.tick(130.0) == Step(ended=True, abort=True)
    assert talk.machine.outcome is not None and talk.machine.outcome.end is End.STALLED


def test_our_own_pause_is_no_silence() -> None:
    talk = Talk().begin().answered()
    talk.machine.clock.pause(1.0)
    talk.machine.clock.resume(1.0)
    talk.feed(b"x" * HOLD_BYTES, 10.0)
    assert talk.step == Step(write=b"x" * HOLD_BYTES)
    talk.machine.clock.pause(11.0)
    assert talk.machine.due() == 3600.0 and talk.tick(500.0) is None
    talk.machine.clock.resume(500.0)
    assert talk.machine.due() == 620.0


def test_total() -> None:
    talk = Talk().begin(3500.0)
    assert talk.machine.due() == 3600.0
    assert talk.tick(3600.0) == Step(ended=True), "before the commit the refusal is an HTTP status"
    late = Talk().begin(3000.0).answered(3000.0)
    late.feed(b"x" * HOLD_BYTES, 3599.0)
    assert late.tick(3600.0) == Step(ended=True, abort=True)
    assert late.machine.outcome is not None and late.machine.outcome.reason == "total"


@pytest.mark.parametrize("failure", [None, BAD])
def test_an_error_reply_is_not_waited_for_long(failure: Failure | None) -> None:
    talk = Talk(failure).begin().answered(fault=True, now=5.0)
    talk.feed(b'{"error"', 6.0)
    assert talk.machine.due() == 5.0 + FAULT_S
    step = talk.tick(5.0 + FAULT_S)
    assert talk.judged == [(8, True)]
    if failure is None:
        assert step == Step(open=True, write=b'{"error"'), "it is not over: its own framing goes on"
        assert talk.machine.outcome is None
    else:
        assert step == Step(failed=BAD)


def slow_fault(began: bytes = b'{"error"') -> Talk:
    """An error reply that is for the client, and was passed on before its end."""
    talk = Talk().begin().answered(fault=True)
    if began:
        talk.feed(began, 1.0)
    assert talk.tick(FAULT_S) == Step(open=True, write=began)
    assert talk.concluded == []
    return talk


def test_a_slow_error_reply_is_passed_on_to_its_end() -> None:
    talk = slow_fault()
    assert talk.feed(b":{}}", 3.0) == b":{}}"
    assert talk.over(now=4.0) == Step(ended=True)
    assert talk.concluded == [b'{"error":{}}'] and talk.machine.outcome is GOOD


def test_a_slow_error_reply_that_is_cut_is_aborted() -> None:
    talk = slow_fault()
    assert talk.over(BodyEnd.CUT, 3.0) == Step(ended=True, abort=True)
    assert talk.machine.outcome is not None and talk.machine.outcome.end is End.INTERRUPTED


@pytest.mark.parametrize(("began", "since"), [(b"{", 1.0), (b"", FAULT_S)])
def test_a_slow_error_reply_that_stalls_is_aborted(began: bytes, since: float) -> None:
    talk = slow_fault(began)
    assert talk.machine.due() == since + LIMITS.stall
    assert talk.tick(since + LIMITS.stall) == Step(ended=True, abort=True)
    assert talk.machine.outcome is not None and talk.machine.outcome.end is End.STALLED


def test_a_slow_error_reply_behind_a_promised_stream_is_the_streams_to_tell() -> None:
    machine = ReplyMachine(LIMITS, ReplyClock(LIMITS, 0.0), Trace(), promised=True)
    machine.begin(0.0)
    machine.answered(lambda body, whole: None, lambda body: GOOD, True, 0.0)
    machine.feed(b"{", 1.0)
    machine.tick(FAULT_S, drained=True)
    assert machine.step is not None and machine.step.failed is not None and not machine.step.write


def test_a_cut_before_the_commit() -> None:
    """502 and no other attempt: the work may be done."""
    talk = Talk().begin().answered()
    talk.feed(b"{")
    step = talk.over(BodyEnd.CUT)
    assert step is not None and step.failed is not None and step.failed.final
    assert step.failed.problem.http_status == 502 and talk.judged == []


def test_a_cut_of_an_error_reply() -> None:
    """What came of it decides whether it may be tried elsewhere; else it is given and aborted."""
    talk = Talk(BAD).begin().answered(fault=True)
    assert talk.over(BodyEnd.CUT) == Step(failed=BAD)
    given = Talk().begin().answered(fault=True)
    given.feed(b"no")
    assert given.over(BodyEnd.CUT) == Step(write=b"no", ended=True, abort=True)


def test_a_cut_behind_the_commit_aborts() -> None:
    talk = Talk().begin().answered()
    talk.feed(b"x" * HOLD_BYTES)
    assert talk.over(BodyEnd.CUT) == Step(ended=True, abort=True)
    assert talk.machine.outcome is not None and talk.machine.outcome.end is End.INTERRUPTED


def test_the_client_leaves() -> None:
    gone = Outcome(End.CLIENT_GONE, "client left")
    talk = Talk().begin().answered()
    talk.machine.end(gone, 1.0)
    assert talk.step == Step(ended=True)
    talk.machine.end(Outcome(End.STOPPED, "drain"), 2.0)
    assert talk.machine.outcome is gone, "the first ending wins"
    assert talk.feed(b"x") == b"" and talk.over() is None and talk.tick(1e9) is None


def test_a_body_too_large_to_keep() -> None:
    talk = Talk().begin().answered()
    for _ in range(4):
        talk.feed(b"x" * 65536)
    talk.feed(b"y")
    talk.over()
    assert talk.concluded == [None]
    assert talk.machine.trace.released == 4 * 65536 + 1


def test_the_worker_holds_too_much() -> None:
    talk = Talk().begin().answered()
    talk.feed(b"abc")
    assert talk.machine.pass_plainly(1.0) == b"abc"
    assert talk.judged == [(3, False)] and talk.machine.state is State.COMMITTED
    bad = Talk(BAD).begin().answered()
    bad.feed(b"abc")
    assert bad.machine.pass_plainly(1.0) == b"" and bad.step == Step(failed=BAD)


def test_the_copy_goes_where_the_worker_holds_too_much() -> None:
    """Before the commit and behind it; what is relayed is the same."""
    early = Talk().begin().answered()
    early.feed(b"abc")
    early.machine.pass_plainly(1.0)
    late = Talk().begin().answered()
    late.feed(b"x" * HOLD_BYTES)
    assert late.machine.held == HOLD_BYTES and late.machine.pass_plainly(1.0) == b""
    assert late.judged == [(HOLD_BYTES, False)], "it is judged once"
    for talk in (early, late):
        assert talk.machine.held == 0
        assert talk.feed(b"def", 2.0) == b"def" and talk.machine.held == 0
        talk.over()
        assert talk.concluded == [None]


def test_at_rest_only_total_runs() -> None:
    talk = Talk().begin()
    talk.machine.rest()
    assert talk.machine.due() == 3600.0 and talk.tick(3599.0) is None
