"""The machine of a stream, as conversations: what happens to it, and what its client hears.

Times are seconds after the request. The byte identity of whole streams is in tests/wire.
"""

import json

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headrace.model.outcome import End, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.settings import Commit
from headrace.model.wire import BodyEnd
from headrace.relay.clock import NEVER
from headrace.relay.machine import CR_GRACE_S
from headrace.relay.state import State
from tests.relay.driver import (
    COMMENT,
    DONE,
    ERROR,
    FINISH,
    KEEPALIVE,
    PATIENT,
    ROLE,
    USAGE,
    Client,
    cut_out,
    data,
    limits,
)

GONE = Outcome(End.CLIENT_GONE, "client left")
STOPPED = Outcome(End.STOPPED, "drain", Problem(Kind.STOPPED, "The gateway restarts."))


def code(event: bytes) -> str:
    """The code in an error event, which must be one whole event without a name."""
    assert event.startswith(b'data: {"error":{"message":"') and event.endswith(b"}}\n\n")
    error = json.loads(event[6:])["error"]
    assert error["type"] == "server_error" and error["message"] and error["param"] is None
    return str(error["code"])


# ---- the good course


def test_events_go_out_in_the_call_that_completes_them() -> None:
    client = Client().attempt()
    assert client.feed(ROLE).heard == [("write", ROLE)]
    assert client.feed(data("A")[:20]).heard == []
    assert client.feed(data("A")[20:] + data("B")).heard == [("write", data("A") + data("B"))]
    assert client.feed(FINISH).feed(USAGE).heard == [("write", FINISH), ("write", USAGE)]
    assert client.state is State.COMMITTED
    assert client.feed(DONE).heard == [("write", DONE)]
    assert client.tick(0.0).state is State.ENDING
    assert client.over().heard == [("end", b"completed")]
    assert client.check().outcome == Outcome(End.COMPLETED, "stop")


def test_the_grace_behind_the_terminal_event() -> None:
    """What follows within it is relayed; at its end the body ends though the upstream's does not."""
    client = Client(limits(end_grace=1.0, keepalive=0.1)).attempt().feed(data()).feed(FINISH).feed(DONE, 5.0)
    assert client.machine.due() == 6.0
    client.heard.clear()
    assert client.feed(COMMENT, 5.5).heard == [("write", COMMENT)]
    assert client.tick(5.99).heard == [], "no keepalive behind the terminal event"
    assert client.tick(6.0).heard == [("end", b"completed")]
    assert client.feed(data("late"), 6.1).heard == []
    assert client.trace.received == client.trace.released + len(data("late"))
    client.check()


def test_failed_in_mid_stream() -> None:
    """The upstream's own error is the end; nothing is appended, and a [DONE] behind it changes nothing."""
    client = Client(limits(end_grace=1.0)).attempt().feed(data()).feed(ERROR, 1.0)
    assert client.heard == [("write", data()), ("write", ERROR)]
    assert client.feed(DONE, 1.5).heard == [("write", DONE)]
    assert client.over(BodyEnd.CUT, 1.6).heard == [("end", b"failed")]
    assert client.outcome.end is End.FAILED and client.outcome.reason == "upstream_error"


def test_an_ending_is_not_undone() -> None:
    client = Client().attempt().feed(data()).feed(FINISH).feed(DONE).over()
    before = client.outcome
    client.heard.clear()
    client.end(GONE).over(BodyEnd.CUT).tick(1e12).feed(ERROR)
    assert client.heard == [] and client.outcome is before
    assert client.machine.due() != 0.0


# ---- the early open


def test_early_open_hot() -> None:
    """10 s after the upstream's head, not after the request."""
    client = Client(limits(early_open=10.0, early_open_cold=25.0, keepalive=10.0)).attempt(answered=False)
    assert client.machine.due() == 25.0
    client.answer(20.0)
    assert client.machine.due() == 30.0
    assert client.tick(29.9).heard == []
    assert client.tick(30.0).heard == [("open", b""), ("insert", KEEPALIVE)]
    assert client.machine.early_open and client.state is State.WAITING
    assert client.tick(39.9).heard == []
    assert client.tick(40.0).heard == [("insert", KEEPALIVE)]
    assert client.feed(data(), 41.0).heard == [("write", data())]
    client.check()


def test_early_open_cold() -> None:
    client = Client(limits(early_open=10.0, early_open_cold=25.0)).attempt(answered=False)
    assert client.tick(24.9).heard == []
    assert client.tick(25.0).heard == [("open", b""), ("insert", KEEPALIVE)]


@pytest.mark.parametrize("answered", [False, True])
def test_never_opened_early(answered: bool) -> None:
    client = Client(limits(keepalive=1.0)).attempt(answered=answered)
    assert client.tick(1e6).heard == []
    assert not client.machine.early_open


def test_failover_behind_an_early_open() -> None:
    """The final failure is then the error event."""
    client = Client(limits(early_open_cold=25.0)).attempt(answered=False).tick(25.0)
    client.machine.rest()
    client.attempt(26.0).over(BodyEnd.FRAMED, 27.0)
    assert client.heard == [("open", b""), ("insert", KEEPALIVE), ("failed", b"upstream_bad_reply")]
    problem = client.failures[-1].problem
    client.end(Outcome(End.REFUSED, problem.kind.value, problem), 28.0)
    (word, event), last = client.heard
    assert word == "insert" and code(event) == "upstream_bad_reply" and last == ("end", b"refused")


