import zlib
from collections.abc import Iterator, Sequence
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.simulator.scenario import (
    Cut,
    During,
    Encoding,
    Faults,
    Heartbeat,
    How,
    Pacing,
    WriteMode,
    Writes,
)
from headrace.simulator.spelling import Event
from headrace.simulator.timeline import Step, Timeline

EVENTS = (b"one..", b"two..", b"three")
BODY = b"".join(EVENTS)


def play(
    pacing: Pacing | None = None,
    faults: Faults | None = None,
    events: Sequence[bytes] = EVENTS,
    preamble: bytes = b"",
    most: int = 1000,
) -> tuple[list[Step], How | None]:
    timeline = Timeline([Event(raw=raw, tokens=n) for n, raw in enumerate(events)], lambda e: e.raw, preamble)
    steps = list(islice(timeline.steps(pacing or Pacing(), faults or Faults()), most))
    return steps, timeline.how


def data(steps: list[Step]) -> bytes:
    return b"".join(step.data for step in steps)


def pauses(steps: list[Step]) -> list[tuple[float, bytes]]:
    return [(round(step.wait_s, 6), step.data) for step in steps]


def test_each_event_has_its_pause() -> None:
    steps, how = play(Pacing(first_delay_s=1, gap_s=0.1, gaps={2: 5}), preamble=b"BOM")
    assert pauses(steps) == [(0, b"BOM"), (1, b"one.."), (0.1, b"two.."), (5, b"three")]
    assert [step.events for step in steps] == [0, 1, 1, 1]
    assert [step.tokens for step in steps] == [0, 0, 1, 2]
    assert how is None


def test_an_events_own_delay_wins() -> None:
    timeline = Timeline([Event(raw=b"a"), Event(raw=b"b", delay_s=0.5)], lambda e: e.raw)
    assert pauses(list(timeline.steps(Pacing(gap_s=1), Faults()))) == [(0, b"a"), (0.5, b"b")]


@given(st.integers(0, len(BODY) + 2), st.sampled_from(How))
def test_a_cut_at_any_byte_leaves_exactly_what_came_before(at: int, how: How) -> None:
    steps, ended = play(faults=Faults(cut=Cut(how, at_byte=at)))
    assert data(steps) == BODY[:at]
    # At the last byte it is still a cut: the body's own end is missing.
    assert ended == (how if at <= len(BODY) else None)
    whole = sum(BODY[:at].startswith(b"".join(EVENTS[:n])) for n in (1, 2, 3))
    assert sum(step.events for step in steps) == whole


@pytest.mark.parametrize(
    ("after", "extra", "expected"),
    [
        (0, 0, b""),
        (1, 0, b"one.."),
        (1, 2, b"one..tw"),
        (1, -2, b"one..two"),
        (3, 0, BODY),
    ],
)
def test_a_cut_after_events(after: int, extra: int, expected: bytes) -> None:
    steps, how = play(faults=Faults(cut=Cut(How.RST, after_events=after, extra=extra)))
    assert (data(steps), how) == (expected, How.RST)


def test_a_cut_at_a_boundary_does_not_wait_for_the_next_event() -> None:
    steps, _ = play(Pacing(gap_s=9), Faults(cut=Cut(How.FIN, after_events=1)))
    assert pauses(steps) == [(0, b"one..")]


def test_a_cut_without_a_place_is_at_the_end_and_a_late_one_never_comes() -> None:
    assert play(faults=Faults(cut=Cut(How.FIN)))[1] is How.FIN
    assert play(faults=Faults(cut=Cut(How.FIN, after_events=9)))[1] is None
    assert play(faults=Faults(cut=Cut(How.FIN, head_bytes=9)))[1] is None


def test_heartbeats_fill_the_silence_and_events_keep_their_time() -> None:
    beats = (Heartbeat(b":f", 1, During.FIRST), Heartbeat(b":g", 2, During.GAP, limit=1))
    steps, _ = play(Pacing(first_delay_s=2.5, gap_s=5, heartbeats=beats))
    assert pauses(steps) == [
        (1, b":f"),
        (1, b":f"),
        (0.5, b"one.."),
        (2, b":g"),
        (3, b"two.."),
        (2, b":g"),
        (3, b"three"),
    ]


def test_a_silence_that_ends_with_the_beat_has_none() -> None:
    steps, _ = play(Pacing(gap_s=1, heartbeats=(Heartbeat(b":", 1),)))
    assert data(steps) == BODY


