"""Every recorded stream of Gemini, whole, byte by byte and cut at every offset: bytes, usage and end are the same."""

import json
from dataclasses import replace
from hashlib import sha256

import pytest

from headrace.model.outcome import End
from headrace.model.wire import BodyEnd
from tests.relay.driver import PATIENT, Client, cut_out
from tests.wire.gemini_streams import ARRAYS, STREAMS, GeminiClient, Recorded, RecordedArray, Story, is_comment, relay
from tests.wire.reference import BOM, blocks, boundaries

BY_NAME = [pytest.param(stream, id=stream.name) for stream in STREAMS]
ARRAYS_BY_NAME = [pytest.param(array, id=array.name) for array in ARRAYS]
ENDS = [
    pytest.param(stream, how, id=f"{stream.name}-{how.value}")
    for stream in STREAMS
    for how in BodyEnd
    if how is not BodyEnd.CLOSED or stream.name in ("plain", "no_finish", "continuation", "blocked", "cr")
]


def assert_faithful(stream: Recorded, client: Client) -> None:
    """All that the client got is the stream, and what is known of it is the same however it came."""
    assert client.body == stream.delivered
    assert (client.outcome.end, client.outcome.reason) == (stream.end, stream.reason)
    observer = client.meter.observer
    assert (observer.usage, observer.usage_is_final) == (stream.usage, stream.final)
    trace = client.trace
    assert trace.hash_in() == sha256(client.relayed).hexdigest()
    assert (trace.received, trace.removed) == (len(stream.data), sum(map(len, stream.removed)))
    assert client.inserted == ([stream.lacks] if stream.lacks else [])
    assert client.meter.unreadable == 0


def test_the_streams_are_what_they_are_called() -> None:
    """A checkout that converts line ends would make half of these tests say nothing."""
    by_name = {stream.name: stream.data for stream in STREAMS}
    assert b"\r" not in by_name["lf"] and b"\n" not in by_name["cr"]
    assert by_name["plain"].count(b"\r\n") == by_name["plain"].count(b"\n") > 0
    assert by_name["bom"].startswith(BOM)
    assert sum(map(is_comment, blocks(by_name["comments"]))) == 4
    for character in "é北😀\u2028\u0085":
        assert character.encode() in by_name["utf8"]


@pytest.mark.parametrize("stream", BY_NAME)
def test_whole_and_byte_by_byte(stream: Recorded) -> None:
    assert_faithful(stream, relay(stream, [stream.data]))
    assert_faithful(stream, relay(stream, blocks(stream.data)))
    client = GeminiClient(PATIENT)
    client.attempt()
    given = b""
    for position in range(len(stream.data)):
        client.feed(stream.data[position : position + 1])
        if len(client.relayed) > len(given):
            given = client.relayed
            assert boundaries(given)[-1] == len(given)
    assert_faithful(stream, client.over())


@pytest.mark.parametrize("stream", BY_NAME)
def test_cut_in_two_at_every_offset(stream: Recorded) -> None:
    for offset in range(1, len(stream.data)):
        assert_faithful(stream, relay(stream, [stream.data[:offset], stream.data[offset:]]))


@pytest.mark.parametrize("reads", ["bytes", "events", "sevens"])
@pytest.mark.parametrize("stream", BY_NAME)
def test_keepalives_at_every_chance(stream: Recorded, reads: str) -> None:
    """A silence behind every read: only doubled line ends are put in, between events, and nothing else changes."""
    size = {"bytes": 1, "sevens": 7}.get(reads, 0)
    pieces = [stream.data[at : at + size] for at in range(0, len(stream.data), size)] if size else blocks(stream.data)
    eager = replace(PATIENT, keepalive=0.001, early_open=0.001, early_open_cold=0.001)
    client = GeminiClient(eager)
    client.attempt()
    now = 0.0
    for piece in pieces:
        client.feed(piece, now := now + 0.001)
        client.tick(now := now + 0.001)
        client.tick(now)
    client.over(now=now).check()
    assert client.relayed + stream.lacks == stream.delivered
    assert client.outcome.end is stream.end
    ours = [part for part in client.inserted if part != stream.lacks]
    assert ours and set(ours) <= {b"\r\n\r\n", 2 * stream.line_end}
    wire = client.trace.wire(0.0, "", 0)
    if len(wire.insertions) < 200:
        assert cut_out(client.body, wire.insertions) + stream.lacks == stream.delivered


def expectation(stream: Recorded, offset: int, framed: bool) -> tuple[bytes, Story, bytes]:
    """By the plain reading: what is delivered of the first `offset` bytes, what a client would know, and the bytes of a
    last event that lacks its blank line."""
    text = stream.data[:offset]
    text = b"" if BOM.startswith(text) else text.removeprefix(BOM)
    border = max(boundaries(text), default=0)
    story = Story()
    delivered = b""
    for block in blocks(text[:border]) if border else ():
        story.read(block)
        delivered += b"" if is_comment(block) else block
    rest = text[border:]
    return delivered, story, rest if framed and rest and story.read(rest) else b""


