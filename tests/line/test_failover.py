"""Which failures go to the next candidate, which to the client, and what the client hears when all have failed."""

# ruff: noqa: E501  a case a line
import json
from collections.abc import Mapping

import pytest

from headrace.model.entry import Entry
from tests.stand.client import End, Reply
from tests.stand.stand import Stand, until
from tests.stand.wire import (
    C0,
    C1,
    CHAT,
    DONE,
    ROLE_ONLY,
    TEXT,
    chat,
    chunk,
    error_event,
    error_in,
    events,
    request,
    texts,
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

# what ch1 does → what the entry says of it
FAILURES: dict[str, tuple[Fields, str]] = {
    "closed at the head": ({"refuse": {"when": "body", "how": "fin"}}, "upstream_unreachable"),
    "reset at the head": ({"refuse": {"when": "body", "how": "rst"}}, "upstream_unreachable"),
    "head cut, FIN": (cut("fin", head_bytes=25), "upstream_unreachable"),
    "head cut, RST": (cut("rst", head_bytes=25), "upstream_unreachable"),
    "reset before the first event": (cut("rst", after_events=0), "upstream_unreachable"),
    "closed before the first event": (cut("fin", after_events=0), "upstream_unreachable"),
    "reset in the first event": (cut("rst", after_events=0, extra=40), "upstream_unreachable"),
    "closed in the first event": (cut("fin", after_events=0, extra=-1), "upstream_unreachable"),
    "not HTTP": ({"status": 200, "headers": {"content-length": "x"}, "body": "x"}, "upstream_bad_reply"),
    **{f"status {status}": ({"status": status}, "upstream_error") for status in (401, 402, 403, 500, 502, 503, 520, 529)},
    **{f"status {status}": ({"status": status}, "upstream_timeout") for status in (408, 504)},
    "status 429": ({"status": 429}, "upstream_rate_limited"),
    "status 429 as a stream": (
        {"status": 429, "content_type": "text/event-stream", "events": [error_event("rate_limit_exceeded")]},
        "upstream_rate_limited",
    ),
    "status 503 as HTML": ({"status": 503, "body": "<html></html>"}, "upstream_error"),
    "status 500, body reset": ({"status": 500, "cut": {"at_byte": 5, "how": "rst"}}, "upstream_error"),
    "404 about the model": ({"status": 404, "body": MODEL_UNKNOWN}, "upstream_error"),
    "redirect": ({"status": 302, "headers": {"location": "http://127.0.0.1:9/"}, "body": "gone"}, "upstream_bad_reply"),
    "empty 200 stream": ({"events": []}, "upstream_bad_reply"),
    "only heartbeats": ({"events": [": hello\n\n", "\n", "data: still here\n\n"]}, "upstream_bad_reply"),
    "empty 200": ({"body": "", "content_type": "application/json"}, "upstream_bad_reply"),
    "200 HTML": ({"body": "<html></html>", "content_type": "text/html"}, "upstream_bad_reply"),
    "200 text": ({"body": "busy", "content_type": "text/plain"}, "upstream_bad_reply"),
    "200 JSON error": ({"body": {"error": {"message": "m", "code": "server_error"}}}, "upstream_error"),
    "200 JSON error of a limit": ({"body": {"error": {"message": "m", "code": "rate_limit_exceeded"}}}, "upstream_rate_limited"),
    "JSON error called a stream": (
        {"body": json.dumps({"error": {"message": "m"}}), "content_type": "text/event-stream"},
        "upstream_bad_reply",
    ),
    "first event an error": (first(error_event("server_error")), "upstream_error"),
    "first event an overload": (first(error_event(503)), "upstream_error"),
    "first event a limit": (first(error_event("rate_limit_exceeded")), "upstream_rate_limited"),
    "first event about the key": (first(error_event("invalid_api_key")), "upstream_error"),
    "first event a timeout": (first(error_event(408)), "upstream_error"),
    "first event a text": (first('data: {"error":"overloaded"}\n\n'), "upstream_error"),
    "heartbeats, then an error": ({"events": [": x\n\n", error_event("server_error")]}, "upstream_error"),
}  # fmt: skip


def failed_over(stand: Stand, model: str, reply: Reply, verdict: str, upstream_body: bytes | None = None) -> Entry:
    """The client saw ch2 alone; one entry tells of both."""
    assert reply.status == 200, reply
    assert reply.end is End.FRAMED
    entry = stand.entry(model)
    assert entry.id == reply.id
    assert [(one.channel, one.verdict) for one in entry.attempts] == [("ch1", verdict), ("ch2", "relay")]
    assert entry.end == "completed"
    second = stand.calls(model, stand.ch2)
    assert len(second) == 1
    assert reply.body == (upstream_body or second[0].sent)
    assert [call.credential for call in stand.calls(model)] == ["sk-upstream-1", "sk-upstream-2"]
    return entry


@pytest.mark.parametrize("name", FAILURES)
def test_a_failure_before_the_first_event_is_invisible(stand: Stand, name: str) -> None:
    fields, verdict = FAILURES[name]
    model = stand.model("pair", fields, GOOD)
    reply = stand.ask(chat(model, usage=True))
    failed_over(stand, model, reply, verdict)
    assert texts(reply.body) == TEXT


@pytest.mark.parametrize("pattern", ["refusing", "not-tls"])
def test_a_channel_that_cannot_be_reached_is_passed_over(stand: Stand, pattern: str) -> None:
    model = stand.model(pattern, {}, GOOD)
    reply = stand.ask(chat(model, usage=True))
    entry = stand.entry(model)
    assert [(one.channel, one.verdict, one.status) for one in entry.attempts] == [
        (pattern, "upstream_unreachable", None),
        ("ch2", "relay", 200),
    ]
    assert not entry.attempts[0].maybe_executed
    assert texts(reply.body) == TEXT


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"head_delay": 30}, id="no head"),
        pytest.param(stalled(), id="no event"),
        pytest.param({"events": CHAT, "cut": {"after_events": 0, "extra": 20, "how": "stall"}}, id="half an event"),
        pytest.param(stalled(heartbeats={"every": 0.05, "form": ": x\n\n"}), id="only pings"),
    ],
)
def test_no_first_event_in_time(stand: Stand, fields: Fields) -> None:
    model = stand.model("impatient", fields, GOOD)
    reply = stand.ask(chat(model, usage=True))
    entry = failed_over(stand, model, reply, "upstream_timeout")
    assert stand.calls(model, stand.ch1)[0].closed_early, "case B053: the silent upstream is let go"
    assert entry.attempts[0].ended_s >= 0.5