def test_refused_before_anything_was_sent() -> None:
    client = Client().attempt().over(BodyEnd.CUT)
    client.end(Outcome(End.REFUSED, "x", client.failures[0].problem))
    assert client.heard == [("failed", b"upstream_unreachable"), ("end", b"refused")]


# ---- before the first event


def test_held_heartbeats_go_before_the_first_event() -> None:
    client = Client().attempt().feed(COMMENT)
    assert client.heard == [] and client.machine.held == len(COMMENT)
    assert client.feed(data()).heard == [("write", COMMENT + data())]
    assert client.trace.heartbeats == 1 and client.trace.events == 1
    client.check()


def test_held_heartbeats_are_forgotten_on_failover() -> None:
    client = Client().attempt().feed(COMMENT).over(BodyEnd.CUT)
    assert client.heard == [("failed", b"upstream_unreachable")]
    client.attempt(1.0).feed(data(), 2.0)
    assert client.heard == [("write", data())]
    assert client.trace.removed == len(COMMENT)
    client.check()


def test_an_unfinished_event_is_forgotten_on_failover() -> None:
    client = Client().attempt().feed(b"\xef\xbb\xbfdata: {").over(BodyEnd.CUT).attempt(1.0).feed(data(), 2.0)
    assert client.heard == [("failed", b"upstream_unreachable"), ("write", data())]
    assert client.trace.removed == 0, "the BOM was the other attempt's"


def test_an_error_first() -> None:
    """It fails the attempt and is not delivered, nor what came before it or with it."""
    client = Client().attempt().feed(COMMENT + ERROR + data())
    assert client.heard == [("failed", b"upstream_error")]
    assert client.failures[0].problem.http_status == 503 and not client.failures[0].final
    client.attempt(1.0).feed(data())
    assert client.heard == [("write", data())]


@pytest.mark.parametrize("how", [BodyEnd.FRAMED, BodyEnd.CLOSED])
def test_an_empty_stream(how: BodyEnd) -> None:
    assert Client().attempt().feed(COMMENT).over(how).heard == [("failed", b"upstream_bad_reply")]


def test_first_event_limit_runs_from_the_upload() -> None:
    client = Client(limits(first_event=120.0)).attempt(10.0, answered=False)
    assert client.machine.due() == 130.0, "it cannot pass earlier, however short the upload"
    client.clock.uploaded_at = 30.0
    assert client.machine.due() == 150.0
    client.answer(40.0)
    client.feed(COMMENT, 149.0)
    assert client.tick(149.9).heard == [], "a heartbeat is no first event"
    assert client.tick(150.0).heard == [("failed", b"upstream_timeout")]
    assert client.machine.due() == 1e9, "until the next attempt only the exchange's own limits run"


def test_first_event_limit_of_each_attempt() -> None:
    """case B069: `first_event` bounds until the attempt's first event, `stall` only after it."""
    client = Client(limits(first_event=3.0, stall=1.0, stall_with_pings=1.0)).attempt()
    assert client.tick(2.9).heard == []
    client.feed(data("A"), 2.95)
    assert client.tick(3.9).heard == [("write", data("A"))]
    client.tick(3.96)
    (word, event), last = client.heard
    assert word == "insert" and code(event) == "upstream_stalled" and last == ("end", b"stalled")


def test_an_unknown_upload_is_taken_for_done_at_the_head() -> None:
    client = Client(limits(first_event=5.0)).attempt(0.0, answered=False)
    assert client.tick(7.0).heard == [], "an upload that is not over breaks no limit"
    client.answer(8.0)
    assert client.tick(13.0).heard == [("failed", b"upstream_timeout")]


def test_open_bounds_all_attempts() -> None:
    client = Client(limits(open=240.0, early_open_cold=25.0)).attempt().over(BodyEnd.CUT).attempt(200.0, False)
    client.heard.clear()
    assert client.tick(239.9).heard == [("open", b""), ("insert", KEEPALIVE)]
    client.tick(240.0)
    (word, event), last = client.heard
    assert word == "insert" and code(event) == "upstream_timeout" and last == ("end", b"refused")
    assert client.outcome.reason == "open"


def test_open_ends_with_the_commit() -> None:
    client = Client(limits(open=240.0)).attempt().feed(data(), 239.0)
    assert client.tick(241.0).heard == [("write", data())]


# ---- stall


def stalling(**changed: object) -> Client:
    return Client(limits(stall=120.0, stall_with_pings=290.0, **changed)).attempt().feed(data(), 0.0)


def test_stall_without_heartbeats() -> None:
    client = stalling()
    assert client.machine.due() == 120.0
    client.tick(119.9).heard.clear()
    client.tick(120.0)
    (word, event), last = client.heard
    assert word == "insert" and code(event) == "upstream_stalled" and last == ("end", b"stalled")
    client.check()


def test_stall_with_heartbeats() -> None:
    """case B066: they put it off, but not for ever."""
    client = stalling()
    client.heard.clear()
    for now in range(10, 290, 10):
        assert client.feed(COMMENT, float(now)).tick(now + 9.9).heard == [("write", COMMENT)]
    client.tick(290.0)
    assert [word for word, _ in client.heard] == ["insert", "end"]


