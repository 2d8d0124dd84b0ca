"""Streams and replies through real sockets: the bytes, what is inserted where, and how each of them ends."""

import hashlib
import json
import threading
import time
import uuid
from collections.abc import Mapping

import pytest

from headrace.model.entry import Entry
from headrace.simulator.recorded import End as UpstreamEnd
from tests.stand.client import End, Reply
from tests.stand.stand import Stand, until
from tests.stand.wire import (
    C0,
    C1,
    C2,
    C3,
    C4,
    CHAT,
    DONE,
    KEEPALIVE,
    TEXT,
    chat,
    chunk,
    error_event,
    error_in,
    events,
    request,
    texts,
    without_keepalives,
)

Fields = Mapping[str, object]
KEEPALIVE_S = 0.2
GAP_S = 1.5 * KEEPALIVE_S
INTERRUPTED = "upstream_interrupted"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def delivered(stand: Stand, model: str, reply: Reply) -> bytes:
    """The client's body without the insertions, cut out as the entry says where they are; its hash is the entry's."""
    entry = stand.entry(model)
    assert entry.id == reply.id
    body = bytearray(reply.body)
    for offset, length in reversed(entry.wire.insertions):
        del body[offset : offset + length]
    assert sha256(body) == entry.wire.hash_in == entry.wire.hash_out
    assert len(body) == entry.wire.released
    assert len(reply.body) - len(body) == entry.wire.inserted
    return bytes(body)


def assert_whole_events(reply: Reply) -> None:
    """Every write ended at an event boundary."""
    for piece in reply.pieces:
        assert piece.data.endswith(b"\n\n"), piece.data[-80:]


# ---- the bytes

STREAMS: dict[str, Fields] = {
    "plain": {"events": CHAT},
    "one write": {"events": CHAT, "writes": "joined"},
    "byte by byte": {"events": CHAT, "writes": "byte"},
    "CRLF": {"events": [event.replace("\n", "\r\n") for event in CHAT], "writes": {"size": 7}},
    "CR": {"events": [event.replace("\n", "\r") for event in CHAT], "writes": {"size": 11}},
    "mixed line ends": {"line_end": "mixed", "text": "some words of text", "usage": "final"},
    "no space behind the colon": {"space": False, "text": "some words of text", "usage": "final"},
    "comments, ids, other fields": {
        "events": [": hi\n\n", "id: 7\n" + C0, "retry: 3000\n\n", C1 + ": x\n\n", "event: x\ndata\ndata: {}\n\n", C2, C3, C4, DONE]
    },
    "a character cut in two": {"events": CHAT, "writes": {"at": [len(C0) + C1.encode().index("北".encode()) + 1]}},
    "odd spelling": {
        "events": [
            'data: { "choices":[ {"delta":{"content":"\\u00e9\\ud83d"} ,"index" : 0,"finish_reason":null}],"x":1.0E+2}\n\n',
            C3,
            C4,
            DONE,
        ]
    },
    "unknown events and fields": {"events": [C0, 'data: {"type":"x","usage":null}\n\n', 'event: z\ndata: {"a":[]}\n\n', *CHAT[1:]]},
    "data after the end": {"events": [*CHAT, "data: more\n\n"]},
    "no [DONE]": {"events": CHAT[:-1]},
    "no blank line at the end": {"events": [*CHAT[:-1], DONE[:-2]]},
    "usage on each chunk": {"text": "some words of text", "usage": "every"},
    "many": {"text": "word ", "repeat": 3000, "usage": "final"},
    "one large event": {"events": [chunk({"content": "x" * 300_000}), *CHAT[1:]]},
    "two choices": {"n": 2, "text": "one two three", "usage": "final"},
    "tool calls": {"tool_calls": [{"name": "f", "arguments": {"a": 1}}], "usage": "final"},
    "gzip from the upstream": {"events": CHAT, "content_encoding": "gzip"},
    "close-delimited": {"events": CHAT, "framing": "close"},
    "Content-Length and trailers": {"events": CHAT, "framing": "length"},
    "trailers": {"events": CHAT, "trailers": {"x-t": "1"}},
}  # fmt: skip


