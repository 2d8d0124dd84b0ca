"""Every recorded stream, whole, byte by byte and cut at every offset: the same bytes, the same usage, the same end."""

import random
import re
from dataclasses import replace
from hashlib import sha256
from itertools import pairwise

import pytest

from headrace.model.outcome import End
from headrace.model.wire import BodyEnd
from headrace.relay.state import State
from tests.relay.driver import PATIENT, Client, cut_out
from tests.wire.reference import BOM, Story, blocks, boundaries, boundaries_within, payload
from tests.wire.streams import LARGE, STREAMS, Recorded

BY_NAME = [pytest.param(stream, id=stream.name) for stream in STREAMS]
LARGE_BY_NAME = [pytest.param(stream, id=stream.name) for stream in LARGE]


def relay(stream: Recorded, pieces: list[bytes], how: BodyEnd = BodyEnd.FRAMED) -> Client:
    client = Client(PATIENT, added_usage=stream.added_usage).attempt()
    for piece in pieces:
        client.feed(piece)
    return client.over(how)


def assert_faithful(stream: Recorded, client: Client) -> None:
    """All that the client got is the stream, and what is known of it is the same however it came."""
    assert client.body == stream.delivered
    assert (client.outcome.end, client.outcome.reason) == (stream.end, stream.reason)
    observer = client.meter.observer
    assert (observer.usage, observer.usage_is_final) == (stream.usage, stream.final)
    trace = client.trace
    assert trace.hash_in() == sha256(client.relayed).hexdigest()
    assert trace.received == len(stream.data)
    assert trace.removed == sum(map(len, stream.removed))
    assert trace.released + trace.removed == trace.received
    assert client.inserted == ([stream.lacks] if stream.lacks else [])
    assert trace.repaired == len(stream.lacks)
    assert client.meter.unreadable == 0


def test_the_streams_are_what_they_are_called() -> None:
    """A checkout that converts line ends would make half of these tests say nothing."""
    by_name = {stream.name: stream.data for stream in (*STREAMS, *LARGE)}
    assert len(by_name) >= 12
    assert b"\r" not in by_name["plain"] and b"\n" not in by_name["cr"]
    assert by_name["crlf"].count(b"\r\n") == by_name["crlf"].count(b"\n")
    assert by_name["bom"].startswith(BOM)
    assert max(map(len, by_name["huge"].split(b"\n"))) > 3_000_000
    for character in "é北😀\u2028\u0085":
        assert character.encode() in by_name["utf8"]


@pytest.mark.parametrize("stream", [*BY_NAME, *LARGE_BY_NAME])
def test_whole(stream: Recorded) -> None:
    assert_faithful(stream, relay(stream, [stream.data]))


@pytest.mark.parametrize("stream", BY_NAME)
def test_event_by_event(stream: Recorded) -> None:
    """One event in one read, as it mostly comes: each goes out in the call that brought it."""
    client = Client(PATIENT, added_usage=stream.added_usage).attempt()
    delivered = b""
    withheld = len(b"".join(stream.removed))
    for block in blocks(stream.data):
        client.feed(block)
        delivered += block
        committed = client.machine.state is not State.WAITING
        if committed and boundaries(delivered)[-1:] == [len(delivered)]:
            assert len(delivered) - len(client.relayed) <= withheld
    assert_faithful(stream, client.over())


@pytest.mark.parametrize("stream", BY_NAME)
def test_byte_by_byte(stream: Recorded) -> None:
    """One-byte writes. Nothing is ever given out that does not end at an event boundary, but for the LF of a CR."""
    client = Client(PATIENT, added_usage=stream.added_usage).attempt()
    given = b""
    for position in range(len(stream.data)):
        client.feed(stream.data[position : position + 1])
        if len(client.relayed) > len(given):
            given = client.relayed
            assert boundaries(given)[-1] == len(given)
    assert_faithful(stream, client.over())


@pytest.mark.parametrize("stream", LARGE_BY_NAME)
def test_large_in_small_reads(stream: Recorded) -> None:
    generator = random.Random(7)
    pieces, position = [], 0
    while position < len(stream.data):
        size = generator.choice((1, 2, 3, 100, 4096, 65536))
        pieces.append(stream.data[position : position + size])
        position += size
    assert_faithful(stream, relay(stream, pieces))


