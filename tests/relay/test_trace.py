"""What an entry tells of a course is right, and bounded however long the course was."""

import random
from hashlib import sha256

from headrace.model.entry import Wire
from headrace.relay.trace import FIRST_MARKS, GAP_BOUNDS_S, INSERTIONS, LAST_MARKS, LONGEST_GAPS, Trace


def course(times: list[float]) -> Wire:
    trace = Trace()
    for number, at in enumerate(times):
        trace.event(at, number)
    return trace.wire(0.0, "", 0)


def test_nothing_came() -> None:
    wire = Trace().wire(5.0, "out", 0)
    assert wire == Wire(hash_in=sha256(b"").hexdigest(), hash_out="out")
    assert wire.first_event_s is None and wire.gaps == ()


def test_one_event() -> None:
    wire = course([2.0])
    assert (wire.events, wire.first_event_s, wire.last_event_s, sum(wire.gaps)) == (1, 2.0, 2.0, 0)
    assert wire.first_marks == ((2.0, 0),) and wire.last_marks == ()


def test_marks_of_any_number() -> None:
    for number in (1, 63, 64, 65, 79, 80, 81, 95, 96, 97, 200):
        wire = course([float(at) for at in range(number)])
        assert wire.first_marks == tuple((float(at), at) for at in range(min(number, FIRST_MARKS)))
        last = range(max(FIRST_MARKS, number - LAST_MARKS), number)
        assert wire.last_marks == tuple((float(at), at) for at in last)
        assert wire.events == number == sum(wire.gaps) + 1


def test_gaps_fall_into_their_buckets() -> None:
    for bucket, bound in enumerate(GAP_BOUNDS_S):
        assert course([0.0, bound]).gaps[bucket] == 1
        assert course([0.0, bound * 1.01]).gaps[bucket + 1] == 1
    assert len(course([0.0]).gaps) == 12


def test_the_longest_gaps() -> None:
    generator = random.Random(3)
    gaps = [round(generator.uniform(0.001, 9.0), 3) for _ in range(300)]
    times = [0.0]
    for gap in gaps:
        times.append(times[-1] + gap)
    longest = course(times).longest_gaps
    ranked = sorted(((gap, number) for number, gap in enumerate(gaps, 1)), reverse=True)[:LONGEST_GAPS]
    assert [(number, round(gap, 3)) for number, gap in longest] == [(number, gap) for gap, number in ranked]


def test_no_gap_is_no_longest_gap() -> None:
    assert course([1.0] * 20).longest_gaps == ()


def test_insertions_stand_in_the_delivered_body() -> None:
    trace = Trace()
    trace.insert(b"ab")
    trace.release(b"xyz")
    trace.insert(b"c")
    trace.release(b"w")
    trace.insert(b"dd")
    wire = trace.wire(0.0, "", 0)
    assert wire.insertions == ((0, 2), (5, 1), (7, 2))
    assert (wire.released, wire.inserted) == (4, 5)
    assert wire.hash_in == sha256(b"xyzw").hexdigest()


def test_insertions_are_bounded() -> None:
    trace = Trace()
    for _ in range(INSERTIONS + 50):
        trace.insert(b"k")
    wire = trace.wire(0.0, "", 3)
    assert len(wire.insertions) == INSERTIONS and wire.inserted == INSERTIONS + 50 and wire.unreadable == 3