def test_stall_once_heartbeats_stop() -> None:
    client = stalling().feed(COMMENT, 100.0)
    assert client.machine.due() == 220.0
    assert client.tick(219.9).machine.outcome is None
    assert client.tick(220.0).outcome.end is End.STALLED


def test_bytes_of_an_unfinished_event_are_a_heartbeat() -> None:
    client = stalling().feed(b"data: {", 100.0)
    assert client.tick(219.0).machine.outcome is None
    client.tick(220.0)
    assert client.outcome.end is End.STALLED
    assert client.relayed == data(), "the unfinished event is never sent"


@pytest.mark.parametrize(
    "event",
    [
        ROLE,
        data(""),
        b'data: {"choices":[]}\n\n',
        b"data: 5\n\n",
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0}]},"finish_reason":null}]}\n\n',
        USAGE,
    ],
)
def test_every_event_is_progress(event: bytes) -> None:
    """case B067: not only text."""
    client = stalling().feed(event, 100.0)
    assert client.tick(219.0).machine.outcome is None
    assert client.tick(220.0).outcome.end is End.STALLED


@pytest.mark.parametrize(
    "event", [b": x\n\n", b"\n", b"data: : keepalive\n\n", b"data:\n\n", b"event: x\n\n", b"data: NaN\n\n"]
)
def test_heartbeats_are_no_progress(event: bytes) -> None:
    client = stalling(first_event=120.0).feed(event, 100.0)
    assert client.tick(220.0).outcome.end is End.STALLED
    assert client.trace.heartbeats == 1
    waiting = Client(limits(first_event=120.0)).attempt().feed(event, 100.0)
    assert waiting.tick(120.0).heard == [("failed", b"upstream_timeout")]


def test_upstream_clocks_stand_still_while_we_pause() -> None:
    client = stalling()
    client.clock.pause(10.0)
    client.clock.pause(20.0)
    assert client.machine.due() == 1e9
    assert client.tick(500.0).machine.outcome is None
    client.clock.resume(600.0)
    client.clock.resume(700.0)
    assert client.machine.due() == 720.0
    assert client.tick(719.0).machine.outcome is None
    assert client.tick(720.0).outcome.end is End.STALLED


def test_the_first_event_limit_stands_still_too() -> None:
    client = Client(limits(first_event=10.0)).attempt()
    client.clock.pause(1.0)
    assert client.tick(100.0).heard == []
    client.clock.resume(100.0)
    assert client.tick(109.0).heard == []
    assert client.tick(110.0).heard == [("failed", b"upstream_timeout")]


def test_a_stall_before_the_commit_fails_the_attempt() -> None:
    client = Client(limits(stall=5.0, stall_with_pings=5.0, commit=Commit.FIRST_OUTPUT, early_open=100.0)).attempt()
    client.feed(ROLE, 1.0)
    assert client.tick(5.9).heard == []
    assert client.tick(6.0).heard == [("failed", b"upstream_stalled")]
    client.attempt(7.0).feed(data(), 8.0)
    assert client.heard == [("write", data())]
    assert client.trace.removed == len(ROLE)


# ---- total, the tail


def test_total() -> None:
    client = Client(limits(total=3600.0)).attempt().feed(data(), 3599.0)
    client.heard.clear()
    client.tick(3600.0)
    (word, event), last = client.heard
    assert word == "insert" and code(event) == "stopped" and last == ("end", b"stopped")
    assert "again" not in json.loads(event[6:])["error"]["message"].lower()


def test_total_before_the_head() -> None:
    assert Client(limits(total=100.0)).attempt().tick(100.0).heard == [("end", b"stopped")]


def test_the_tail_of_ten_seconds() -> None:
    """Every choice has finished: usage and [DONE] are waited for, but not long, and a stall is not what is said."""
    client = Client(limits(stall=2.0, stall_with_pings=2.0, keepalive=3.0)).attempt().feed(data()).feed(FINISH, 1.0)
    client.heard.clear()
    assert client.machine.due() == 4.0
    assert client.tick(4.0).heard == [("insert", KEEPALIVE)]
    assert client.feed(USAGE, 9.0).heard == [("write", USAGE)]
    assert client.tick(10.9).heard == []
    assert client.tick(11.0).heard == [("end", b"completed")]


def test_a_cut_in_the_tail_loses_nothing() -> None:
    client = Client().attempt().feed(data()).feed(FINISH).feed(b"data: {").over(BodyEnd.CUT)
    assert client.heard[-1] == ("end", b"completed")
    assert client.relayed == data() + FINISH and client.inserted == []


def test_our_own_pause_does_not_shorten_the_tail() -> None:
    client = Client().attempt().feed(data()).feed(FINISH, 1.0)
    client.clock.pause(2.0)
    assert client.tick(60.0).machine.outcome is None
    client.clock.resume(60.0)
    assert client.feed(USAGE, 69.0).tick(69.9).machine.outcome is None
    assert client.tick(70.0).outcome.end is End.COMPLETED


def test_a_choice_that_begins_ends_the_tail() -> None:
    client = Client().attempt().feed(data()).feed(FINISH, 1.0).feed(data("B", index=1), 2.0)
    assert client.clock.tail_at == NEVER
    assert client.tick(500.0).machine.outcome is None
    assert client.feed(data("", "stop", index=1), 600.0).tick(610.0).outcome.end is End.COMPLETED