@pytest.mark.parametrize("stream", BY_NAME)
def test_cut_in_two_at_every_offset(stream: Recorded) -> None:
    for offset in range(1, len(stream.data)):
        assert_faithful(stream, relay(stream, [stream.data[:offset], stream.data[offset:]]))


def places_in_large(stream: Recorded, near: int, seeded: int) -> list[int]:
    """Offsets near event borders, and some at random but always the same."""
    border = borders_of_large(stream)
    close = {end + shift for end in border for shift in range(-near, near + 1)}
    some = random.Random(11).sample(range(1, len(stream.data)), seeded)
    return sorted(place for place in close | set(some) if 0 < place < len(stream.data))


def borders_of_large(stream: Recorded) -> list[int]:
    """The reference is too slow for megabytes; these streams are LF alone, which is checked."""
    assert b"\r" not in stream.data and b"\n\n\n" not in stream.data
    return [match.end() for match in re.finditer(b"\n\n", stream.data)]


@pytest.mark.parametrize("part", range(2))
@pytest.mark.parametrize("stream", LARGE_BY_NAME)
def test_large_cut_in_two(stream: Recorded, part: int) -> None:
    whole = relay(stream, [stream.data])
    assert_faithful(stream, whole)
    for offset in places_in_large(stream, near=8, seeded=500)[part::2]:
        client = Client(PATIENT).attempt()
        sent = client.machine.feed(stream.data[:offset], 0.0) + client.machine.feed(stream.data[offset:], 0.0)
        assert sent == stream.delivered
        assert client.trace.hash_in() == whole.trace.hash_in()
        assert client.meter.observer.usage == stream.usage


# ---- keepalives wherever one may stand


def silences(stream: Recorded, pieces: list[bytes]) -> Client:
    """The stream, with a silence behind every piece that is long enough for a keepalive."""
    eager = replace(PATIENT, keepalive=0.001, early_open=0.001, early_open_cold=0.001)
    client = Client(eager, added_usage=stream.added_usage).attempt()
    now = 0.0
    for piece in pieces:
        now += 0.001
        client.feed(piece, now)
        now += 0.001
        client.tick(now)
        client.tick(now)  # due once, not twice
    return client.over(now=now)


def insertable(stream: Recorded) -> set[int]:
    """The offsets of the delivered bytes at which something of ours may stand: by the reference, where an event has
    ended. A CR that an LF follows is no place; once the stream has shown a CR alone it is (nobody could know)."""
    text = stream.delivered
    allowed = {0, *boundaries(text)}
    lone = next(
        (at for at in range(len(text) - 1) if text[at : at + 1] == b"\r" and text[at + 1 : at + 2] != b"\n"), None
    )
    if lone is not None:
        for start in boundaries(text):
            if start - 2 >= lone and text[start - 2 : start] == b"\r\n":
                allowed.add(start - 1)
    return allowed


@pytest.mark.parametrize("reads", ["bytes", "events", "sevens"])
@pytest.mark.parametrize("stream", BY_NAME)
def test_keepalives_at_every_chance(stream: Recorded, reads: str) -> None:
    if reads == "bytes":
        pieces = [stream.data[at : at + 1] for at in range(len(stream.data))]
    elif reads == "events":
        pieces = blocks(stream.data)
    else:
        pieces = [stream.data[at : at + 7] for at in range(0, len(stream.data), 7)]
    client = silences(stream, pieces)
    assert client.relayed + stream.lacks == stream.delivered
    assert client.outcome.end is stream.end
    ours = [part for part in client.inserted if part != stream.lacks]
    assert ours, "no chance was taken"
    assert client.trace.keepalives == len(ours)
    allowed = insertable(stream)
    upstream_s = 0
    saw_id = False
    terminal = False
    for word, part in client.all_said:
        if word == "write":
            upstream_s += len(part)
            saw_id = saw_id or b"id:" in part
            terminal = terminal or b"[DONE]" in part or b'"code":502' in part
        elif word == "insert" and part != stream.lacks:
            assert upstream_s in allowed, (upstream_s, stream.delivered[upstream_s - 20 : upstream_s + 20])
            assert part == (b": ka\n" if saw_id else b": ka\n\n")
            assert not terminal
    client.check()
    wire = client.trace.wire(0.0, "", 0)
    if len(wire.insertions) < 200:
        assert cut_out(client.body, wire.insertions) + stream.lacks == stream.delivered


# ---- cuts


