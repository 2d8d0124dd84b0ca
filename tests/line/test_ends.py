"""How a stream ends that does not end well, and what its client is told."""

from collections.abc import Mapping

import pytest

from headrace.relay.reply import FAULT_S
from tests.line.body import delivered
from tests.stand.client import End
from tests.stand.stand import Stand
from tests.stand.wire import (
    C0,
    C1,
    C3,
    C4,
    CHAT,
    DONE,
    KEEPALIVE,
    chat,
    chunk,
    error_event,
    error_in,
    events,
)

Fields = Mapping[str, object]


INTERRUPTED = "upstream_interrupted"


@pytest.mark.parametrize(
    ("name", "cut"),
    [
        ("reset", {"how": "rst"}),
        ("closed", {"how": "fin"}),
        ("clean", {"how": "clean"}),
        ("reset in an event", {"after_events": 2, "extra": -12, "how": "rst"}),
        ("closed in an event", {"after_events": 2, "extra": 30, "how": "fin"}),
        ("clean in an event", {"after_events": 2, "extra": 30, "how": "clean"}),
        ("reset before the blank line", {"after_events": 2, "extra": -1, "how": "rst"}),
    ],
)
def test_a_broken_stream_ends_with_the_error_event(stand: Stand, name: str, cut: Fields) -> None:
    """Cases B039, B042, B043: whole events, then one error event, a framed end, and a connection that goes on."""
    place = {"after_events": 2, **cut}
    model = stand.model("one", {"events": CHAT, "cut": place})
    with stand.connect() as client:
        stand.send(client, chat(model))
        reply = client.rest()
        assert reply.end is End.FRAMED
        assert events(reply.body)[:-1] == [C0.encode(), C1.encode()]
        error = error_in(reply.body)
        assert (error["code"], error["type"], error["param"]) == (INTERRUPTED, "server_error", None)
        assert DONE.encode() not in reply.body
        assert stand.send(client, path="/healthz", method="GET").status == 200
    entry = stand.entry(model)
    assert (entry.end, entry.kind, entry.source, entry.status) == ("interrupted", INTERRUPTED, "upstream", 200)
    assert delivered(stand, model, reply) == (C0 + C1).encode()


@pytest.mark.parametrize("how", ["rst", "fin", "clean"])
@pytest.mark.parametrize("after", [4, 5])
def test_a_cut_behind_the_finish_loses_nothing(stand: Stand, after: int, how: str) -> None:
    """Case B039: every choice has finished."""
    model = stand.model("one", {"events": CHAT, "cut": {"after_events": after, "how": how}})
    reply = stand.ask(chat(model, usage=True))
    assert reply.body == "".join(CHAT[:after]).encode()
    assert reply.end is End.FRAMED
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin) == ("completed", "upstream" if after == 5 else "estimated")


def test_a_stalled_stream_ends_with_the_error_event(stand: Stand) -> None:
    """Case B015."""
    model = stand.model("impatient", {"events": CHAT, "cut": {"after_events": 2, "how": "stall"}}, {"events": CHAT})
    reply = stand.ask(chat(model))
    assert error_in(reply.body)["code"] == "upstream_stalled"
    assert events(reply.body)[:2] == [C0.encode(), C1.encode()]
    assert KEEPALIVE in reply.body
    entry = stand.entry(model)
    assert (entry.end, len(entry.attempts)) == ("stalled", 1)
    assert entry.wire.last_event_s is not None
    assert entry.duration_s - entry.wire.last_event_s >= 0.6
    assert stand.calls(model)[0].closed_early


SLOW_FAULT = {
    "status": 400,
    "body": '{"error":{"message":"' + "x" * 500 + '","type":"invalid_request_error"}}',
}


def test_a_slow_error_reply_comes_whole(stand: Stand) -> None:
    """It pauses for longer than it is held for."""
    model = stand.model("one", {**SLOW_FAULT, "writes": {"at": {"200": FAULT_S + 0.4}}})
    reply = stand.ask(chat(model, stream=False))
    assert (reply.status, reply.end) == (400, End.FRAMED)
    assert reply.body == stand.calls(model)[0].sent == str(SLOW_FAULT["body"]).encode()
    assert stand.entry(model).status == 400


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_error_reply_that_stops_half_way_is_not_framed_as_whole(stand: Stand, framing: str) -> None:
    model = stand.model("impatient", {**SLOW_FAULT, "framing": framing, "cut": {"at_byte": 200, "how": "stall"}})
    with stand.connect() as client:
        stand.send(client, chat(model, stream=False))
        reply = client.rest()
    assert reply.status == 400 and reply.end in (End.CLOSED, End.RESET)
    assert len(reply.body) <= 200 and reply.header("content-length") in (None, str(len(str(SLOW_FAULT["body"]))))
    entry = stand.entry(model)
    assert (entry.end, entry.status, len(entry.attempts)) == ("stalled", 400, 1)