def test_a_head_that_is_no_stream_fails_at_once(stand: Stand) -> None:
    """What the head alone rules out waits for no body."""
    model = stand.model("impatient", stalled(content_type="text/html"), GOOD)
    entry = failed_over(stand, model, stand.ask(chat(model, usage=True)), "upstream_bad_reply")
    assert entry.attempts[0].ended_s < 0.5


@pytest.mark.parametrize(
    "fields",
    [
        {"events": [ROLE_ONLY], "cut": {"how": "stall"}},
        {"events": [ROLE_ONLY, error_event("server_error")]},
        {"events": [ROLE_ONLY], "cut": {"how": "rst"}},
    ],
    ids=["stall", "error", "reset"],
)
def test_first_output_holds_the_preamble_back(stand: Stand, fields: Fields) -> None:
    """Case B054: with `commit: first_output` a failure right behind the preamble is invisible too."""
    model = stand.model("held", fields, {"events": [ROLE_ONLY, *CHAT]})
    reply = stand.ask(chat(model, usage=True))
    assert reply.body.count(ROLE_ONLY.encode()) == 1
    entry = stand.entry(model)
    assert [one.channel for one in entry.attempts] == ["ch1", "ch2"]
    assert texts(reply.body) == TEXT


@pytest.mark.parametrize(
    "fields",
    [
        {"events": [ROLE_ONLY, error_event("server_error")]},
        {"events": [C0, C1, error_event("server_error")]},
        {"events": [C0, C1], "cut": {"how": "rst"}},
        {"events": [C0], "cut": {"how": "rst"}},
        {"events": [C0], "cut": {"how": "clean"}},
    ],
    ids=["preamble and error", "error", "reset", "reset after one", "early end"],
)
def test_nothing_is_tried_after_the_first_event(stand: Stand, fields: Fields) -> None:
    """Case B050."""
    model = stand.model("often", fields, GOOD)
    reply = stand.ask(chat(model))
    assert reply.status == 200
    said = [event for event in events(reply.body) if b'"error"' not in event]
    assert [event.decode() for event in said] == [event for event in fields["events"] if '"error"' not in event]  # type: ignore[attr-defined]
    assert reply.body.count(b'"error"') == 1
    assert not stand.calls(model, stand.ch2)
    assert len(stand.entry(model).attempts) == 1


# ---- without streaming

REPLY_FAILURES: dict[str, tuple[Fields, str]] = {
    "reset before the head": ({"refuse": {"when": "body", "how": "rst"}}, "upstream_unreachable"),
    "status 401": ({"status": 401}, "upstream_error"),
    "status 500": ({"status": 500}, "upstream_error"),
    "status 429": ({"status": 429}, "upstream_rate_limited"),
    "404 about the model": ({"status": 404, "body": MODEL_UNKNOWN}, "upstream_error"),
    "empty 200": ({"body": "", "content_type": "application/json"}, "upstream_bad_reply"),
    "200 HTML": ({"body": "<html></html>", "content_type": "text/html"}, "upstream_bad_reply"),
    "200 JSON error": ({"body": {"error": {"message": "m", "code": "server_error"}}}, "upstream_error"),
    "an unasked stream": ({"stream": True}, "upstream_bad_reply"),
}