class Reader:
    """The reference's reading of each prefix of one stream."""

    def __init__(self, stream: Recorded) -> None:
        self.stream = stream
        self.bom = len(BOM) if stream.data.startswith(BOM) else 0
        self.text = stream.data[self.bom :]
        self.ends = boundaries(self.text)

    def read(self, offset: int, framed: bool) -> tuple[bytes, Story, bytes]:
        """Of the first `offset` bytes: what is delivered, what a client would know, and the bytes of a last event that
        lacks its blank line."""
        size = max(0, offset - self.bom)
        ends = boundaries_within(self.text, self.ends, size)
        story = Story()
        delivered = b""
        for start, end in pairwise([0, *ends]):
            block = self.text[start:end]
            story.read(block)
            if not self._is_removed(block):
                delivered += block
        rest = self.text[ends[-1] if ends else 0 : size]
        if not (framed and rest and story.read(rest)):
            return delivered, story, b""
        return delivered, story, b"" if self._is_removed(rest) else rest

    def _is_removed(self, block: bytes) -> bool:
        return self.stream.added_usage and b'"choices":[],"usage":{' in block


def test_the_reading_of_a_prefix() -> None:
    """The short reckoning of boundaries is the plain one."""
    for stream in STREAMS:
        text = stream.data.removeprefix(BOM)
        ends = boundaries(text)
        for size in range(0, len(text) + 1, 5):
            assert boundaries_within(text, ends, size) == boundaries(text[:size])


def assert_ended_honestly(reader: Reader, offset: int, how: BodyEnd) -> None:
    stream = reader.stream
    client = relay(stream, [stream.data[:offset]] if offset else [], how)
    delivered, story, repaired = reader.read(offset, how is BodyEnd.FRAMED)
    where = (offset, stream.data[max(0, offset - 30) : offset])
    if not story.events:
        kind = "upstream_unreachable" if how is BodyEnd.CUT else "upstream_bad_reply"
        assert [failure.problem.kind.value for failure in client.failures] == [kind], where
        assert client.body == b"", where
        return
    body = delivered + repaired
    assert client.relayed == body and client.body.startswith(body), where
    rest = client.body[len(body) :]
    if repaired:
        lacking = len(rest) - len(rest.lstrip(b"\r\n"))
        assert boundaries(repaired + rest[:lacking]) == [len(repaired) + lacking], where
        rest = rest[lacking:]
    if story.good:
        assert rest == b"", where
        assert client.outcome.end in ((End.FAILED,) if story.failed else (stream.end, End.COMPLETED, End.INCOMPLETE)), (
            where
        )
        return
    assert client.outcome.end is End.INTERRUPTED, where
    said = payload(rest)
    assert said is not None and said.startswith('{"error":{"message":"'), where
    assert said.endswith('","type":"server_error","param":null,"code":"upstream_interrupted"}}'), where
    assert boundaries(rest) == [len(rest)], "one event, whole"
    client.check()


@pytest.mark.parametrize("how", [BodyEnd.CUT, BodyEnd.FRAMED, BodyEnd.CLOSED], ids=lambda how: how.value)
@pytest.mark.parametrize("stream", BY_NAME)
def test_ended_at_every_offset(stream: Recorded, how: BodyEnd) -> None:
    """Cut, or ended by the framing, at every offset: good once the stream had its end, else one whole error event."""
    reader = Reader(stream)
    for offset in range(len(stream.data) + 1):
        assert_ended_honestly(reader, offset, how)


@pytest.mark.parametrize("how", [BodyEnd.CUT, BodyEnd.FRAMED], ids=lambda how: how.value)
@pytest.mark.parametrize("stream", LARGE_BY_NAME)
def test_large_ended_early(stream: Recorded, how: BodyEnd) -> None:
    """Near the borders the last event may be whole; anywhere else it is dropped, however large."""
    borders = borders_of_large(stream)
    for offset in places_in_large(stream, near=3, seeded=20):
        client = relay(stream, [stream.data[:offset]], how)
        whole = max((border for border in borders if border <= offset), default=0)
        lacking = min(borders, key=lambda border: abs(border - offset)) - offset
        repaired = how is BodyEnd.FRAMED and 0 < lacking <= 2
        assert client.relayed == stream.data[: offset if repaired else whole]
        if not client.relayed:
            assert client.failures
            continue
        good = client.relayed.count(b'"finish_reason":"stop"') == 1
        assert client.outcome.end is (End.COMPLETED if good else End.INTERRUPTED)
        assert client.body.count(b'{"error":') == (0 if good else 1)