@pytest.mark.parametrize("name", STREAMS)
def test_the_body_is_the_upstreams(stand: Stand, name: str) -> None:
    """Cases B001 to B024: whatever the stream looks like, its bytes are delivered as they came."""
    model = stand.model("one", STREAMS[name])
    reply = stand.ask(chat(model, usage=True))
    assert (reply.status, reply.end) == (200, End.FRAMED)
    call = stand.calls(model)[0]
    body = delivered(stand, model, reply)
    if name == "gzip from the upstream":
        assert body == "".join(CHAT).encode()
        assert reply.header("content-encoding") is None
    else:
        assert sha256(body) == call.sent_sha256
    entry = stand.entry(model)
    assert entry.end == "completed"
    assert entry.wire.keepalives == 0
    assert entry.usage_origin == "upstream"
    assert entry.usage.output_total


@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("first", 0),
        ("behind the first", len(C0)),
        ("in the usage event", sum(map(len, CHAT[:4])) + 9),
        ("in the end", -3),
    ],
)
def test_usage_survives_a_cut_anywhere(stand: Stand, name: str, at: int) -> None:
    """Case B002."""
    total = len("".join(CHAT).encode())
    model = stand.model("one", {"events": CHAT, "writes": {"at": {at % total + 1: 0.02}}})
    reply = stand.ask(chat(model, usage=True))
    assert delivered(stand, model, reply) == "".join(CHAT).encode()
    entry = stand.entry(model)
    assert (entry.usage.input_total, entry.usage.output_total, entry.end) == (1, 3, "completed")


@pytest.mark.parametrize(
    ("options", "sees_it"),
    [({}, False), ({"stream_options": {}}, False), ({"stream_options": {"include_usage": False}}, False),
     ({"stream_options": {"include_usage": True}}, True), ({"stream_options": None}, False)],
)  # fmt: skip
def test_the_usage_event_is_there_for_those_who_asked(stand: Stand, options: Fields, sees_it: bool) -> None:
    """Case B019: the upstream is asked in any case, once; billing does not depend on the option."""
    model = stand.model("one", {"text": "A B C", "usage": {"style": "asked", "prompt": 1, "completion": 3}})
    reply = stand.ask(chat(model) | options)
    call = stand.calls(model)[0]
    asked = call.json()
    assert isinstance(asked, dict)
    assert asked["stream_options"] == {"include_usage": True}
    assert call.body.count(b"include_usage") == 1
    usage_events = [event for event in events(call.sent) if b'"choices":[]' in event]
    assert len(usage_events) == 1
    assert reply.body == (call.sent if sees_it else call.sent.replace(usage_events[0], b""))
    entry = stand.entry(model)
    assert (entry.usage.input_total, entry.usage.output_total, entry.usage_origin) == (1, 3, "upstream")
    assert entry.wire.removed == (0 if sees_it else len(usage_events[0]))


def test_usage_is_not_asked_for_where_the_channel_forbids_it(stand: Stand) -> None:
    model = stand.model("estimate", {"text": "A B C"})
    body = request(chat(model)).partition(b"\r\n\r\n")[2]
    reply = stand.ask(body)
    call = stand.calls(model)[0]
    assert (call.body, reply.body) == (body, call.sent)


