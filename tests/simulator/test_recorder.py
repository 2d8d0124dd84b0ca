import asyncio
import hashlib

import pytest

from headrace.simulator.recorded import End
from headrace.simulator.recorder import BODY_KEPT, SENT_KEPT, Recorder
from headrace.simulator.request import Request
from headrace.simulator.timeline import Step


def test_the_last_records_are_kept_in_order() -> None:
    recorder = Recorder(2)
    for connection in (1, 1, 2):
        recorder.begin(connection)
    assert [(record.number, record.connection) for record in recorder.requests] == [(2, 1), (3, 2)]
    recorder.clear()
    assert recorder.requests == []
    assert recorder.begin(1).record.number == 4


def test_a_request_is_recorded_as_it_came() -> None:
    recording = Recorder(1).begin(7)
    headers = (("Authorization", "Bearer sk-1"), ("X-A", "1"))
    recording.head(Request("POST", "/v1/x?a", "1.1", headers))
    recording.body(b'{"a":')
    recording.body(b"1}")
    recording.received()
    record = recording.record
    assert (record.method, record.target, record.headers, record.credential) == ("POST", "/v1/x?a", headers, "sk-1")
    assert (record.body, record.body_length, record.json()) == (b'{"a":1}', 7, {"a": 1})
    assert record.body_sha256 == hashlib.sha256(b'{"a":1}').hexdigest()
    assert record.header("x-A") == "1"
    assert record.header("x-b") is None


def test_bodies_are_kept_up_to_a_bound_and_hashed_whole() -> None:
    recording = Recorder(1).begin(1)
    recording.body(b"x" * BODY_KEPT)
    recording.body(b"y" * 10)
    recording.received()
    recording.wrote(Step(0, b"a" * (SENT_KEPT + 5), 1, 3))
    recording.wrote(Step(0, b"bb"))
    recording.end(End.COMPLETE)
    record = recording.record
    assert (len(record.body), record.body_length) == (BODY_KEPT, BODY_KEPT + 10)
    assert record.body_sha256 == hashlib.sha256(b"x" * BODY_KEPT + b"y" * 10).hexdigest()
    assert (len(record.sent), record.bytes_written, record.events_written) == (SENT_KEPT, SENT_KEPT + 7, 1)
    assert record.sent_sha256 == hashlib.sha256(b"a" * (SENT_KEPT + 5) + b"bb").hexdigest()
    assert record.truth.sent == 3


def test_times_are_in_order() -> None:
    recording = Recorder(1).begin(1)
    recording.received()
    recording.head_sent(200)
    recording.wrote(Step(0, b": ping\n\n"))
    assert recording.record.first_event_s is None
    recording.wrote(Step(0, b"x", 1))
    recording.end(End.COMPLETE)
    r = recording.record
    times = [r.received_s, r.head_sent_s, r.first_event_s, r.last_write_s, r.ended_s]
    found = [time for time in times if time is not None]
    assert found == sorted(found)
    assert len(found) == 5
    assert r.started_at > 0


def test_the_first_end_wins() -> None:
    recording = Recorder(1).begin(1)
    recording.end(End.CLIENT_CLOSED, write_failed=True)
    recording.end(End.COMPLETE)
    assert recording.record.end is End.CLIENT_CLOSED
    assert recording.record.closed_early
    assert recording.record.write_failed


@pytest.mark.anyio
async def test_idle_waits_for_the_last_open_exchange() -> None:
    recorder = Recorder(5)
    await recorder.idle()
    first, second = recorder.begin(1), recorder.begin(2)
    waiting = asyncio.ensure_future(recorder.idle())
    first.end(End.COMPLETE)
    await asyncio.sleep(0)
    assert not waiting.done()
    second.end(End.COMPLETE)
    await waiting