def test_output_behind_a_finish_reason_is_not_cut_off() -> None:
    """A finish_reason in every chunk, or too early (case B041): the tail begins anew with each output."""
    client = Client().attempt()
    for number in range(10):
        client.feed(data("x", "stop" if number % 2 else None), number * 9.0).tick(number * 9.0 + 8.9)
    assert client.machine.outcome is None
    assert client.relayed.count(b"data: ") == 10


@pytest.mark.parametrize("reason", [None, ""])
def test_an_empty_finish_reason_is_none(reason: str | None) -> None:
    client = Client().attempt().feed(data("A", reason)).feed(data("B", reason), 1.0)
    assert client.tick(500.0).machine.outcome is None
    assert client.over(BodyEnd.CUT, 501.0).outcome.end is End.INTERRUPTED


# ---- keepalives


def quiet(**changed: object) -> Client:
    return Client(limits(keepalive=10.0, **changed)).attempt()


def test_a_keepalive_after_silence_towards_the_client() -> None:
    client = quiet().feed(data(), 1.0)
    client.heard.clear()
    assert client.machine.due() == 11.0
    assert client.tick(10.9).heard == []
    assert client.tick(11.0).heard == [("insert", KEEPALIVE)]
    assert client.machine.due() == 21.0
    assert client.feed(COMMENT, 15.0).tick(21.0).heard == [("write", COMMENT)], "a heartbeat relayed is not silence"
    assert client.tick(25.0).heard == [("insert", KEEPALIVE)]
    assert client.trace.keepalives == 2
    client.check()


def test_a_keepalive_stands_before_an_unfinished_event() -> None:
    """It goes where delivered bytes end; the unfinished event is not delivered."""
    client = quiet().feed(data("A") + data("B")[:-1], 1.0).tick(11.0).feed(data("B")[-1:], 12.0)
    assert client.heard == [("write", data("A")), ("insert", KEEPALIVE), ("write", data("B"))]


def test_no_keepalive_while_the_client_is_behind() -> None:
    client = quiet().feed(data(), 1.0)
    client.heard.clear()
    assert client.tick(50.0, drained=False).heard == []
    assert client.tick(50.1).heard == [("insert", KEEPALIVE)]


def test_no_keepalive_touches_an_upstream_clock() -> None:
    client = quiet(stall=30.0, stall_with_pings=30.0).feed(data(), 0.0)
    for now in (10.0, 20.0):
        client.tick(now)
    assert client.tick(30.0).outcome.end is End.STALLED


def test_keepalive_forms() -> None:
    go = Client(limits(keepalive=1.0), headers=((b"x-stainless-lang", b"go"),)).attempt().feed(data()).tick(1.0)
    assert go.inserted == [b": ka\n"]
    ids = quiet().feed(b"id: 7\n" + data(), 0.0).tick(10.0)
    assert ids.inserted == [b": ka\n"], "case B010"
    before = quiet(early_open=5.0).tick(5.0)
    assert before.inserted == [KEEPALIVE]


def test_a_protocol_without_a_keepalive() -> None:
    """Where no form is safe nothing is written, and nothing is counted."""
    client = Client(limits(keepalive=10.0), mute=True).attempt().feed(data(), 0.0)
    client.tick(10.0)
    assert client.body == data() and client.trace.keepalives == 0
    assert client.machine.due() == 20.0


def test_a_protocol_without_an_error_event() -> None:
    """Then only an abort tells that the answer is not whole."""
    client = Client(mute=True).attempt().feed(data()).over(BodyEnd.CUT)
    assert client.heard == [("write", data()), ("abort", b"interrupted")]


# ---- CR


def test_no_insertion_between_cr_and_lf() -> None:
    """case B005: CRLFCRLF as `\\r`, silence, `\\n\\r`, silence, `\\n`."""
    client = quiet().feed(data("A")[:-2] + b"\r\n\r\n", 0.0)
    event = data("B")[:-2]
    client.heard.clear()
    assert client.feed(event + b"\r", 1.0).tick(11.0).heard == [("insert", KEEPALIVE)]
    assert client.feed(b"\n\r", 12.0).heard == [("write", event + b"\r\n\r")]
    assert client.tick(50.0).heard == [], "the CR may be half of a CRLF"
    assert client.feed(b"\n", 51.0).heard == [("write", b"\n")]
    assert client.tick(61.0).heard == [("insert", KEEPALIVE)]
    assert client.trace.events == 2
    client.check()


def test_a_cr_stream_takes_insertions() -> None:
    client = quiet().feed(data("A")[:-2] + b"\r\r", 0.0)
    client.heard.clear()
    assert client.tick(10.0).heard == [("insert", KEEPALIVE)]


def open_cr(**changed: object) -> Client:
    client = Client(limits(stall=10.0, stall_with_pings=10.0, **changed)).attempt().feed(data()[:-2] + b"\r\n\r", 0.0)
    client.heard.clear()
    return client.tick(10.0)


