"""Every recorded stream of Messages, whole, byte by byte and cut at every offset: bytes, usage and end are the same."""

from dataclasses import replace
from hashlib import sha256

import pytest

from headrace.model.outcome import End
from headrace.model.wire import BodyEnd
from tests.relay.driver import PATIENT, Client, cut_out
from tests.wire.messages_streams import STREAMS, MessagesClient, Recorded, Story, relay
from tests.wire.reference import BOM, blocks, boundaries

BY_NAME = [pytest.param(stream, id=stream.name) for stream in STREAMS]
ENDS = [
    pytest.param(stream, how, id=f"{stream.name}-{how.value}")
    for stream in STREAMS
    for how in BodyEnd
    if how is not BodyEnd.CLOSED or stream.name in ("plain", "cr", "failed")
]


def assert_faithful(stream: Recorded, client: Client) -> None:
    """All that the client got is the stream, and what is known of it is the same however it came."""
    assert client.body == stream.delivered
    assert (client.outcome.end, client.outcome.reason) == (stream.end, stream.reason)
    observer = client.meter.observer
    assert (observer.usage, observer.served_model) == (stream.usage, stream.served)
    assert observer.usage_is_final is (stream.end is not End.FAILED)
    trace = client.trace
    assert trace.hash_in() == sha256(client.relayed).hexdigest()
    assert (trace.received, trace.removed) == (len(stream.data), len(stream.removed))
    assert client.inserted == ([stream.lacks] if stream.lacks else [])
    assert client.meter.unreadable == 0


def test_the_streams_are_what_they_are_called() -> None:
    """A checkout that converts line ends would make half of these tests say nothing."""
    by_name = {stream.name: stream.data for stream in STREAMS}
    assert b"\r" not in by_name["plain"] and b"\n" not in by_name["cr"]
    assert by_name["crlf"].count(b"\r\n") == by_name["crlf"].count(b"\n")
    assert b"event:" not in by_name["unnamed"]
    for character in "é北😀\u2028\u0085":
        assert character.encode() in by_name["utf8"]


@pytest.mark.parametrize("stream", BY_NAME)
def test_whole_and_byte_by_byte(stream: Recorded) -> None:
    assert_faithful(stream, relay(stream, [stream.data]))
    assert_faithful(stream, relay(stream, blocks(stream.data)))
    client = MessagesClient().attempt()
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
    """A silence behind every read: whatever is inserted stands between events and changes nothing."""
    size = {"bytes": 1, "sevens": 7}.get(reads, 0)
    pieces = [stream.data[at : at + size] for at in range(0, len(stream.data), size)] if size else blocks(stream.data)
    eager = replace(PATIENT, keepalive=0.001, early_open=0.001, early_open_cold=0.001)
    client = MessagesClient(eager).attempt()
    now = 0.0
    for piece in pieces:
        client.feed(piece, now := now + 0.001)
        client.tick(now := now + 0.001)
        client.tick(now)
    client.over(now=now).check()
    assert client.relayed + stream.lacks == stream.delivered
    assert client.outcome.end is stream.end
    ours = [part for part in client.inserted if part != stream.lacks]
    assert ours and {part.strip() for part in ours} == {b": ka"}
    assert not stream.name.startswith("ids") or b": ka\n" in ours
    wire = client.trace.wire(0.0, "", 0)
    if len(wire.insertions) < 200:
        assert cut_out(client.body, wire.insertions) + stream.lacks == stream.delivered


def expectation(stream: Recorded, offset: int, framed: bool) -> tuple[bytes, Story, bytes]:
    """By the plain reading: what is delivered of the first `offset` bytes, what a client would know, and the bytes of a
    last event that lacks its blank line."""
    text = stream.data[:offset]
    text = b"" if BOM.startswith(text) else text.removeprefix(BOM)
    known = max((end for end in stream.ends if end <= len(text)), default=0)
    border = known + max(boundaries(text[known:]), default=0)
    story = Story()
    for block in blocks(text[:border]):
        story.read(block)
    rest = text[border:]
    return text[:border], story, rest if framed and rest and story.read(rest) else b""


@pytest.mark.parametrize(("stream", "how"), ENDS)
def test_ended_at_every_offset(stream: Recorded, how: BodyEnd) -> None:
    """Cut, or ended by the framing, at every offset: good behind message_stop, else exactly the documented bytes."""
    for offset in range(len(stream.data) + 1):
        client = relay(stream, [stream.data[:offset]] if offset else [], how)
        delivered, story, repaired = expectation(stream, offset, how is BodyEnd.FRAMED)
        where = (offset, stream.data[max(0, offset - 30) : offset])
        if not story.events:
            kinds = [failure.problem.kind.value for failure in client.failures]
            assert kinds == ["upstream_unreachable" if how is BodyEnd.CUT else "upstream_bad_reply"], where
            assert client.body == b"", where
            continue
        assert client.relayed == delivered + repaired, where
        rest = client.body[len(client.relayed) :]
        assert client.body == client.relayed + rest, where
        if repaired:
            lacking = len(rest) - len(rest.lstrip(b"\r\n"))
            assert boundaries(client.body[: len(client.relayed) + lacking])[-1] == len(client.relayed) + lacking, where
            rest = rest[lacking:]
        if story.done or story.failed:
            assert rest == b"", where
            assert client.outcome.end is stream.end, where
        else:
            assert client.outcome.end is End.INTERRUPTED, where
            assert rest == stream.error, where
        client.check()