@pytest.mark.parametrize("name", REPLY_FAILURES)
def test_a_bad_reply_without_streaming_is_replaced(stand: Stand, name: str) -> None:
    fields, verdict = REPLY_FAILURES[name]
    model = stand.model("pair", fields, COMPLETION)
    reply = stand.ask(chat(model, stream=False))
    failed_over(stand, model, reply, verdict)
    assert json.loads(reply.body)["choices"][0]["message"]["content"] == "whole"


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"text": "x", "first_delay": 30}, 504, "upstream_timeout"),
        ({"text": "x", "cut": {"at_byte": 50, "how": "rst"}}, 502, "upstream_interrupted"),
        ({"text": "x", "cut": {"at_byte": 50, "how": "stall"}}, 504, "upstream_stalled"),
    ],
    ids=["no byte", "reset", "stall"],
)
def test_a_reply_that_may_have_been_made_is_not_asked_for_again(
    stand: Stand, fields: Fields, status: int, code: str
) -> None:
    model = stand.model("impatient", fields, COMPLETION)
    reply = stand.ask(chat(model, stream=False))
    assert reply.status == status
    assert error_in(reply.body)["code"] == code
    assert not stand.calls(model, stand.ch2)


@pytest.mark.parametrize("code", ["invalid_request_error", "context_length_exceeded", "model_not_found"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_json_error_in_a_200_is_always_replaced(stand: Stand, code: str, stream: bool) -> None:
    model = stand.model("pair", {"body": {"error": {"message": "m", "code": code}}}, GOOD if stream else COMPLETION)
    reply = stand.ask(chat(model, stream=stream, usage=stream))
    assert reply.status == 200
    assert [one.channel for one in stand.entry(model).attempts] == ["ch1", "ch2"]


def test_a_first_event_that_does_not_know_the_model_is_replaced(stand: Stand) -> None:
    model = stand.model("pair", first(error_event("model_not_found")), GOOD)
    reply = stand.ask(chat(model, usage=True))
    assert reply.status == 200
    assert texts(reply.body) == TEXT


def test_a_json_completion_in_place_of_a_stream_passes(stand: Stand) -> None:
    """Case B049 (c)."""
    model = stand.model("pair", {**COMPLETION, "stream": False}, GOOD)
    reply = stand.ask(chat(model))
    assert (reply.status, reply.header("content-type")) == (200, "application/json")
    assert reply.body == stand.calls(model)[0].sent
    entry = stand.entry(model)
    assert (entry.end, entry.usage_origin, len(entry.attempts)) == ("completed", "upstream", 1)
    assert (entry.usage.input_total, entry.usage.output_total) == (1, 2)


# ---- not tried again


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("status", [400, 404, 405, 409, 413, 415, 422])
def test_the_clients_own_fault_is_relayed_as_it_came(stand: Stand, status: int, stream: bool) -> None:
    body = json.dumps({"error": {"message": "yours", "type": "t", "param": "p", "code": "c"}, "extra": 1.0})
    model = stand.model("often", {"status": status, "body": body, "headers": {"x-should-retry": "false"}}, GOOD)
    reply = stand.ask(chat(model, stream=stream))
    assert (reply.status, reply.body.decode()) == (status, body)
    assert reply.header("x-should-retry") == "false"
    assert reply.header("content-type") == "application/json"
    entry = stand.entry(model)
    assert (entry.end, entry.source, entry.status) == ("refused", "client", status)
    assert len(stand.calls(model)) == 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param("", id="empty"),
        pytest.param("<html>no</html>", id="HTML"),
        pytest.param('["no"]', id="list"),
    ],
)
def test_a_fault_of_any_form_is_relayed(stand: Stand, body: str) -> None:
    model = stand.model("often", {"status": 422, "body": body}, GOOD)
    reply = stand.ask(chat(model))
    assert (reply.status, reply.body.decode()) == (422, body)
    assert len(stand.calls(model)) == 1


def test_a_first_event_that_is_the_clients_fault_becomes_its_status(stand: Stand) -> None:
    model = stand.model("often", first(error_event("context_length_exceeded", "too long by 5")), GOOD)
    reply = stand.ask(chat(model))
    assert reply.status == 400
    assert error_in(reply.body)["message"] == "too long by 5"
    assert not stand.calls(model, stand.ch2)


# ---- how often