def test_pings_do_not_keep_a_dead_stream_alive(stand: Stand) -> None:
    """Case B066: they count once, up to the larger limit."""
    dead = {"events": CHAT, "cut": {"after_events": 2, "how": "stall"}, "heartbeats": {"every": 0.1}}
    model = stand.model("impatient", dead)
    reply = stand.ask(chat(model))
    assert error_in(reply.body)["code"] == "upstream_stalled"
    entry = stand.entry(model)
    assert entry.end == "stalled"
    assert entry.wire.last_event_s is not None
    assert entry.duration_s - entry.wire.last_event_s >= 1.2
    assert entry.wire.heartbeats >= 3


def test_any_event_is_progress(stand: Stand) -> None:
    """Case B067."""
    quiet = ['data: {"choices":[{"index":0,"delta":{}}]}\n\n', 'data: {"x":1}\n\n', 'event: y\ndata: {"z":2}\n\n']
    model = stand.model("impatient", {"events": [C0, *quiet, C3, DONE], "gap": 0.2})
    reply = stand.ask(chat(model))
    assert reply.body.endswith(DONE.encode())
    assert stand.entry(model).end == "completed"


def test_the_upstreams_own_error_ends_the_stream(stand: Stand) -> None:
    """Case B046: its bytes, and nothing behind them."""
    model = stand.model("one", {"events": [C0, error_event(502, "limit", choices=[])]})
    reply = stand.ask(chat(model))
    assert reply.body == stand.calls(model)[0].sent
    entry = stand.entry(model)
    assert (entry.end, entry.kind, entry.source) == ("failed", "upstream_error", "upstream")


def test_a_null_error_is_none(stand: Stand) -> None:
    """Case B046, the reverse trap."""
    model = stand.model(
        "one", {"events": [chunk({"content": "x"}, error=None), chunk({"content": "y"}, error={"a": 1}), C3, DONE]}
    )
    stand.ask(chat(model))
    assert stand.entry(model).end == "completed"


@pytest.mark.parametrize(
    ("fields", "end", "reason"),
    [
        ({"text": "a b", "finish_reason": "length"}, "incomplete", "length"),
        ({"text": "a b", "finish_reason": "content_filter"}, "incomplete", "content_filter"),
        ({"refusal": "no"}, "incomplete", "refusal"),
        ({"text": "a b", "finish_reason": "odd"}, "completed", "odd"),
        ({"events": [C0, DONE]}, "incomplete", "no_finish_reason"),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
def test_an_early_stop_of_the_model_is_incomplete(
    stand: Stand, fields: Fields, end: str, reason: str, stream: bool
) -> None:
    if "events" in fields and not stream:
        fields = {"text": "a", "finish_reason": "length"}
        end, reason = "incomplete", "length"
    model = stand.model("one", fields)
    stand.ask(chat(model, stream=stream))
    entry = stand.entry(model)
    assert (entry.end, entry.reason) == (end, reason)


def test_two_choices_end_when_both_have(stand: Stand) -> None:
    """Case B041."""
    second = [chunk({"content": "y"}, index=1)] * 5
    stream = [C0, chunk({"content": "x"}, index=1), C3, *second, chunk({}, "length", index=1), C4, DONE]
    model = stand.model("one", {"events": stream, "gap": 0.01})
    reply = stand.ask(chat(model, usage=True))
    assert reply.body == "".join(stream).encode()
    assert stand.entry(model).finish_reasons == ("stop", "length")


def test_total_ends_a_stream_in_words_of_its_own(stand: Stand) -> None:
    model = stand.model("short", {"text": "word ", "repeat": 1000, "gap": 0.05})
    reply = stand.ask(chat(model))
    error = error_in(reply.body)
    assert error["code"] == "stopped"
    assert "again" not in str(error["message"])
    entry = stand.entry(model)
    assert (entry.end, entry.reason) == ("stopped", "total")
