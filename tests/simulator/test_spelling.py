import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.simulator.scenario import LineEnd, ScriptedEvent, Spelling
from headrace.simulator.spelling import Event, data_event, events_from_raw, events_from_script, speller

NAMED = data_event(b"{}", 3, b"ping")


@pytest.mark.parametrize(
    ("spelling", "expected"),
    [
        (Spelling(), b"event: ping\ndata: {}\n\n"),
        (Spelling(line_end=LineEnd.CRLF), b"event: ping\r\ndata: {}\r\n\r\n"),
        (Spelling(line_end=LineEnd.CR), b"event: ping\rdata: {}\r\r"),
        (Spelling(line_end=LineEnd.MIXED), b"event: ping\ndata: {}\n\r\n"),
        (Spelling(space=False), b"event:ping\ndata:{}\n\n"),
    ],
)
def test_line_ends_and_space(spelling: Spelling, expected: bytes) -> None:
    assert speller(spelling)(NAMED) == expected


def test_raw_bytes_stay_as_they_are() -> None:
    assert speller(Spelling(line_end=LineEnd.CRLF))(Event(raw=b"\xff\n")) == b"\xff\n"


def test_a_comment_has_no_name() -> None:
    assert speller(Spelling())(Event(lines=((b"", b"ping"),))) == b": ping\n\n"


def test_scripted_events_repeat() -> None:
    made = list(events_from_script([ScriptedEvent(raw=b"x", repeat=2, delay_s=0.5), ScriptedEvent(raw=b"y")]))
    assert made == [Event(raw=b"x", delay_s=0.5), Event(raw=b"x", delay_s=0.5), Event(raw=b"y")]


@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n"])
def test_recorded_bytes_are_cut_at_blank_lines(end: bytes) -> None:
    line = end[: len(end) // 2]
    raw = b"event: a" + line + b"data: 1" + end + b"data: 2" + end + b"data: 3" + line
    assert [event.raw for event in events_from_raw(raw)] == [
        b"event: a" + line + b"data: 1" + end,
        b"data: 2" + end,
        b"data: 3" + line,
    ]


@given(st.lists(st.sampled_from([b"\r", b"\n", b"data: x", "北".encode()])).map(b"".join))
def test_the_pieces_of_recorded_bytes_joined_are_the_bytes(raw: bytes) -> None:
    pieces = [event.raw for event in events_from_raw(raw)]
    assert b"".join(pieces) == raw
    assert all(pieces)
