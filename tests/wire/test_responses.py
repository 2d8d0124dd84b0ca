"""Every recorded Responses stream, whole, byte by byte and cut at offsets: the same bytes, the same usage, the same
end."""

import json
from bisect import bisect_right
from dataclasses import replace
from functools import cache
from hashlib import sha256

import pytest
from openai.types.responses import ResponseFailedEvent

from headrace.model.outcome import End
from headrace.model.wire import BodyEnd
from tests.relay.driver import PATIENT
from tests.wire.reference import BOM, blocks, boundaries, payload
from tests.wire.responses_streams import CREATED_AT, FOLDER, ID, MODEL, STREAMS, Recorded, ResponsesClient, told_by

BY_NAME = [pytest.param(stream, id=stream.name) for stream in STREAMS]
THOROUGH = [pytest.param(stream, id=stream.name) for stream in STREAMS if stream.name in ("plain", "cr", "keepalives")]
"""Those that are cut off at every offset; the others only around their events' borders."""


def relay(stream: Recorded, pieces: list[bytes], how: BodyEnd = BodyEnd.FRAMED) -> ResponsesClient:
    client = ResponsesClient(PATIENT)
    client.attempt()
    for piece in pieces:
        client.feed(piece)
    client.over(how)
    return client


def assert_faithful(stream: Recorded, client: ResponsesClient) -> None:
    """All that the client got is the stream, and what is known of it is the same however it came."""
    assert client.body == stream.delivered
    assert (client.outcome.end, client.outcome.reason) == (stream.end, stream.reason)
    observer = client.meter.observer
    assert observer.usage == stream.usage
    assert observer.usage_is_final == stream.usage.known
    said = observer.features.counted()
    assert (said.ascii_bytes, said.other_bytes) == stream.bytes_said
    assert client.trace.hash_in() == sha256(client.relayed).hexdigest()
    assert client.meter.unreadable == 0
    if stream.usage.known:
        assert observer.served_model == MODEL


def near_borders(stream: Recorded) -> list[int]:
    """Offsets around the end of each event."""
    near = {border + shift for border in boundaries(stream.data) for shift in range(-2, 3)}
    return sorted(place for place in near if 0 < place < len(stream.data))


def test_every_file_is_played() -> None:
    """And each is what it is called: a checkout that converts line ends would make half of these tests say nothing."""
    by_name = {stream.name: stream.data for stream in STREAMS}
    assert set(by_name) == {path.stem for path in FOLDER.glob("*.sse")}
    assert b"\r" not in by_name["plain"] and b"\n" not in by_name["cr"]
    assert by_name["crlf"].count(b"\r\n") == by_name["crlf"].count(b"\n")
    assert by_name["bom"].startswith(BOM)
    assert b"\\ud83d" in by_name["surrogates"]


@pytest.mark.parametrize("stream", BY_NAME)
def test_whole(stream: Recorded) -> None:
    assert_faithful(stream, relay(stream, [stream.data]))


@pytest.mark.parametrize("stream", BY_NAME)
def test_event_by_event_and_byte_by_byte(stream: Recorded) -> None:
    assert_faithful(stream, relay(stream, blocks(stream.data)))
    assert_faithful(stream, relay(stream, [stream.data[at : at + 1] for at in range(len(stream.data))]))


@pytest.mark.parametrize("stream", BY_NAME)
def test_cut_in_two(stream: Recorded) -> None:
    """Case B002: read borders around every event's end, and all of them in the last event, which has the usage."""
    last = boundaries(stream.data)[-2] if len(boundaries(stream.data)) > 1 else 1
    for offset in {*near_borders(stream), *range(last, len(stream.data))}:
        assert_faithful(stream, relay(stream, [stream.data[:offset], stream.data[offset:]]))