def test_an_error_waits_for_the_lf() -> None:
    client = open_cr()
    assert client.heard == [] and client.state is State.CLOSING
    assert client.machine.due() == 10.0 + CR_GRACE_S
    client.feed(b"\ndata: more", 10.01)
    (first, second, last) = client.heard
    assert first == ("write", b"\n") and second[0] == "insert" and last == ("end", b"stalled")
    assert second[1].endswith(b"\r\n\r\n"), "in the stream's own line end"
    client.check()


@pytest.mark.parametrize("what", ["time", "bytes", "cut", "gone", "framed"])
def test_an_error_waits_no_longer(what: str) -> None:
    client = open_cr()
    assert client.tick(10.04).heard == []
    match what:
        case "time":
            client.tick(10.0 + CR_GRACE_S)
        case "bytes":
            client.feed(b"data: more", 10.01)
        case "cut":
            client.over(BodyEnd.CUT, 10.01)
        case "framed":
            client.over(BodyEnd.FRAMED, 10.01)
        case _:
            client.end(GONE, 10.01)
    assert [word for word, _ in client.heard] == ["insert", "end"]
    assert client.outcome.end is End.STALLED, "the first ending wins"
    client.check()


def test_a_cut_stream_sends_no_lf() -> None:
    client = Client().attempt().feed(data()[:-2] + b"\r\n\r").over(BodyEnd.CUT)
    assert [word for word, _ in client.heard] == ["write", "insert", "end"]


@pytest.mark.parametrize("cut", ["\r|\n", "|\r\n"])
def test_the_lf_of_a_held_event(cut: str) -> None:
    """It is kept with it: byte for byte also where a heartbeat's CRLF came in two reads before the commit."""
    left, right = (b": hb\r\n\r", b"\n") if cut.startswith("\r") else (b": hb\r\n", b"\r\n")
    client = Client().attempt().feed(left).feed(right).feed(data())
    assert client.relayed == b": hb\r\n\r\n" + data()
    assert client.trace.received == client.trace.released
    preamble = Client(limits(commit=Commit.FIRST_OUTPUT)).attempt()
    preamble.feed(ROLE[:-2] + b"\r\n\r").feed(b"\n").feed(data())
    assert preamble.relayed == ROLE[:-2] + b"\r\n\r\n" + data()


def test_the_lf_of_a_removed_event() -> None:
    """It goes with it: it is no blank line of its own."""
    client = Client(limits(keepalive=10.0), added_usage=True).attempt().feed(data("A"))
    client.feed(USAGE[:-2] + b"\r\n\r", 1.0)
    client.tick(11.0)
    client.feed(b"\n", 12.0).feed(DONE, 13.0)
    assert client.relayed == data("A") + DONE
    assert client.inserted == [KEEPALIVE], "what the client has ends in no CR"
    assert client.trace.removed == len(USAGE) + 2
    client.check()


# ---- an event larger than max_event


def oversize(**changed: object) -> Client:
    client = Client(limits(max_event=100, keepalive=10.0, **changed)).attempt().feed(data("A"), 0.0)
    client.heard.clear()
    return client


def test_a_plain_stream_is_not_looked_at_again_and_again() -> None:
    """Its keepalive is due and never comes: the next look is a whole interval away."""
    client = Client(limits(keepalive=10.0)).attempt().feed(b"data: {", 1.0).pass_plainly()
    client.heard.clear()
    assert client.tick(12.0).heard == []
    assert client.machine.due() == 22.0


def test_past_max_event_it_passes_plainly() -> None:
    client = oversize()
    piece = b"data: " + b"x" * 90
    assert client.feed(piece, 1.0).heard == []
    assert client.feed(b"x" * 20, 2.0).heard == [("write", piece + b"x" * 20)]
    assert client.machine.plain and client.machine.held == 0
    assert client.feed(b"y", 3.0).heard == [("write", b"y")], "every byte goes at once"
    assert client.tick(60.0).heard == [], "no keepalive"
    client.feed(b"\n\n" + data("", "stop") + USAGE, 61.0)
    assert client.meter.observer.usage.output_total == 3, "usage from later events"
    client.feed(DONE, 62.0)
    client.heard.clear()
    assert client.over().heard == [("end", b"completed")]
    client.check()


@pytest.mark.parametrize("how", [BodyEnd.CUT, BodyEnd.FRAMED])
def test_a_break_past_max_event_aborts(how: BodyEnd) -> None:
    client = oversize().feed(b"data: " + b"x" * 100, 1.0).over(how, 2.0)
    assert client.heard == [("write", b"data: " + b"x" * 100), ("abort", b"interrupted")]
    assert client.inserted == []


def test_every_byte_is_progress_past_max_event() -> None:
    client = oversize(stall=5.0, stall_with_pings=5.0).feed(b"x" * 101, 1.0).feed(b"x", 5.0)
    assert client.tick(9.9).machine.outcome is None
    assert client.tick(10.0).heard[-1] == ("abort", b"stalled")


def test_a_second_event_too_large() -> None:
    client = oversize().feed(b"data: " + b"x" * 100, 1.0).feed(b"\n\n" + data("B") + b"data: " + b"y" * 200, 2.0)
    client.feed(b'"}\n\n' + FINISH, 3.0)
    assert client.meter.unreadable == 0
    assert client.over().outcome == Outcome(End.COMPLETED, "stop")