def test_the_request_goes_up_as_it_came(stand: Stand) -> None:
    """Cases B022, B024, B112: unknown members, spelling, order; one credential, and none of the client's."""
    body = (
        '{ "zzz": {"deep":[1.0E+2, "\\u00e9"]},"model" : "MODEL","stream":true,\n "messages":[],'
        '"stream_options":{"include_usage":true,"include_obfuscation":false},"enable_thinking":null }'
    )
    model = stand.model("one", {"events": CHAT})
    sent = body.replace("MODEL", model).encode()
    headers = {
        "user-agent": "test/1",
        "x-stainless-lang": "python",
        "openai-beta": "assistants=v2",
        "cookie": "a=canary",
        "x-api-key": "sk-hr-test-0123456789abcdef",
        "x-forwarded-for": "canary",
        "openai-organization": "canary",
        "connection": "keep-alive, x-foo",
        "x-foo": "canary",
        "x-request-id": "mine-1",
        "accept-encoding": "gzip",
    }
    reply = stand.ask(sent, headers=headers, path="/v1/chat/completions?key=sk-hr-test-0123456789abcdef")
    assert reply.status == 200
    call = stand.calls(model)[0]
    assert call.body == sent
    assert call.target == "/v1/chat/completions"
    up = {name.lower(): value for name, value in call.headers}
    assert up["authorization"] == "Bearer sk-upstream-1"
    assert (up["user-agent"], up["x-stainless-lang"], up["openai-beta"]) == ("test/1", "python", "assistants=v2")
    assert up["accept-encoding"] == "identity"
    assert "canary" not in str(call.headers)
    assert "sk-hr" not in str(call.headers)
    assert stand.entry(model).client_request_id == "mine-1"


def test_a_renamed_model_is_spliced_and_nothing_else_moves(stand: Stand) -> None:
    stand.ch1.scenario("upstream-name", {"events": CHAT, "model": "its own"})
    sent = b'{"a":"exact","model":\t"renamed" ,"stream":true,"stream_options":{"include_usage":true},"messages":[{"model":"renamed"}]}'
    reply = stand.ask(sent)
    assert texts(reply.body) == TEXT
    call = stand.calls("upstream-name")[-1]
    assert call.body == sent.replace(b'\t"renamed"', b'\t"upstream-name"')
    assert stand.entry(id=reply.id).attempts[0].upstream_model == "upstream-name"


# ---- the head


def test_the_head_of_a_stream(stand: Stand) -> None:
    """Cases B082, B085, B086: nothing that lets a proxy buffer, one framing, no word of closing."""
    headers = {
        "openai-processing-ms": "12", "x-request-id": "req_up", "set-cookie": "a=b", "x-ratelimit-limit-requests": "5",
        "openai-organization": "org", "connection": "keep-alive, openai-model", "openai-model": "m", "alt-svc": "h3",
    }  # fmt: skip
    model = stand.model("one", {"events": CHAT, "headers": headers})
    reply = stand.ask(chat(model))
    names = {name for name, _ in reply.headers}
    assert names == {
        "content-type", "cache-control", "x-accel-buffering", "openai-processing-ms", "x-request-id", "request-id",
        "x-upstream-request-id", "transfer-encoding", "openai-version",
    }  # fmt: skip
    assert (reply.header("content-type") or "").startswith("text/event-stream")
    assert reply.header("cache-control") == "no-cache, no-transform"
    assert reply.header("x-accel-buffering") == "no"
    assert reply.header("x-upstream-request-id") == "req_up"


def test_a_stream_without_type_gets_one(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "headers": {"content-type": None}})
    assert stand.ask(chat(model)).header("content-type") == "text/event-stream; charset=utf-8"


@pytest.mark.parametrize("framing", ["chunked", "length", "close"])
def test_one_framing_towards_the_client(stand: Stand, framing: str) -> None:
    """Case B085."""
    model = stand.model("one", {"events": CHAT, "framing": framing, "keep_alive": framing != "close"})
    with stand.connect() as client:
        reply = stand.send(client, chat(model))
        assert reply.header("content-length") is None
        assert reply.header("connection") is None
        assert client.rest().end is End.FRAMED
        again = stand.send(client, chat(model))
        assert client.rest().end is End.FRAMED, "the client's connection goes on"
        assert again.body == reply.body