@pytest.mark.parametrize("stream", BY_NAME)
def test_keepalives_behind_every_event(stream: Recorded) -> None:
    eager = replace(PATIENT, keepalive=0.001, early_open=0.001, early_open_cold=0.001)
    client = ResponsesClient(eager)
    client.attempt()
    now = 0.0
    client.tick(now := now + 0.002)
    for block in blocks(stream.data):
        client.feed(block, now := now + 0.001)
        client.tick(now := now + 0.002)
    client.over(now=now)
    client.check()
    assert client.relayed + stream.lacks == stream.delivered
    assert client.outcome.end is stream.end
    ours = [part for part in client.inserted if part != stream.lacks]
    assert len(ours) > (1 if stream.name != "failed_first" else 0)
    assert set(ours) <= {b": ka\n", b": ka\n\n"}
    assert (b": ka\n" in ours) == (b"id:" in stream.data)


def assert_ended_honestly(stream: Recorded, offset: int, how: BodyEnd, border: int) -> None:
    """Cases B039, B042, B043, B045: whole events up to `border`, then one `response.failed` that continues them."""
    client = relay(stream, [stream.data[:offset]] if offset else [], how)
    where = (offset, how, stream.data[max(0, offset - 40) : offset])
    whole, rest = stream.data[:border].removeprefix(BOM), stream.data[border:offset].removeprefix(BOM)
    told = told_by(whole)
    if how is BodyEnd.FRAMED and rest and told.read(rest):
        whole += rest
    if not told.events:
        assert client.body == b"" and len(client.failures) == 1, where
        return
    assert client.relayed == whole, where
    ours = client.body[len(whole) :]
    assert client.body == whole + ours, where
    if whole.endswith(rest) and rest:
        ours = ours.lstrip(b"\r\n")
    if told.terminal:
        assert ours == b"", where
        assert client.outcome.end is stream.end, where
        return
    assert client.outcome.end is End.INTERRUPTED, where
    assert_continues(ours, told.id, told.number)


@cache
def assert_continues(event: bytes, id: str, number: int | None) -> None:
    """One whole event that says that this response failed."""
    said = payload(event)
    assert boundaries(event) == [len(event)] and said is not None
    value = json.loads(said)
    assert value.get("sequence_number") == (None if number is None else number + 1)
    response = value["response"]
    assert (response["status"], response["output"], response["error"]["code"]) == ("failed", [], "server_error")
    if id:
        assert (response["id"], response["created_at"], response["model"]) == (ID, CREATED_AT, MODEL)
    ResponseFailedEvent.model_validate({"sequence_number": 0, **value})


@pytest.mark.parametrize("how", list(BodyEnd), ids=lambda how: how.value)
@pytest.mark.parametrize("stream", BY_NAME)
def test_ended_around_every_event(stream: Recorded, how: BodyEnd) -> None:
    for offset in (0, *near_borders(stream), len(stream.data)):
        ends = boundaries(stream.data[:offset].removeprefix(BOM))
        bom = len(BOM) if ends and stream.data.startswith(BOM) else 0
        assert_ended_honestly(stream, offset, how, ends[-1] + bom if ends else 0)


@pytest.mark.parametrize("stream", THOROUGH)
def test_cut_off_at_every_offset(stream: Recorded) -> None:
    """Their line ends are of one byte, so that the border before an offset does not depend on what follows it."""
    ends = [0, *boundaries(stream.data)]
    for offset in range(len(stream.data) + 1):
        assert_ended_honestly(stream, offset, BodyEnd.CUT, ends[bisect_right(ends, offset) - 1])


def test_the_error_event_has_the_streams_line_ends() -> None:
    for name, end in (("plain", b"\n"), ("crlf", b"\r\n"), ("cr", b"\r")):
        stream = next(stream for stream in STREAMS if stream.name == name)
        client = relay(stream, blocks(stream.data)[:4], BodyEnd.CUT)
        assert client.inserted[0].startswith(b"event: response.failed" + end + b"data: {")
        assert client.inserted[0].endswith(b"}" + end + end)