def test_a_stall_beats_for_ever_or_as_often_as_told() -> None:
    faults = Faults(cut=Cut(How.STALL, after_events=1))
    steps, _ = play(Pacing(heartbeats=(Heartbeat(b":", 0.3),)), faults, most=50)
    assert pauses(steps) == [(0, b"one.."), *[(0.3, b":")] * 49]
    limited, how = play(Pacing(heartbeats=(Heartbeat(b":", 0.3, limit=2),)), faults)
    assert (len(limited), how) == (3, How.STALL)


def test_a_held_tail_is_a_silence_after_the_last_event() -> None:
    steps, how = play(Pacing(heartbeats=(Heartbeat(b":", 1, During.STALL),)), Faults(tail_hold_s=2.5))
    assert pauses(steps)[3:] == [(1, b":"), (1, b":"), (0.5, b"")]
    assert how is None
    cut, _ = play(faults=Faults(tail_hold_s=2.5, cut=Cut(How.RST)))
    assert len(cut) == 3


@given(st.integers(1, 20))
def test_pieces_of_a_size(size: int) -> None:
    steps, _ = play(Pacing(gap_s=1, writes=Writes(size=size, gap_s=0.1)))
    assert data(steps) == BODY
    assert all(len(step.data) <= size for step in steps)
    assert sum(step.events for step in steps) == 3
    assert all(step.alone for step in steps) == (size < 5)


def test_cuts_at_offsets_of_the_body() -> None:
    steps, _ = play(Pacing(gap_s=1, writes=Writes(at={0: 9, 2: 0.5, 5: 9, 12: 0.25, 99: 9})))
    assert pauses(steps) == [(0, b"on"), (0.5, b"e.."), (1, b"two.."), (1, b"th"), (0.25, b"ree")]
    assert [step.events for step in steps] == [0, 1, 1, 0, 1]


def test_cuts_at_offsets_of_one_event() -> None:
    steps, _ = play(Pacing(writes=Writes(at={-1: 0.5, 1: 0.25}, in_event=1)), preamble=b"BOM")
    assert pauses(steps) == [(0, b"BOM"), (0, b"one.."), (0, b"t"), (0.25, b"wo."), (0.5, b"."), (0, b"three")]


def test_joined_writes_are_one_at_the_first_events_time() -> None:
    steps, _ = play(Pacing(first_delay_s=2, gap_s=1, writes=Writes(mode=WriteMode.JOINED)), preamble=b"BOM")
    assert steps == [Step(2, b"BOM" + BODY, 3, 2)]
    assert play(Pacing(writes=Writes(mode=WriteMode.JOINED)), events=())[0] == []


@pytest.mark.parametrize(("encoding", "wbits"), [(Encoding.GZIP, 31), (Encoding.DEFLATE, 15)])
def test_an_encoded_body_can_be_read_write_by_write(encoding: Encoding, wbits: int) -> None:
    steps, _ = play(Pacing(gap_s=1), Faults(content_encoding=encoding, tail_hold_s=1))
    unpacker = zlib.decompressobj(wbits)
    assert [unpacker.decompress(step.data) for step in steps] == [*EVENTS, b"", b""]
    assert unpacker.eof
    cut, _ = play(faults=Faults(content_encoding=encoding, cut=Cut(How.RST)))
    unpacker = zlib.decompressobj(wbits)
    assert unpacker.decompress(data(cut)) == BODY
    assert not unpacker.eof


def test_a_measured_timeline_says_its_length_and_plays_the_same() -> None:
    faults = Faults(content_encoding=Encoding.GZIP)
    events = (Event(raw=raw) for raw in EVENTS)
    timeline, length = Timeline(events, lambda e: e.raw, b"BOM").measured(Pacing(), faults)
    assert len(data(list(timeline.steps(Pacing(), faults)))) == length
    assert timeline.measured(Pacing(), Faults(cut=Cut(How.CLEAN, at_byte=4)))[1] == 4


def test_everything_is_lazy() -> None:
    def endless() -> Iterator[Event]:
        while True:
            yield Event(raw=b"x")

    pacing = Pacing(writes=Writes(at={5: 0.0}), heartbeats=(Heartbeat(),))
    timeline = Timeline(endless(), lambda e: e.raw)
    steps = timeline.steps(pacing, Faults(cut=Cut(How.RST, at_byte=10**12), content_encoding=Encoding.GZIP))
    assert len(list(islice(steps, 10))) == 10
