"""What the client hears when every attempt has failed: a status, or the error event where the head is out already."""

# ruff: noqa: E501  a case a line
from collections.abc import Mapping

import pytest

from tests.stand.client import End
from tests.stand.stand import Stand
from tests.stand.wire import (
    CHAT,
    DONE,
    KEEPALIVE,
    chat,
    error_event,
    error_in,
    without_keepalives,
)

Fields = Mapping[str, object]

GOOD: Fields = {"events": CHAT}
COMPLETION: Fields = {"text": "whole", "id": "x", "created": 1}


def stalled(after_events: int = 0, **fields: object) -> Fields:
    """A stream that stops but stays open."""
    return {"events": CHAT, "cut": {"after_events": after_events, "how": "stall"}, **fields}


def cut(how: str, **place: object) -> Fields:
    """A stream that is cut."""
    return {"events": CHAT, "cut": {"how": how, **place}}


def first(event: str) -> Fields:
    """A 200 stream whose first event is `event`."""
    return {"events": [event]}


MODEL_UNKNOWN = {
    "error": {"message": "no such model", "type": "invalid_request_error", "param": None, "code": "model_not_found"}
}


FINALS: dict[str, tuple[str, Fields, Fields, int, str]] = {
    "all limited": ("pair", {"status": 429}, {"status": 429}, 429, "upstream_rate_limited"),
    "one limited": ("pair", {"status": 429}, {"status": 500}, 502, "upstream_error"),
    "one limited, the other way": ("pair", {"status": 500}, {"status": 429}, 502, "upstream_error"),
    "one timed out": ("impatient", stalled(), {"status": 500}, 504, "upstream_timeout"),
    "the channel's own key": ("one", {"status": 401}, {}, 502, "upstream_error"),
    "the channel's own balance": ("one", {"status": 402}, {}, 502, "upstream_error"),
    "the channel's own rights": ("one", {"status": 403}, {}, 502, "upstream_error"),
    "its unknown model": ("one", {"status": 404, "body": MODEL_UNKNOWN}, {}, 502, "upstream_error"),
    "overloaded": ("one", {"status": 529}, {}, 529, "upstream_error"),
    "HTML": ("one", {"body": "<html></html>", "content_type": "text/html"}, {}, 502, "upstream_bad_reply"),
    "lost": ("one", {"refuse": {"when": "body", "how": "rst"}}, {}, 502, "upstream_unreachable"),
    "timed out upstream": ("one", {"status": 504}, {}, 504, "upstream_timeout"),
    "a first event's limit": ("one", first(error_event("rate_limit_exceeded")), {}, 429, "upstream_rate_limited"),
    "a first event's status": ("one", first(error_event("server_error")), {}, 500, "upstream_error"),
    "a first event's overload": ("one", first(error_event("overloaded_error")), {}, 529, "upstream_error"),
    "a first event's number": ("one", first(error_event(503)), {}, 503, "upstream_error"),
    "a first event's timeout": ("one", first(error_event("timeout")), {}, 504, "upstream_timeout"),
    "a first event about our key": ("one", first(error_event("invalid_api_key")), {}, 502, "upstream_error"),
    "the last was the client's fault": ("pair", {"status": 500}, {"status": 400, "body": {"error": {"code": "c", "message": "yours"}}}, 400, "c"),
    "failing and no stream": ("pair", {"status": 429}, {"body": "x", "content_type": "text/html"}, 502, "upstream_bad_reply"),
}  # fmt: skip


@pytest.mark.parametrize("name", FINALS)
def test_the_answer_when_all_fail(stand: Stand, name: str) -> None:
    pattern, one, two, status, code = FINALS[name]
    model = stand.model(pattern, one, two)
    reply = stand.ask(chat(model))
    assert (reply.status, error_in(reply.body)["code"]) == (status, code)
    assert reply.header("content-type") == "application/json"
    entry = stand.entry(model)
    source = "client" if status == 400 else "upstream"
    assert (entry.id, entry.status, entry.end, entry.source) == (reply.id, status, "refused", source)
    assert entry.usage_origin == "none"
    assert entry.wire.released == (len(reply.body) if status == 400 else 0)


