"""The meter sees everything, changes nothing, and never raises."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.metering.meter import Meter
from headrace.model.outcome import End, Outcome
from headrace.model.wire import BodyEnd, Sight
from headrace.protocols.chat_observer import ChatObserver
from tests.relay.driver import DONE, ERROR, FINISH, USAGE, data


class Broken(ChatObserver):
    """Fails on everything."""

    def observe(self, event: bytes) -> Sight:
        """Fail."""
        raise KeyError("odd")

    def observe_body(self, body: bytes) -> Outcome:
        """Fail."""
        raise RecursionError


def test_it_passes_on_what_the_observer_says() -> None:
    meter = Meter(ChatObserver(False))
    assert meter.observe(b"id: 1\n" + data()) is Sight.PROGRESS
    assert meter.saw_id and meter.problem is None
    finished = [meter.finished, meter.observe(FINISH), meter.finished]
    assert finished == [False, Sight.FINISHED, True]
    assert meter.ended(BodyEnd.CUT) == Outcome(End.COMPLETED, "stop")
    failed = Meter(ChatObserver(False))
    assert failed.observe(ERROR) is Sight.ERROR and failed.problem is not None


def test_an_event_that_cannot_be_read_is_progress() -> None:
    meter = Meter(Broken(False))
    assert meter.observe(data()) is Sight.PROGRESS and meter.observe(USAGE) is Sight.PROGRESS
    assert meter.unreadable == 2


def test_a_body_that_cannot_be_read() -> None:
    meter = Meter(Broken(False))
    assert meter.observe_body(b"{}") == Outcome(End.COMPLETED, "unreadable")
    assert meter.unreadable == 1
    assert meter.observe_body(None).reason == "too large to read"
    assert meter.unreadable == 2


def test_a_body() -> None:
    body = b'{"choices":[{"index":0,"message":{"content":"Hi"},"finish_reason":"length"}],"usage":{"prompt_tokens":5}}'
    meter = Meter(ChatObserver(False))
    assert meter.observe_body(body) == Outcome(End.INCOMPLETE, "length")
    assert meter.observer.usage.input_total == 5 and meter.unreadable == 0
    assert meter.observe(DONE) is Sight.TERMINAL, "events are read as before"


@pytest.mark.parametrize(("coding", "wbits"), [(b"gzip", 31), (b"deflate", 15)])
def test_an_encoded_body_is_read_from_a_copy(coding: bytes, wbits: int) -> None:
    machine = zlib.compressobj(wbits=wbits)
    body = machine.compress(b'{"usage":{"prompt_tokens":5}}') + machine.flush()
    meter = Meter(ChatObserver(False))
    assert meter.observe_body(body, coding).end is End.COMPLETED
    assert meter.observer.usage.input_total == 5
    assert meter.observe_body(b"no gzip", coding) == Outcome(End.COMPLETED, "unreadable")
    assert meter.observe_body(body, b"unheard-of") == Outcome(End.COMPLETED, "unreadable")
    assert meter.unreadable == 2


PIECES = [
    b"data: ", b"{", b"}", b"[", b"]",
    b'"', b",", b":", b"\n", b"\r", b"\xff", b"-", b"0", b"1e999", b"\\ud800", b"NaN",
    b"null", b"true", b"[DONE]", b'"choices":', b'"usage":', b'"index":', b'"error":', b'"delta":', b'"content":',
    b'"finish_reason":',
]  # fmt: skip


@given(st.lists(st.sampled_from(PIECES), max_size=25).map(b"".join))
def test_nothing_makes_it_raise(block: bytes) -> None:
    meter = Meter(ChatObserver(True))
    event = block + b"\n\n"
    assert isinstance(meter.observe(event), Sight)
    assert isinstance(meter.observe_body(block), Outcome)
    assert isinstance(meter.ended(BodyEnd.FRAMED), Outcome)
    assert meter.unreadable == 0, "the observer itself stands all of it"