def test_too_large_before_the_commit() -> None:
    """Then it commits: what is held goes first."""
    client = Client(limits(max_event=10)).attempt().feed(COMMENT + b"data: 0123456789")
    assert client.heard == [("write", COMMENT + b"data: 0123456789")]
    assert client.state is State.COMMITTED
    client.check()


def test_the_worker_holds_too_much() -> None:
    client = Client().attempt().feed(data() + b"data: {")
    client.heard.clear()
    assert client.pass_plainly().heard == [("write", b"data: {")]
    assert client.machine.plain and client.machine.held == 0
    client.feed(b"}\n\n" + FINISH + USAGE + DONE)
    assert client.meter.observer.usage.output_total == 3
    assert client.over().outcome.end is End.COMPLETED


def test_what_was_given_up_is_not_given_twice() -> None:
    """A worker that holds too much may ask any stream, also one that passes plainly or has ended."""
    client = Client().attempt().feed(b"data: {").pass_plainly().feed(b'"a":').pass_plainly().feed(b"1}\n\ndata: {")
    client.pass_plainly().feed(b"}\n\n")
    assert client.relayed == b'data: {"a":1}\n\ndata: {}\n\n'
    client.over(BodyEnd.CUT).pass_plainly()
    assert client.heard[-1] == ("abort", b"interrupted")
    ended = preambling().feed(ROLE).end(GONE).pass_plainly()
    assert ended.heard == [("end", b"client_gone")]


def test_the_worker_holds_too_many_heartbeats() -> None:
    """They commit nothing and make nothing plain; they are dropped."""
    client = Client().attempt().feed(COMMENT).pass_plainly()
    assert client.heard == [] and client.state is State.WAITING and not client.machine.plain
    assert client.trace.removed == len(COMMENT) and client.machine.held == 0
    client.feed(data()).feed(FINISH).feed(USAGE)
    assert client.meter.observer.usage.output_total == 3
    client.check()


def test_the_worker_holds_too_much_preamble() -> None:
    client = Client(limits(commit=Commit.FIRST_OUTPUT)).attempt().feed(ROLE).pass_plainly()
    assert client.heard == [("write", ROLE)]
    assert client.state is State.COMMITTED and not client.machine.plain


# ---- commit: first_output


def preambling(**changed: object) -> Client:
    return Client(limits(commit=Commit.FIRST_OUTPUT, **changed)).attempt()


def test_preamble_is_held_until_output() -> None:
    client = preambling().feed(ROLE, 1.0).feed(COMMENT, 2.0)
    assert client.heard == [] and client.state is State.WAITING
    assert client.feed(data(), 3.0).heard == [("write", ROLE + COMMENT + data())]
    wire = client.trace.wire(0.0, "", 0)
    assert wire.first_marks == ((1.0, len(ROLE)), (3.0, len(data()))), "marks tell when it came"
    client.check()


def test_preamble_is_forgotten_on_failover() -> None:
    """case B054: the client sees exactly one beginning."""
    client = preambling().feed(ROLE).feed(ERROR)
    assert client.heard == [("failed", b"upstream_error")]
    client.attempt(1.0).feed(ROLE).feed(data())
    assert client.relayed == ROLE + data()
    assert client.trace.removed == len(ROLE)


@pytest.mark.parametrize(("early", "bound"), [(4.0, 4.0), (None, 10.0)])
def test_preamble_is_held_no_longer_than_early_open(early: float | None, bound: float) -> None:
    client = preambling(early_open=early).feed(ROLE, 1.0).feed(ROLE, 2.0)
    assert client.machine.due() <= 1.0 + bound
    client.tick(1.0 + bound)
    assert client.relayed == ROLE + ROLE and client.state is State.COMMITTED


def test_preamble_is_held_up_to_64_events() -> None:
    client = preambling()
    for _ in range(64):
        client.feed(ROLE)
    assert client.heard == []
    assert client.feed(ROLE).heard == [("write", ROLE * 65)]


def test_preamble_is_held_up_to_1_mib() -> None:
    large = ROLE[:-3] + b" " * 700_000 + ROLE[-3:]
    client = preambling().feed(large)
    assert client.heard == []
    assert client.feed(large).relayed == large + large


@pytest.mark.parametrize("event", [FINISH, DONE, data(), b'data: {"choices":[]}\n\n'])
def test_what_is_no_preamble_commits(event: bytes) -> None:
    assert preambling().feed(ROLE).feed(event).relayed == ROLE + event


def test_first_event_commits_by_default() -> None:
    assert Client().attempt().feed(ROLE).relayed == ROLE


def test_a_stream_of_preamble_alone_fails() -> None:
    assert preambling().feed(ROLE).over().heard == [("failed", b"upstream_bad_reply")]


# ---- the usage that we asked for


def test_added_usage_is_removed_once() -> None:
    client = Client(added_usage=True).attempt().feed(data("A", "stop")).feed(USAGE)
    assert client.relayed == data("A", "stop")
    assert client.feed(USAGE).relayed == data("A", "stop") + USAGE, "one event is ours, no more"
    assert client.trace.removed == len(USAGE)
    assert client.meter.observer.usage.output_total == 3
    client.check()


def test_usage_that_was_asked_for_stays() -> None:
    assert Client(added_usage=False).attempt().feed(data()).feed(USAGE).relayed == data() + USAGE