@pytest.mark.parametrize(("stream", "how"), ENDS)
def test_ended_at_every_offset(stream: Recorded, how: BodyEnd) -> None:
    """Cases B042, B043, B100, B101: a framed end between events is good, a cut is not unless nothing was missing; then
    one whole error event in the stream's line ending."""
    for offset in range(len(stream.data) + 1):
        client = relay(stream, [stream.data[:offset]] if offset else [], how)
        delivered, story, repaired = expectation(stream, offset, how is BodyEnd.FRAMED)
        where = (offset, stream.data[max(0, offset - 40) : offset])
        if not story.events:
            kinds = [failure.problem.kind.value for failure in client.failures]
            assert kinds == ["upstream_unreachable" if how is BodyEnd.CUT else "upstream_bad_reply"], where
            assert client.body == b"", where
            continue
        assert client.relayed == delivered + repaired, where
        rest = client.body[len(client.relayed) :]
        if repaired:
            lacking = len(rest) - len(rest.lstrip(b"\r\n"))
            assert boundaries(client.body[: len(client.relayed) + lacking])[-1] == len(client.relayed) + lacking, where
            rest = rest[lacking:]
        if story.good(how):
            assert rest == b"", where
            assert client.outcome.end is not End.INTERRUPTED, where
        else:
            assert client.outcome.end is End.INTERRUPTED, where
            assert rest.startswith(b'data: {"error":{"code":503,"message":"'), where
            assert rest.endswith(b'","status":"UNAVAILABLE"}}' + 2 * stream.line_end), where
        client.check()


# ---- arrays


def assert_whole_array(array: RecordedArray, client: Client) -> None:
    assert client.body == client.relayed == array.data
    assert (client.outcome.end, client.outcome.reason) == (array.end, array.reason)
    usage = client.meter.observer.usage
    assert (usage.input_total, usage.output_total) == array.tokens
    assert client.all_said[-1] == ("end", array.end.value.encode())
    client.check()


@pytest.mark.parametrize("array", ARRAYS_BY_NAME)
def test_an_array(array: RecordedArray) -> None:
    """Case B103, cut in two at every offset, and byte by byte."""
    assert len(json.loads(array.data)) == array.elements
    assert_whole_array(array, relay(array, [array.data]))
    assert_whole_array(array, relay(array, [bytes((byte,)) for byte in array.data]))
    for offset in range(1, len(array.data)):
        assert_whole_array(array, relay(array, [array.data[:offset], array.data[offset:]]))


@pytest.mark.parametrize("array", ARRAYS_BY_NAME)
def test_an_array_is_relayed_element_by_element(array: RecordedArray) -> None:
    """Each element goes out in the call that brings its last byte."""
    client = GeminiClient(PATIENT, array=True)
    client.attempt()
    decoder = json.JSONDecoder()
    text = array.data.decode()
    at, seen = text.index("[") + 1, 0
    for _ in range(array.elements):
        start = text.index("{", at)
        _, at = decoder.raw_decode(text, start)
        client.feed(text[seen:at].encode())
        seen = at
        assert client.relayed == text[:at].encode()
    client.feed(text[seen:].encode())
    assert_whole_array(array, client.over())


@pytest.mark.parametrize("how", list(BodyEnd), ids=lambda how: how.value)
@pytest.mark.parametrize("array", ARRAYS_BY_NAME)
def test_an_array_ended_early(array: RecordedArray, how: BodyEnd) -> None:
    """Without its bracket an array is no JSON: the connection is aborted, nothing is appended. One that failed by
    itself, or is closed, ends as it came."""
    closed = array.data.rindex(b"]") + 1
    failed = array.data.find(b'"UNAVAILABLE"}}')
    first = array.data.index(b"}", array.data.index(b'"responseId"')) + 1
    for offset in range(1, closed):
        client = relay(array, [array.data[:offset]], how)
        assert array.data.startswith(client.body), offset
        assert client.inserted == [], offset
        if offset < first:
            assert client.body == b"" and len(client.failures) == 1, offset
        elif 0 < failed < offset - len(b'"UNAVAILABLE"}'):
            assert client.all_said[-1] == ("end", b"failed"), offset
        else:
            assert client.all_said[-1] == ("abort", b"interrupted"), offset


def test_no_keepalive_in_an_array() -> None:
    eager = replace(PATIENT, keepalive=0.001)
    client = GeminiClient(eager, array=True)
    client.attempt()
    now = 0.0
    for byte in ARRAYS[0].data[:-3]:
        client.feed(bytes((byte,)), now := now + 1)
        if client.machine.head_sent:
            due = client.machine.due()
            client.tick(due)
            assert client.machine.due() > due, "it looks again and again"
    client.feed(ARRAYS[0].data[-3:], now)
    assert_whole_array(ARRAYS[0], client.over(now=now))
    assert client.trace.keepalives == 0
