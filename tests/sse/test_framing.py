"""Events are cut where the standard says, however the network cut them; checked against a plain reference."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.sse.framing import BOM, Framer
from tests.wire.reference import blocks, boundaries

PIECES = st.lists(
    st.sampled_from(
        [
            b"\r",
            b"\n",
            b"\r\n",
            b"\n\n",
            b"\r\n\r\n",
            b"data: x",
            b"a",
            b":",
            b"\xef",
            b"\xbb",
            b"\xbf",
            BOM,
            b"\xe5\x8c\x97",
        ]
    ),
    max_size=30,
).map(b"".join)


def chunkings(stream: bytes) -> st.SearchStrategy[list[bytes]]:
    places = st.sets(st.integers(1, max(1, len(stream) - 1)), max_size=12)
    return places.map(lambda cuts: cut(stream, sorted(at for at in cuts if at < len(stream))))


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    bounds = [0, *places, len(stream)]
    return [stream[start:end] for start, end in pairwise(bounds) if start < end]


def frame(pieces: list[bytes]) -> tuple[list[bytes], Framer]:
    """The events; the LF of a CR that ended an event is put back behind it."""
    framer = Framer()
    events: list[bytes] = []
    for piece in pieces:
        new = framer.feed(piece)
        if framer.stray_lf:
            assert events[-1].endswith(b"\r")
            events[-1] += b"\n"
        events += new
    return events, framer


def without_bom(stream: bytes) -> bytes:
    return stream.removeprefix(BOM)


@given(st.data())
def test_any_mixture_in_any_pieces(data: st.DataObject) -> None:
    stream = data.draw(PIECES)
    pieces = data.draw(chunkings(stream))
    events, framer = frame(pieces)
    text = without_bom(stream)
    ends = boundaries(text)
    finished = text[: ends[-1]] if ends else b""
    assert events == blocks(finished)
    assert framer.rest() == text[len(finished) :]
    assert framer.bom is stream.startswith(BOM)
    assert b"".join(events) + framer.rest() == text


@given(st.data())
def test_what_it_knows_of_line_ends(data: st.DataObject) -> None:
    stream = data.draw(PIECES)
    _, framer = frame(data.draw(chunkings(stream)))
    text = without_bom(stream)
    alone = any(text[at : at + 1] == b"\r" and text[at + 1 : at + 2] not in (b"\n", b"") for at in range(len(text)))
    assert framer.lone_cr is alone
    first = next((end for at in range(len(text)) for end in (b"\r\n", b"\n", b"\r") if text.startswith(end, at)), None)
    assert framer.line_end == first
    if not (text and BOM.startswith(text)):
        assert framer.cr_is_open is (text.endswith(b"\r") and not alone and not framer.held)


@given(PIECES, PIECES)
def test_the_rest_can_be_given_up(before: bytes, after: bytes) -> None:
    """What follows is still framed as the rest of that event."""
    framer = Framer()
    events = framer.feed(before) if before else []
    taken = framer.take_rest()
    assert framer.held == 0 and framer.rest() == b""
    later = framer.feed(after) if after else []
    stray = b"\n" if after and framer.stray_lf else b""
    assert b"".join(events) + taken + stray + b"".join(later) + framer.rest() == without_bom(before) + (
        after.removeprefix(BOM) if not before else after
    )


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r", b"\n\r", b"\r\n\n"])
def test_event_by_event(end: bytes) -> None:
    framer = Framer()
    blank = end if end in (b"\n\r", b"\r\n\n") else end + end
    for number in range(5):
        event = b"data: %d" % number + blank
        assert framer.feed(event) == [event]
        assert framer.held == 0


@pytest.mark.parametrize(
    "read",
    [
        b"data: 1\n\n",
        b"event: x\ndata: 1\n\n",
        b"a\nb\nc\n\n",
        b"data: 1\n\ndata: 2\n\n",
        b"data: 1\n\n\n",
        b"data: 1\n\ndata",
        b"data: 1\n",
        b"data: 1",
        b"\n",
        b"\n\n",
        b"x\n\ny\n\n",
        b"xy",
        b"x",
        b"\ndata: 1\n\n",
        b"data: 1\r\n\r\n",
    ],
)
@pytest.mark.parametrize(
    "before", [b"data: 0\n\n", b"data: 0\n\r", b"data: 0\r\n\r", b"data: 0\n", b"data", b"data: 0\r\r"]
)
def test_the_short_way_is_the_long_way(before: bytes, read: bytes) -> None:
    """A stream of LF takes a short way from its second event on: it must cut as the other does."""
    first = b"data: first\n\n"
    events, framer = frame([first, before, read, b"data: z\n\n"])
    text = first + before + read + b"data: z\n\n"
    assert events == blocks(text[: boundaries(text)[-1]])
    assert framer.rest() == text[boundaries(text)[-1] :]


def test_a_cr_and_its_lf_in_two_reads() -> None:
    framer = Framer()
    assert framer.feed(b"data: x\r\n\r") == [b"data: x\r\n\r"]
    assert (framer.stray_lf, framer.cr_is_open) == (False, True)
    assert framer.feed(b"\n") == []
    assert (framer.stray_lf, framer.cr_is_open, framer.held) == (True, False, 0)
    assert framer.feed(b"data: y\r\n\r\n") == [b"data: y\r\n\r\n"]
    assert (framer.stray_lf, framer.cr_is_open) == (False, False)


def test_a_cr_inside_an_event_and_its_lf() -> None:
    """The LF belongs to the event that is held, it is not stray."""
    framer = Framer()
    assert framer.feed(b"data: x\r") == []
    assert framer.feed(b"\n\r\n") == [b"data: x\r\n\r\n"]
    assert not framer.stray_lf and framer.line_end == b"\r\n"


def test_cr_only_is_known_once_it_was_seen() -> None:
    framer = Framer()
    assert framer.feed(b"data: x\r\r") == [b"data: x\r\r"]
    assert framer.lone_cr and not framer.cr_is_open


@pytest.mark.parametrize("cuts", [[1], [2], [1, 2], [3], []])
def test_a_bom_in_pieces(cuts: list[int]) -> None:
    events, framer = frame(cut(BOM + b"data: x\n\n", cuts))
    assert events == [b"data: x\n\n"] and framer.bom


def test_almost_a_bom() -> None:
    events, framer = frame([BOM[:2], b"x\n\n"])
    assert events == [BOM[:2] + b"x\n\n"] and not framer.bom
    assert Framer().feed(BOM[:1]) == []


def test_a_part_of_a_bom_is_a_rest() -> None:
    framer = Framer()
    assert framer.feed(BOM[:2]) == [] and framer.rest() == BOM[:2]
    assert framer.take_rest() == BOM[:2] and framer.rest() == b""


def test_an_lf_belongs_to_the_event_that_was_dropped() -> None:
    """Who keeps an event back says so; the mark is for the next read alone."""
    framer = Framer()
    framer.feed(b"data: x\r\n\r")
    framer.dropped = True
    assert not framer.cr_is_open
    framer.feed(b"\n")
    assert (framer.stray_lf, framer.lf_dropped) == (True, True)
    framer.feed(b"data: y\r\n\r")
    framer.feed(b"\n")
    assert (framer.stray_lf, framer.lf_dropped) == (True, False)


def test_every_byte_is_looked_at_once() -> None:
    """Case B077: an event in many pieces is scanned piece by piece: the longest line that is looked at is one piece."""

    class Counting(bytes):
        """Counts how often it is searched."""

        searches = 0

        def find(self, *args: object) -> int:
            Counting.searches += 1
            return super().find(*args)  # type: ignore[arg-type]

    framer = Framer()
    for _ in range(1000):
        assert framer.feed(Counting(b"x" * 100)) == []
    assert Counting.searches <= 4000
    assert framer.held == 100_000
    assert framer.feed(b"\n\n") == [b"x" * 100_000 + b"\n\n"]