def test_added_usage_is_removed_behind_the_end_too() -> None:
    client = Client(added_usage=True).attempt().feed(data("A", "stop")).feed(DONE).feed(USAGE).over()
    assert client.relayed == data("A", "stop") + DONE and client.outcome.end is End.COMPLETED


def test_added_usage_without_its_blank_line() -> None:
    client = Client(added_usage=True).attempt().feed(data("A", "stop")).feed(USAGE[:-1]).over()
    assert client.relayed == data("A", "stop") and client.inserted == []
    assert client.meter.observer.usage.output_total == 3
    assert client.trace.removed == len(USAGE) - 1


def test_added_usage_commits_nothing() -> None:
    client = Client(added_usage=True).attempt().feed(USAGE)
    assert client.heard == [] and client.state is State.WAITING


# ---- comments that a protocol cannot stand


def test_comments_are_dropped_where_readers_fail_on_them() -> None:
    client = (
        Client(keeps_comments=False).attempt().feed(COMMENT).feed(data()).feed(COMMENT).feed(b": x\r\n\r").feed(b"\n")
    )
    client.feed(b"data: : keepalive\n\n")
    assert client.relayed == data() + b"data: : keepalive\n\n"
    assert client.trace.removed == 2 * len(COMMENT) + 7 and client.trace.heartbeats == 4
    client.check()


# ---- the end of the body


@pytest.mark.parametrize("head_sent", [False, True])
def test_a_first_event_without_its_blank_line(head_sent: bool) -> None:
    """It is delivered, so the end must be honest: an error event follows, also where it opens the head."""
    client = Client(limits(early_open=1.0)).attempt()
    if head_sent:
        client.tick(1.0)
    client.heard.clear()
    client.feed(data()[:-2], 2.0).over(BodyEnd.FRAMED, 3.0)
    write, insert, last = client.heard
    assert write == ("write", data()[:-2])
    assert insert[1].startswith(b"\n\ndata: {") and code(insert[1][2:]) == "upstream_interrupted"
    assert last == ("end", b"interrupted")
    client.check()


def test_a_last_event_without_its_blank_line() -> None:
    client = Client().attempt().feed(data("A", "stop")).feed(DONE[:-1]).over()
    assert client.heard[1:] == [("write", DONE[:-1]), ("insert", b"\n"), ("end", b"completed")]
    assert client.trace.repaired == 1
    client.check()


@pytest.mark.parametrize("rest", [b'data: {"choices":[', b": x", b"event: y\n", b"data: [DON"])
def test_a_rest_that_is_no_event(rest: bytes) -> None:
    client = Client().attempt().feed(data()).feed(rest).over()
    assert client.relayed == data() and client.outcome.end is End.INTERRUPTED


def test_an_error_without_its_blank_line() -> None:
    assert Client().attempt().feed(ERROR[:-2]).over().heard == [("failed", b"upstream_error")]
    late = Client().attempt().feed(data()).feed(ERROR[:-1]).over()
    assert late.relayed == data() + ERROR[:-1] and late.inserted == [b"\n"] and late.outcome.end is End.FAILED


@pytest.mark.parametrize("how", [BodyEnd.CUT, BodyEnd.CLOSED])
def test_no_repair_where_nothing_framed_the_end(how: BodyEnd) -> None:
    client = Client().attempt().feed(data()).feed(DONE[:-1]).over(how)
    assert client.relayed == data() and client.outcome.end is End.INTERRUPTED


def test_an_end_before_the_head() -> None:
    client = Client().attempt(answered=False).over(BodyEnd.CUT)
    assert client.heard == [("failed", b"upstream_unreachable")]


# ---- endings from outside


def test_the_client_leaves_in_each_state() -> None:
    waiting = Client().attempt().end(GONE)
    assert waiting.heard == [("end", b"client_gone")]
    opened = Client(limits(early_open=1.0)).attempt().tick(1.0).end(GONE)
    assert opened.heard[-1] == ("end", b"client_gone") and len(opened.inserted) == 1
    committed = Client().attempt().feed(data()).end(GONE)
    assert committed.heard[-1] == ("end", b"client_gone") and committed.inserted == []
    tail = Client().attempt().feed(data("A", "stop")).end(GONE)
    assert tail.outcome.end is End.CLIENT_GONE
    ending = Client().attempt().feed(data("A", "stop")).feed(DONE).end(GONE)
    assert ending.outcome == Outcome(End.COMPLETED, "stop"), "the terminal event was in its transport"
    ended = Client().attempt().feed(data("A", "stop")).feed(DONE).over().end(GONE)
    assert ended.outcome.end is End.COMPLETED


def test_who_reads_on_without_a_client() -> None:
    assert Client().attempt().feed(data()).end(GONE).machine.drain() is not None
    assert Client().attempt().end(GONE).machine.drain() is None, "nothing was delivered"
    assert Client().attempt().feed(data()).machine.drain() is None, "the client is there"
    assert Client().attempt().feed(data()).end(STOPPED).machine.drain() is None


