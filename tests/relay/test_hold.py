"""What waits for the commit is bounded, and keeps its order."""

from headrace.relay.hold import HEARTBEAT_BYTES, PREAMBLE_BYTES, PREAMBLE_EVENTS, Hold


def test_order_is_kept() -> None:
    hold = Hold()
    assert hold.heartbeat(b": a\n\n", 1.0) == 0
    assert hold.preamble(b"data: p\n\n", 2.0)
    assert hold.heartbeat(b": b\n\n", 3.0) == 0
    assert hold.size == 19
    assert hold.release() == [(b": a\n\n", 1.0, False), (b"data: p\n\n", 2.0, True), (b": b\n\n", 3.0, False)]
    assert hold.size == 0 and hold.release() == []


def test_the_oldest_heartbeats_go() -> None:
    hold = Hold()
    hold.preamble(b"p", 0.0)
    for number in range(HEARTBEAT_BYTES // 1024):
        assert hold.heartbeat(b"%04d" % number + b"x" * 1020, float(number)) == 0
    assert hold.heartbeat(b"y", 99.0) == 1024
    held = hold.release()
    assert held[0][0] == b"p", "a preamble event stays"
    assert held[1][0].startswith(b"0001") and held[-1][0] == b"y"


def test_a_heartbeat_too_large_for_itself() -> None:
    hold = Hold()
    hold.heartbeat(b"a", 0.0)
    assert hold.heartbeat(b"x" * (HEARTBEAT_BYTES + 1), 0.0) == HEARTBEAT_BYTES + 2
    assert hold.size == 0


def test_preamble_events_are_counted() -> None:
    hold = Hold()
    assert all(hold.preamble(b"p", 0.0) for _ in range(PREAMBLE_EVENTS))
    assert not hold.preamble(b"p", 0.0)
    assert len(hold.release()) == PREAMBLE_EVENTS
    assert hold.preamble(b"p", 0.0), "counted anew"


def test_preamble_bytes_are_counted() -> None:
    hold = Hold()
    assert hold.preamble(b"x" * PREAMBLE_BYTES, 0.0)
    assert not hold.preamble(b"y", 0.0)
    assert hold.size == PREAMBLE_BYTES


def test_discarded() -> None:
    hold = Hold()
    hold.heartbeat(b"abc", 0.0)
    hold.preamble(b"de", 0.0)
    assert hold.discard() == 5
    assert hold.size == 0 and hold.release() == []


def test_the_lf_of_a_cr() -> None:
    hold = Hold()
    hold.add_lf()
    assert hold.release() == []
    hold.heartbeat(b":\r\n\r", 0.0)
    hold.add_lf()
    hold.preamble(b"data\r\n\r", 1.0)
    hold.add_lf()
    hold.preamble(b"data\n\n", 2.0)
    hold.add_lf()
    assert hold.size == 5 + 8 + 6
    assert [event for event, _, _ in hold.release()] == [b":\r\n\r\n", b"data\r\n\r\n", b"data\n\n"]