@pytest.mark.parametrize(
    ("one", "two", "seconds"),
    [("7", "20", "7"), ("20", "7", "7"), ("3600", "100", "60"), ("0", "9", "1")],
    ids=["first", "second", "capped", "at least a second"],
)
def test_all_limited_says_the_earliest_recovery(stand: Stand, one: str, two: str, seconds: str) -> None:
    def limited(wait: str) -> Fields:
        return {"status": 429, "headers": {"retry-after": wait}}

    model = stand.model("pair", limited(one), limited(two))
    reply = stand.ask(chat(model))
    assert (reply.status, reply.header("retry-after")) == (429, seconds)
    assert reply.header("retry-after-ms") is not None
    assert reply.header("x-should-retry") is None
    assert error_in(reply.body)["type"] == "rate_limit_error"


# ---- with the head already out


def test_early_open_still_fails_over(stand: Stand) -> None:
    model = stand.model("early", {"status": 500, "head_delay": 0.35}, {"events": CHAT, "first_delay": 0.05})
    reply = stand.ask(chat(model, usage=True))
    assert reply.pieces[0].data == KEEPALIVE
    assert reply.header("content-type") == "text/event-stream; charset=utf-8"
    assert without_keepalives(reply.body) == "".join(CHAT).encode()
    entry = stand.entry(model)
    assert entry.early_open
    assert [one.verdict for one in entry.attempts] == ["upstream_error", "relay"]
    assert entry.wire.keepalives >= 1


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"status": 500, "head_delay": 0.35}, "upstream_error"),
        ({"status": 429, "head_delay": 0.35}, "upstream_rate_limited"),
        (stalled(), "upstream_timeout"),
        ({"events": CHAT, "first_delay": 0.35, "cut": {"how": "fin", "after_events": 0}}, "upstream_unreachable"),
        ({"events": CHAT, "first_delay": 0.35, "cut": {"how": "rst", "after_events": 0}}, "upstream_unreachable"),
        ({"events": [error_event("server_error")], "first_delay": 0.35}, "upstream_error"),
        ({"events": [error_event("context_length_exceeded")], "first_delay": 0.35}, "bad_request"),
        ({"status": 400, "head_delay": 0.35}, "bad_request"),
        ({"body": "<html></html>", "content_type": "text/html", "head_delay": 0.35}, "upstream_bad_reply"),
        ({**COMPLETION, "stream": False, "head_delay": 0.35}, "upstream_bad_reply"),
    ],
    ids=["500", "429", "timeout", "lost", "reset", "error", "client's error", "client's fault", "HTML", "JSON"],
)
def test_an_early_opened_stream_ends_with_the_error_event(stand: Stand, fields: Fields, code: str) -> None:
    """The last failure is said in the stream, never in a silent end."""
    model = stand.model("early-late" if code == "upstream_timeout" else "early-one", fields)
    reply = stand.ask(chat(model))
    assert (reply.status, reply.end) == (200, End.FRAMED)
    error = error_in(without_keepalives(reply.body))
    assert (error["code"], error["type"], error["param"]) == (code, "server_error", None)
    assert error["message"]
    entry = stand.entry(model)
    assert (entry.end, entry.status, entry.early_open) == ("refused", 200, True)
    assert DONE.encode() not in reply.body


def test_a_late_reply_to_an_early_opened_stream_keeps_the_head_that_was_sent(stand: Stand) -> None:
    """Upstream headers that come too late are dropped."""
    late = {
        "events": CHAT,
        "head_delay": 0.35,
        "headers": {"openai-processing-ms": "5"},
        "content_type": "text/event-stream",
    }
    model = stand.model("early-one", late)
    reply = stand.ask(chat(model, usage=True))
    assert reply.header("openai-processing-ms") is None
    assert reply.header("content-type") == "text/event-stream; charset=utf-8"
    assert without_keepalives(reply.body) == "".join(CHAT).encode()


def test_an_unanswered_stream_is_refused_at_the_limit_for_opening(stand: Stand) -> None:
    """`open` bounds all attempts together."""
    model = stand.model("short", {"events": [": x\n\n"], "cut": {"how": "stall"}, "heartbeats": {"every": 0.1}})
    reply = stand.ask(chat(model))
    assert reply.status == 504
    assert stand.entry(model).end == "refused"


@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_early_opened_stream_that_is_ended_while_it_reads_a_fault_says_so(stand: Stand, status: int) -> None:
    cut = {"at_byte": 5, "how": "stall"}
    slow = {"status": status, "head_delay": 0.3, "content_type": "application/json", "body": "{" + "x" * 99, "cut": cut}
    model = stand.model("early-short", slow)
    reply = stand.ask(chat(model))
    assert stand.entry(model).end in ("stopped", "refused")
    assert error_in(without_keepalives(reply.body))["message"]