def test_stopped_in_each_state() -> None:
    assert Client().attempt().end(STOPPED).heard == [("end", b"stopped")]
    committed = Client().attempt().feed(data()).feed(b"data: {").end(STOPPED)
    assert committed.relayed == data()
    assert code(committed.inserted[0]) == "stopped" and committed.heard[-1] == ("end", b"stopped")
    ending = Client().attempt().feed(data("A", "stop")).feed(DONE).end(STOPPED)
    assert ending.outcome.end is End.COMPLETED and ending.inserted == []
    assert Client(limits(max_event=5)).attempt().feed(b"data: xx").end(STOPPED).heard[-1] == ("abort", b"stopped")


def test_a_rest_between_attempts() -> None:
    client = Client(limits(first_event=5.0, stall=5.0, stall_with_pings=5.0, open=240.0)).attempt()
    client.machine.rest()
    assert client.tick(100.0).heard == [] and client.machine.due() == 240.0


# ---- any course


class AnyCourse(RuleBasedStateMachine):
    """Whatever happens in whatever order: what is known stays true of every client."""

    @initialize(
        commit=st.sampled_from(Commit),
        added=st.booleans(),
        keeps=st.booleans(),
        large=st.sampled_from([40, 10_000]),
        early=st.sampled_from([None, 3.0]),
    )
    def begin(self, commit: Commit, added: bool, keeps: bool, large: int, early: float | None) -> None:
        chosen = limits(
            commit=commit,
            max_event=large,
            early_open=early,
            early_open_cold=early,
            keepalive=2.0,
            stall=8.0,
            stall_with_pings=20.0,
            first_event=15.0,
            open=60.0,
            total=120.0,
            end_grace=1.0,
        )
        self.client = Client(chosen, added_usage=added, keeps_comments=keeps)
        self.client.attempt(0.0)
        self.now = 0.0
        self.alive = True
        self.attempts_bytes = 0
        self.outcome: Outcome | None = None

    @precondition(lambda self: self.alive)
    @rule(
        pieces=st.lists(
            st.sampled_from(
                [ROLE, data("A"), FINISH, USAGE, DONE, ERROR, COMMENT, b"\n", b"\r", b"\r\n", b"data: {", b"}",
                 b": x\r\n\r", data("B")[:-2], b"\n\r", b"\xef\xbb\xbf", b"x" * 30]
            ),
            min_size=1,
            max_size=4,
        )
    )  # fmt: skip
    def feed(self, pieces: list[bytes]) -> None:
        piece = b"".join(pieces)
        ended = self.client.state is State.ENDED
        before = self.client.trace.released
        self.client.feed(piece, self.now)
        if ended:
            assert self.client.trace.released == before, "nothing is released once it has ended"
        self._look()

    @rule(seconds=st.sampled_from([0.02, 0.5, 2.0, 5.0, 11.0]), drained=st.booleans())
    def wait(self, seconds: float, drained: bool) -> None:
        self.now += seconds
        self.client.tick(self.now, drained)
        self._look()

    @precondition(lambda self: self.alive)
    @rule(how=st.sampled_from(BodyEnd))
    def over(self, how: BodyEnd) -> None:
        self.client.over(how, self.now)
        self.alive = False
        self._look()

    @rule(outcome=st.sampled_from([GONE, STOPPED]))
    def end(self, outcome: Outcome) -> None:
        self.client.end(outcome, self.now)
        self._look()

    @precondition(lambda self: self.client.state is not State.ENDED)
    @rule()
    def hold_too_much(self) -> None:
        if self.client.machine.held:
            self.client.pass_plainly(self.now)
            assert self.client.machine.held == 0 or self.client.machine.plain
        self._look()

    @rule(on=st.booleans())
    def pause(self, on: bool) -> None:
        (self.client.clock.pause if on else self.client.clock.resume)(self.now)

    @precondition(lambda self: self.client.failures and self.client.state is State.WAITING and not self.alive)
    @rule()
    def try_again(self) -> None:
        self.client.attempt(self.now)
        self.alive = True

    def _look(self) -> None:
        client = self.client
        if client.said and client.said[-1][0] == "failed":
            assert client.relayed == b"", "an attempt fails only before anything of it was delivered"
            self.alive = False
        if client.machine.outcome is not None:
            if self.outcome is None:
                self.outcome = client.machine.outcome
            assert client.machine.outcome is self.outcome, "the first ending wins"

    @invariant()
    def what_is_always_so(self) -> None:
        client = self.client
        client.check()
        trace = client.trace
        state = client.state
        held = 0 if client.machine.plain else client.machine.held
        assert trace.released + trace.removed + held <= trace.received
        words = [word for word, _ in client.all_said]
        errors = [part for word, part in client.all_said if word == "insert" and b'"error":' in part]
        assert len(errors) <= 1
        assert words.count("end") + words.count("abort") <= 1
        if "end" in words or "abort" in words:
            assert state is State.ENDED and words[-1] in ("end", "abort")
        if state is State.ENDED and errors:
            assert client.outcome.end in (End.INTERRUPTED, End.STALLED, End.STOPPED, End.REFUSED)
            assert client.body.endswith(errors[0])
        if state is State.WAITING:
            assert client.relayed == b""
        wire = trace.wire(0.0, "", 0)
        assert cut_out(client.body, wire.insertions) == client.relayed
        if state is not State.ENDED:
            assert client.machine.due() < NEVER


TestAnyCourse = AnyCourse.TestCase
TestAnyCourse.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)


def test_patience() -> None:
    """The limits that these tests call patient nest."""
    assert PATIENT.nesting_error() is None