def test_a_stream_on_a_connection_that_will_close_does_not_say_so(stand: Stand) -> None:
    """Case B086: with that word a cut would look like an end."""
    model = stand.model("one", {"events": CHAT})
    with stand.connect() as client:
        reply = stand.send(client, chat(model), headers={"connection": "close"})
        assert reply.header("connection") is None
        assert client.rest().end is End.FRAMED
        assert client.ended() is End.CLOSED


@pytest.mark.parametrize("usage", [True, False])
def test_http_1_0_gets_the_bytes_close_delimited(stand: Stand, usage: bool) -> None:
    model = stand.model("one", {"events": CHAT, "gap": 0.01})
    with stand.connect() as client:
        reply = stand.send(client, chat(model, usage=usage), version="1.0")
        assert reply.header("transfer-encoding") is None
        assert reply.header("content-length") is None
        assert reply.header("connection") is None
        assert client.rest().end is End.CLOSED
    assert texts(reply.body) == TEXT
    assert delivered(stand, model, reply) == "".join(CHAT if usage else [*CHAT[:4], DONE]).encode()


def test_http_1_0_hears_of_a_cut_in_words(stand: Stand) -> None:
    model = stand.model("one", {"events": [C0, C1], "cut": {"how": "rst"}})
    with stand.connect() as client:
        reply = stand.send(client, chat(model), version="1.0")
        assert client.rest().end is End.CLOSED
    assert error_in(reply.body)["code"] == INTERRUPTED


def test_head_is_get_without_a_body(stand: Stand) -> None:
    with stand.connect() as client:
        client.send(request(method="HEAD", path="/v1/models"))
        head = client.head(method="HEAD")
        client.send(request(method="GET", path="/v1/models"))
        get = client.head()
        client.rest()
    assert (head.status, head.body) == (200, b"")
    assert head.header("content-length") == get.header("content-length") == str(len(get.body))


# ---- keepalives


