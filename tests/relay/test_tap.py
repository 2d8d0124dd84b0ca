"""Replies that are passed on as they come: what is relayed, and what is read beside it."""

import gzip
import json

import pytest

from headrace.metering.meter import Meter
from headrace.model.outcome import End, Failure, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.request import ReplyHead
from headrace.model.settings import StreamSettings
from headrace.model.wire import BodyEnd, WireProtocol
from headrace.protocols.passthrough_observer import PassthroughObserver
from headrace.relay import tap as tap_module
from headrace.relay.reply import ReplyClock, ReplyMachine
from headrace.relay.state import State
from headrace.relay.tap import EventTap
from headrace.relay.trace import Trace

STREAM = ReplyHead(200, [(b"content-type", b"text/event-stream")])
AUDIO = ReplyHead(200, [(b"content-type", b"audio/mpeg")])
LIMITS = StreamSettings(reply=2, stall=1)


def usage(count: int) -> bytes:
    return b"data: " + json.dumps({"usage": {"input_tokens": count, "output_tokens": 1}}).encode() + b"\n\n"


def tapped(data: bytes, head: ReplyHead = STREAM, coding: bytes = b"", size: int = 0) -> tuple[Outcome, int | None]:
    meter = Meter(PassthroughObserver(WireProtocol.IMAGES))
    tap = EventTap(meter, head, coding)
    for at in range(0, len(data), size or len(data) or 1):
        tap.feed(data[at : at + (size or len(data))])
    outcome = tap.ended(BodyEnd.FRAMED)
    return outcome, meter.observer.usage.input_total


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize("data", [usage(1) + usage(2), usage(1) + usage(2).rstrip(b"\n"), usage(2) + b": x\n\n"])
def test_the_last_usage_is_read_however_the_bytes_come(data: bytes, size: int) -> None:
    outcome, count = tapped(data, size=size)
    assert (outcome.end, count) == (End.COMPLETED, 2)
    assert tapped(gzip.compress(data), coding=b"gzip", size=size)[1] == 2


@pytest.mark.parametrize(
    ("data", "head", "coding"),
    [
        (usage(1), AUDIO, b""),
        (usage(1), STREAM, b"unknown"),
        (b"no gzip" + usage(1), STREAM, b"gzip"),
        (b"", STREAM, b""),
    ],
)
def test_what_cannot_be_read_is_let_pass(data: bytes, head: ReplyHead, coding: bytes) -> None:
    assert tapped(data, head, coding, size=5)[1] is None


def test_an_event_that_is_too_large_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tap_module, "MOST_HELD_BYTES", 100)
    large = b'data: {"usage":{"input_tokens":1},"b64_json":"' + b"A" * 500 + b'"}\n\n'
    assert tapped(large, size=50)[1] is None
    assert tapped(large + usage(2), size=50)[1] == 2
    assert tapped(large.rstrip(b"\n"), size=50)[1] is None


# ---- the reply machine that passes on


def machine(judged: Failure | None = None, head: ReplyHead = AUDIO) -> ReplyMachine:
    one = ReplyMachine(LIMITS, ReplyClock(LIMITS, 0.0), Trace())
    one.begin(0.0)
    one.answered(lambda body, whole: judged, lambda body: Outcome(End.FAILED, "a copy was kept"), False, 0.0)
    one.pass_on(EventTap(Meter(PassthroughObserver(WireProtocol.AUDIO)), head, b""))
    return one


def end_of(one: ReplyMachine) -> End | None:
    return None if one.outcome is None else one.outcome.end


def test_the_first_byte_commits_and_nothing_is_kept() -> None:
    one = machine()
    assert one.feed(b"a", 0.1) == b"a"
    assert (one.state, one.held) == (State.COMMITTED, 0)
    assert one.feed(b"bc", 0.2) == b"bc"
    one.upstream_end(BodyEnd.FRAMED, 0.3)
    assert one.outcome is not None and (one.outcome.end, one.outcome.reason) == (End.COMPLETED, "end of body")
    assert (one.trace.received, one.trace.released, one.trace.events) == (3, 3, 2)


@pytest.mark.parametrize(
    ("how", "end", "reason"),
    [
        (BodyEnd.CLOSED, End.COMPLETED, "end of connection"),
        (BodyEnd.CUT, End.INTERRUPTED, "upstream was cut"),
    ],
)
def test_how_it_ends(how: BodyEnd, end: End, reason: str) -> None:
    one = machine()
    one.feed(b"a", 0.1)
    one.upstream_end(how, 0.2)
    assert one.outcome is not None and (one.outcome.end, one.outcome.reason) == (end, reason)
    assert one.step is not None and one.step.abort is (how is BodyEnd.CUT)


def test_a_stall_is_told_by_bytes() -> None:
    one = machine()
    one.feed(b"a", 0.1)
    one.tick(1.0, True)
    one.feed(b"b", 1.05)
    one.tick(2.0, True)
    assert end_of(one) is None
    assert one.due() == 2.05
    one.tick(2.05, True)
    assert end_of(one) is End.STALLED
    assert one.step is not None and one.step.abort


def test_a_head_that_is_judged_bad_fails_the_attempt_and_the_next_is_held_again() -> None:
    one = machine(Failure(Problem(Kind.UPSTREAM_BAD_REPLY, "no")))
    assert one.feed(b"a", 0.1) == b""
    assert one.step is not None and one.step.failed is not None
    assert end_of(one) is None
    one.begin(1.0)
    one.answered(lambda body, whole: None, lambda body: Outcome(End.COMPLETED, str(body)), False, 1.0)
    assert one.feed(b"b", 1.1) == b"" and one.held == 1
    one.upstream_end(BodyEnd.FRAMED, 1.2)
    assert one.outcome is not None and one.outcome.reason == "b'b'"


def test_an_empty_body_is_a_whole_reply() -> None:
    one = machine()
    one.upstream_end(BodyEnd.FRAMED, 0.1)
    assert one.outcome is not None and one.outcome.end is End.COMPLETED
    assert one.step is not None and one.step.open