@pytest.mark.parametrize(("pattern", "attempts"), [("one", 1), ("pair", 2), ("often", 3)])
def test_attempts_are_bounded(stand: Stand, pattern: str, attempts: int) -> None:
    """Case B057: by max_attempts; with candidates to spare nothing is asked twice, but for one repeat at the end."""
    failure: Fields = {"status": 503, "headers": {"retry-after-ms": "20"}}
    model = stand.model(pattern, failure, failure)
    reply = stand.ask(chat(model))
    assert reply.status == 502
    assert [one.channel for one in stand.entry(model).attempts] == ["ch1", "ch2", "ch2"][:attempts]
    assert len(stand.calls(model)) == attempts


@pytest.mark.parametrize("status", [429, 500, 503, 529])
def test_one_repeat_on_a_single_credential(stand: Stand, status: int) -> None:
    """Only two of the three attempts that are allowed: the repeat is one."""
    model = stand.model("twice", {"status": status, "headers": {"retry-after-ms": "20"}})
    reply = stand.ask(chat(model))
    assert reply.status == {429: 429, 529: 529}.get(status, 502)
    assert len(stand.calls(model)) == 2


def test_the_repeat_comes_after_a_pause(stand: Stand) -> None:
    model = stand.model("twice", {"events": CHAT, "sequence": [{"status": 500}, {}]})
    reply = stand.ask(chat(model, usage=True))
    assert texts(reply.body) == TEXT
    first, second = stand.entry(model).attempts
    assert second.started_s - first.ended_s >= 0.75


@pytest.mark.parametrize(
    "fields",
    [
        {"refuse": {"when": "body", "how": "rst"}},
        {"body": "<html></html>", "content_type": "text/html"},
        {"status": 401},
        {"status": 403},
        {"status": 429, "headers": {"retry-after": "4"}},
    ],
    ids=["lost", "HTML", "401", "403", "a long Retry-After"],
)
def test_no_repeat_where_the_same_credential_cannot_do_better(stand: Stand, fields: Fields) -> None:
    model = stand.model("twice", fields)
    stand.ask(chat(model))
    assert len(stand.calls(model)) == 1
    assert len(stand.entry(model).attempts) == 1


def test_a_client_that_leaves_ends_the_trying(stand: Stand) -> None:
    """Case B057: no further call after it has gone."""
    model = stand.model("twice", {"status": 503, "headers": {"retry-after-ms": "400"}})
    with stand.connect() as client:
        client.send(request(chat(model)))
        until(lambda: stand.ch1.calls(model), "the first call")
        client.reset()
    assert stand.entry(model).end == "client_gone"
    assert len(stand.calls(model)) == 1


def test_a_second_choice_is_remembered_as_possibly_executed(stand: Stand) -> None:
    model = stand.model("pair", {"refuse": {"when": "body", "how": "rst"}}, {"events": [chunk({"content": "x"}), DONE]})
    stand.ask(chat(model))
    first, second = stand.entry(model).attempts
    assert first.maybe_executed
    assert not second.maybe_executed


def test_a_credential_that_may_have_done_the_work_is_not_asked_again(stand: Stand) -> None:
    """Two routes, one account: the connection was lost behind the request, so nothing proves that nothing was done."""
    for name in ("twin-a", "twin-b"):
        stand.ch1.scenario(name, {"refuse": {"when": "body", "how": "rst"}})
    assert stand.ask(chat("twin")).status == 502
    entry = stand.entry("twin")
    assert [(one.verdict, one.maybe_executed) for one in entry.attempts] == [("upstream_unreachable", True)]


def test_a_json_head_cannot_keep_a_promised_stream_waiting(stand: Stand) -> None:
    """Once the client has a stream's head, a JSON reply can never be given to it: the next channel is asked at once."""
    slow = {"head_delay": 0.3, "content_type": "application/json", "body": "{", "cut": {"at_byte": 1, "how": "stall"}}
    model = stand.model("early", slow, {"events": CHAT})
    reply = stand.ask(chat(model))
    assert texts(reply.body) == TEXT
    entry = stand.entry(model)
    assert [one.verdict for one in entry.attempts] == ["upstream_bad_reply", "relay"]
    assert entry.early_open and entry.attempts[0].ended_s < 3


def test_a_json_reply_to_a_stream_that_does_not_come_is_replaced(stand: Stand) -> None:
    """It is waited for no longer than a first event, and another channel may do better."""
    slow = {"content_type": "application/json", "body": "{}", "cut": {"at_byte": 0, "how": "stall"}}
    model = stand.model("impatient", slow, {"events": CHAT})
    reply = stand.ask(chat(model))
    assert (reply.status, texts(reply.body)) == (200, TEXT)
    assert [one.verdict for one in stand.entry(model).attempts] == ["upstream_timeout", "relay"]