def test_keepalives_fill_every_gap(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gap": GAP_S})
    reply = stand.ask(chat(model, usage=True))
    entry = stand.entry(model)
    assert delivered(stand, model, reply) == "".join(CHAT).encode()
    assert without_keepalives(reply.body) == "".join(CHAT).encode()
    assert_whole_events(reply)
    # Not behind [DONE], and one in each of the five gaps before it.
    assert entry.wire.keepalives == len(CHAT) - 1
    assert reply.body.count(KEEPALIVE) == len(CHAT) - 1


@pytest.mark.parametrize("usage", [True, False])
def test_the_removed_event_leaves_a_gap_that_is_filled(stand: Stand, usage: bool) -> None:
    model = stand.model("one", {"events": CHAT, "gaps": {4: GAP_S, 5: GAP_S}})
    reply = stand.ask(chat(model, usage=usage))
    assert reply.body.endswith((KEEPALIVE + DONE.encode(), KEEPALIVE + KEEPALIVE + DONE.encode()))
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
    model = stand.model("one", {"events": stream, "writes": {"at": {at: 3 * KEEPALIVE_S}, "in_event": 1}})
    reply = stand.ask(chat(model, usage=True))
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
    reply = stand.ask(chat(model, usage=True))
    assert (C1.encode() + KEEPALIVE) in reply.body
    assert (KEEPALIVE + C1.encode()) in reply.body


def test_the_keepalive_is_one_line_once_the_upstream_used_ids(stand: Stand) -> None:
    """Case B010."""
    model = stand.model("one", {"events": ["id: 7\n" + C0, *CHAT[1:]], "gaps": {1: GAP_S}})
    reply = stand.ask(chat(model, usage=True))
    assert b": hopbase-keepalive\n" + C1.encode() in reply.body
    assert KEEPALIVE not in reply.body


def test_the_keepalive_is_one_line_for_go(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gaps": {1: GAP_S}})
    reply = stand.ask(chat(model, usage=True), headers={"user-agent": "Go-http-client/1.1"})
    assert b"\n\n: hopbase-keepalive\n" + C1.encode() in reply.body


def test_upstream_heartbeats_pass_and_keep_the_client_alive(stand: Stand) -> None:
    """Cases B013, B016: relayed where they stand; where they are frequent nothing is inserted."""
    beats = {"every": 0.1, "form": ": OPENROUTER PROCESSING\n\n"}
    model = stand.model("one", {"events": CHAT, "gaps": {2: 0.5}, "heartbeats": beats})
    reply = stand.ask(chat(model, usage=True))
    entry = stand.entry(model)
    assert reply.body == stand.calls(model)[0].sent
    assert reply.body.count(b"OPENROUTER") == entry.wire.heartbeats >= 3
    assert entry.wire.keepalives == 0


def test_a_key_sets_its_own_keepalive(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gaps": {2: 0.5}})
    reply = stand.ask(chat(model, usage=True), key="sk-hr-patient-0123456789abcdef")
    assert reply.body == "".join(CHAT).encode()


@pytest.mark.parametrize("last", [DONE, error_event("server_error")])
def test_no_keepalive_behind_the_end(stand: Stand, last: str) -> None:
    """Cases B018, B038: the body ends within end_grace, though the upstream holds it open, and that connection is not
    used again."""
    model = stand.model("one", {"events": [C0, C3, last], "tail_hold": 30})
    reply = stand.ask(chat(model))
    assert reply.body == stand.calls(model)[0].sent
    assert reply.end is End.FRAMED
    call = stand.calls(model)[0]
    assert call.closed_early
    entry = stand.entry(model)
    assert entry.wire.keepalives == 0
    assert entry.duration_s < 2
    stand.ask(chat(model))
    assert len({one.connection for one in stand.calls(model)}) == 2


def test_bytes_behind_the_grace_are_not_delivered(stand: Stand) -> None:
    """Case B038."""
    model = stand.model("one", {"events": [*CHAT, "data: late\n\n"], "gaps": {6: 0.6}})
    reply = stand.ask(chat(model, usage=True))
    assert reply.body == "".join(CHAT).encode()
    assert stand.entry(model).end == "completed"


def test_a_tail_within_the_grace_is_delivered(stand: Stand) -> None:
    model = stand.model("one", {"events": [*CHAT, ": bye\n\n"], "gaps": {6: 0.05}})
    assert stand.ask(chat(model, usage=True)).body == "".join([*CHAT, ": bye\n\n"]).encode()


def test_a_good_connection_is_used_again(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT})
    for _ in range(3):
        stand.ask(chat(model))
    assert len({one.connection for one in stand.calls(model)}) == 1
    assert stand.entries(model)[-1].attempts[0].reused


# ---- ends that are not good


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
    assert (entry.end, entry.usage_origin) == ("completed", "upstream" if after == 5 else "none")


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
    assert entry.duration_s - entry.wire.last_event_s >= 0.4
    assert stand.calls(model)[0].closed_early


def test_pings_do_not_keep_a_dead_stream_alive(stand: Stand) -> None:
    """Case B066: they count once, up to the larger limit."""
    dead = {"events": CHAT, "cut": {"after_events": 2, "how": "stall"}, "heartbeats": {"every": 0.1}}
    model = stand.model("impatient", dead)
    reply = stand.ask(chat(model))
    assert error_in(reply.body)["code"] == "upstream_stalled"
    entry = stand.entry(model)
    assert entry.end == "stalled"
    assert entry.wire.last_event_s is not None
    assert entry.duration_s - entry.wire.last_event_s >= 1.0
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


# ---- without streaming


@pytest.mark.parametrize("name", ["plain", "large", "gzip", "close-delimited"])
def test_a_whole_reply_passes_as_it_came(stand: Stand, name: str) -> None:
    """Case B083: encoded bytes keep their header."""
    fields: dict[str, Fields] = {
        "plain": {"text": "hello"},
        "large": {"text": "word ", "repeat": 40_000},
        "gzip": {"text": "hello " * 50, "content_encoding": "gzip"},
        "close-delimited": {"text": "hello", "framing": "close"},
    }
    model = stand.model("one", fields[name])
    reply = stand.ask(chat(model, stream=False))
    call = stand.calls(model)[0]
    assert sha256(reply.body) == call.sent_sha256
    assert reply.header("content-encoding") == ("gzip" if name == "gzip" else None)
    entry = stand.entry(model)
    assert (entry.end, entry.stream) == ("completed", False)
    assert entry.wire.keepalives == entry.wire.inserted == 0


@pytest.mark.parametrize("how", ["rst", "stall"])
def test_a_whole_reply_that_breaks_off_aborts_the_connection(stand: Stand, how: str) -> None:
    """Its start is out, so only the transport can say it."""
    model = stand.model("impatient", {"text": "word ", "repeat": 40_000, "cut": {"at_byte": 150_000, "how": how}})
    reply = stand.ask(chat(model, stream=False))
    assert reply.end is End.RESET
    entry = stand.entry(model)
    assert entry.end == ("interrupted" if how == "rst" else "stalled")
    assert len(reply.body) <= entry.wire.released


# ---- the client leaves, or does not read


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_closes_the_upstream(stand: Stand, how: str, stream: bool) -> None:
    """Case B058."""
    fields: Fields = {"text": "word ", "repeat": 2000, "gap": 0.02} if stream else {"text": "x", "first_delay": 30}
    model = stand.model("twice", fields)
    with stand.connect() as client:
        client.send(request(chat(model, stream=stream)))
        if stream:
            client.read(until=b"word")
        else:
            until(lambda: stand.ch1.calls(model), "the upstream's call")
        left = time.monotonic()
        getattr(client, how)()
    call = stand.calls(model)[0]
    assert time.monotonic() - left < 1
    assert call.end is UpstreamEnd.CLIENT_CLOSED
    entry = stand.entry(model)
    assert (entry.end, entry.reason, len(entry.attempts)) == ("client_gone", "client left", 1)


def test_a_client_that_leaves_before_the_head_closes_the_upstream(stand: Stand) -> None:
    model = stand.model("twice", {"head_delay": 30})
    with stand.connect() as client:
        client.send(request(chat(model)))
        until(lambda: stand.ch1.calls(model), "the upstream's call")
    assert stand.calls(model)[0].end is UpstreamEnd.CLIENT_CLOSED
    assert stand.entry(model).end == "client_gone"


def test_a_client_that_leaves_behind_the_end_has_had_it(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "tail_hold": 0.2})
    with stand.connect() as client:
        client.send(request(chat(model)))
        client.read(until=DONE.encode())
        client.reset()
    assert stand.entry(model).end == "completed"


def test_a_client_that_leaves_while_sending_is_gone(stand: Stand) -> None:
    with stand.connect() as client:
        client.send(request(b"x" * 100)[:-50])
        client.reset()

    def entries() -> list[Entry]:
        return [one for one in stand.records() if isinstance(one, Entry) and one.end == "client_gone" and not one.model]

    assert until(entries, "the entry")[-1].status is None


FLOOD: Fields = {"events": [{"text": chunk({"content": "x" * 8000}), "repeat": 4000}, C3, DONE]}


@pytest.mark.xfail(reason="the machine ends the body in good order, so the client sees a whole one", strict=True)
def test_a_client_that_does_not_read_is_cut(stand: Stand) -> None:
    """Case B062."""
    model = stand.model("one", FLOOD)
    with stand.connect(receive_buffer=4096) as client:
        client.send(request(chat(model)))
        entry = stand.entry(model)
        assert (entry.end, entry.reason) == ("client_gone", "write_timeout")
        assert client.rest().end is End.RESET
    call = stand.calls(model)[0]
    assert call.end is UpstreamEnd.CLIENT_CLOSED
    assert call.events_written < 4000, "case B070: the upstream was made to wait"


def test_a_slow_client_holds_up_its_own_upstream_and_nobody_else(stand: Stand) -> None:
    """Cases B070, B075."""
    slow_model = stand.model("one", FLOOD)
    model = stand.model("one", {"events": CHAT, "gap": 0.02})
    with stand.connect(receive_buffer=4096) as slow:
        slow.send(request(chat(slow_model)))
        until(lambda: stand.ch1.calls(slow_model), "the flood")
        reply = stand.ask(chat(model, usage=True))
        assert reply.body == "".join(CHAT).encode()
        gaps = [later.at - piece.at for piece, later in zip(reply.pieces, reply.pieces[1:], strict=False)]
        assert max(gaps) < 1.0
        written = stand.ch1.calls(slow_model)[0].events_written
        assert written < 4000
        slow.read(until=b"x" * 8000)
    assert stand.entry(slow_model).end == "client_gone"


def test_a_slow_client_that_reads_on_gets_everything(stand: Stand) -> None:
    flood = {"events": [{"text": chunk({"content": "x" * 8000}), "repeat": 600}, C3, DONE]}
    model = stand.model("one", flood)
    with stand.connect(receive_buffer=4096) as client:
        client.send(request(chat(model)))
        client.head()
        client.read_for(0.05)
        time.sleep(0.1)
        reply = client.rest()
    assert reply.end is End.FRAMED
    assert sha256(reply.body) == stand.calls(model)[0].sent_sha256
    assert stand.entry(model).end == "completed"


def test_no_foreign_bytes(stand: Stand) -> None:
    """Case B064: many streams at once, half of them left in the middle, surplus bytes behind some."""
    streams = 60
    marks = [uuid.uuid4().hex for _ in range(streams)]
    models = [
        stand.model(
            "one",
            {
                "text": [mark, *[f" {mark}"] * 20],
                "gap": 0.005,
                "surplus": f"HTTP/1.1 200 OK\r\n\r\n{mark}" if number % 3 == 0 else "",
            },
        )
        for number, mark in enumerate(marks)
    ]
    bodies = [b""] * streams

    def one(number: int) -> None:
        with stand.connect() as client:
            for _ in range(2):
                client.send(request(chat(models[number])))
                client.head()
                if number % 2:
                    bodies[number] += client.read_for(0.01 + number / 600).body
                    client.reset()
                    return
                bodies[number] += client.rest().body

    threads = [threading.Thread(target=one, args=(number,)) for number in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, body in enumerate(bodies):
        assert not [mark for mark in marks if mark != marks[number] and mark.encode() in body]
        if number % 2 == 0:
            assert texts(body) == (marks[number] + f" {marks[number]}" * 20) * 2
    for model in models:
        for call in stand.calls(model):
            assert call.model == model


def test_many_streams_have_one_entry_each(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gap": 0.005})
    ids: list[str] = []

    def some() -> None:
        with stand.connect() as client:
            for _ in range(5):
                stand.send(client, chat(model))
                ids.append(client.rest().id)

    threads = [threading.Thread(target=some) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: len(stand.entries(model)) == 50, "the last entry")
    assert sorted(ids) == sorted(entry.id for entry in stand.entries(model))
    assert len({json.dumps(call.json()) for call in stand.calls(model)}) == 1


# ---- connections of clients


def test_requests_follow_each_other_on_one_connection(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT})
    with stand.connect() as client:
        client.send(request(chat(model)) + request(chat(model, stream=False)))
        assert client.rest().end is End.FRAMED
        client.head()
        assert client.rest().status == 200


def test_a_half_closed_client_still_gets_a_quick_answer(stand: Stand) -> None:
    model = stand.model("one", {"text": "hello"})
    with stand.connect() as client:
        client.send(request(chat(model, stream=False)))
        client.shut()
        assert client.rest().status == 200
