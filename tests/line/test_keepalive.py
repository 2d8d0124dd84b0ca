"""What is inserted into a stream, and where it never is."""

from collections.abc import Mapping

import pytest

from tests.line.body import assert_whole_events, delivered
from tests.stand.client import End
from tests.stand.stand import Stand
from tests.stand.wire import (
    BRISK,
    C0,
    C1,
    C3,
    CHAT,
    DONE,
    KEEPALIVE,
    TEXT,
    chat,
    error_event,
    texts,
    without_keepalives,
)

Fields = Mapping[str, object]


GAP_S = 0.3


def test_keepalives_fill_every_gap(stand: Stand) -> None:
    # Each event has a time of its own: where one is late, the gap behind it is the shorter.
    model = stand.model("one", {"events": CHAT, "gap": 2 * GAP_S})
    reply = stand.ask(chat(model, usage=True), key=BRISK)
    entry = stand.entry(model)
    assert delivered(stand, model, reply) == "".join(CHAT).encode()
    assert without_keepalives(reply.body) == "".join(CHAT).encode()
    assert_whole_events(reply)
    assert reply.body.count(KEEPALIVE) == entry.wire.keepalives
    for event in CHAT[1:]:
        assert KEEPALIVE + event.encode() in reply.body
    assert reply.body.endswith(DONE.encode())


@pytest.mark.parametrize("usage", [True, False])
def test_the_removed_event_leaves_a_gap_that_is_filled(stand: Stand, usage: bool) -> None:
    model = stand.model("one", {"events": CHAT, "gaps": {4: GAP_S, 5: GAP_S}})
    reply = stand.ask(chat(model, usage=usage), key=BRISK)
    assert reply.body.endswith(KEEPALIVE + DONE.encode())
    assert texts(reply.body) == TEXT


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("in the line", -12),
        ("behind the field", 5),
        ("before the blank line", -1),
        ("in the line end", -2),
        ("at its start", 1),
    ],
)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_no_keepalive_inside_an_event(stand: Stand, name: str, at: int, line_end: str) -> None:
    """Cases B005, B009: the event's halves come three keepalives apart."""
    stream = [event.replace("\n", line_end) for event in CHAT]
    model = stand.model("one", {"events": stream, "writes": {"at": {at: 2 * GAP_S}, "in_event": 1}})
    reply = stand.ask(chat(model, usage=True), key=BRISK)
    assert delivered(stand, model, reply) == "".join(stream).encode()
    entry = stand.entry(model)
    inside = range(len(stream[0].encode()) + 1, len((stream[0] + stream[1]).encode()))
    shift = 0
    for offset, length in entry.wire.insertions:
        assert offset - shift not in inside
        shift += length
    if (line_end, at) == ("\r\n", -1):
        # The CR of the blank line ends the event, and may yet have an LF: it is out, and no place for an insertion.
        assert entry.wire.keepalives == 0
    else:
        assert entry.wire.keepalives >= 1, "before the event, where its first half is held back"


def test_keepalives_resume_behind_a_slow_event(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gaps": {2: GAP_S}, "writes": {"at": {-3: GAP_S}, "in_event": 1}})
    reply = stand.ask(chat(model, usage=True), key=BRISK)
    assert (C1.encode() + KEEPALIVE) in reply.body
    assert (KEEPALIVE + C1.encode()) in reply.body


def test_the_keepalive_is_one_line_once_the_upstream_used_ids(stand: Stand) -> None:
    """Case B010."""
    model = stand.model("one", {"events": ["id: 7\n" + C0, *CHAT[1:]], "gaps": {1: GAP_S}})
    reply = stand.ask(chat(model, usage=True), key=BRISK)
    assert b": hopbase-keepalive\n" + C1.encode() in reply.body
    assert KEEPALIVE not in reply.body


def test_the_keepalive_is_one_line_for_go(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gaps": {1: GAP_S}})
    reply = stand.ask(chat(model, usage=True), key=BRISK, headers={"user-agent": "Go-http-client/1.1"})
    assert b": hopbase-keepalive\n" + C1.encode() in reply.body
    assert KEEPALIVE not in reply.body


def test_upstream_heartbeats_pass_and_keep_the_client_alive(stand: Stand) -> None:
    """Cases B013, B016: relayed where they stand, and to the client as good as a keepalive of ours."""
    beats = {"every": 0.05, "form": ": OPENROUTER PROCESSING\n\n"}
    model = stand.model("one", {"events": CHAT, "gaps": {2: 0.8}, "heartbeats": beats})
    reply = stand.ask(chat(model, usage=True))
    entry = stand.entry(model)
    assert without_keepalives(reply.body) == stand.calls(model)[0].sent
    assert reply.body.count(b"OPENROUTER") == entry.wire.heartbeats >= 3
    assert entry.wire.keepalives <= 1, "four would be due without them"


def test_a_key_sets_its_own_keepalive(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gaps": {2: 0.5}})
    reply = stand.ask(chat(model, usage=True), key="sk-hr-patient-0123456789abcdef")
    assert reply.body == "".join(CHAT).encode()


@pytest.mark.parametrize("last", [DONE, error_event("server_error")])
def test_no_keepalive_behind_the_end(stand: Stand, last: str) -> None:
    """Cases B018, B038: the body ends within end_grace, though the upstream holds it open, and that connection is not
    used again."""
    model = stand.model("one", {"events": [C0, C3, last], "tail_hold": 30})
    reply = stand.ask(chat(model), key=BRISK)
    assert reply.body == stand.calls(model)[0].sent
    assert reply.end is End.FRAMED
    call = stand.calls(model)[0]
    assert call.closed_early
    entry = stand.entry(model)
    assert entry.wire.keepalives == 0
    assert entry.duration_s < 10
    stand.ask(chat(model))
    assert len({one.connection for one in stand.calls(model)}) == 2


def test_bytes_behind_the_grace_are_not_delivered(stand: Stand) -> None:
    """Case B038."""
    model = stand.model("one", {"events": [*CHAT, "data: late\n\n"], "gaps": {6: 0.6}})
    reply = stand.ask(chat(model, usage=True), key=BRISK)
    assert reply.body == "".join(CHAT).encode()
    assert stand.entry(model).end == "completed"


def test_a_tail_within_the_grace_is_delivered(stand: Stand) -> None:
    model = stand.model("one", {"events": [*CHAT, ": bye\n\n"], "gaps": {6: 0.05}})
    assert stand.ask(chat(model, usage=True), key=BRISK).body == "".join([*CHAT, ": bye\n\n"]).encode()


def test_a_good_connection_is_used_again(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT})
    for _ in range(3):
        stand.ask(chat(model))
    assert len({one.connection for one in stand.calls(model)}) == 1
    assert stand.entries(model, count=3)[-1].attempts[0].reused
