"""Streams and replies through real sockets: the upstream's bytes, all of them, under a head of ours."""

from collections.abc import Mapping

import pytest

from tests.line.body import delivered, sha256
from tests.stand.client import End
from tests.stand.stand import Stand
from tests.stand.wire import (
    C0,
    C1,
    C3,
    C4,
    CHAT,
    DONE,
    TEXT,
    chat,
    chunk,
    error_in,
    events,
    request,
    texts,
)

Fields = Mapping[str, object]


FIELDS = [": hi\n\n", "id: 7\n" + C0, "retry: 3000\n\n", C1 + ": x\n\n", "event: x\ndata\ndata: {}\n\n", *CHAT[2:]]
ODD = 'data: { "choices":[ {"delta":{"content":"\\u00e9\\ud83d"} ,"index" : 0,"finish_reason":null}],"x":1.0E+2}\n\n'
UNKNOWN = ['data: {"type":"x","usage":null}\n\n', 'event: z\ndata: {"a":[]}\n\n']
STREAMS: dict[str, Fields] = {
    "plain": {"events": CHAT},
    "one write": {"events": CHAT, "writes": "joined"},
    "byte by byte": {"events": CHAT, "writes": "byte"},
    "CRLF": {"events": [event.replace("\n", "\r\n") for event in CHAT], "writes": {"size": 7}},
    "CR": {"events": [event.replace("\n", "\r") for event in CHAT], "writes": {"size": 11}},
    "mixed line ends": {"line_end": "mixed", "text": "some words of text", "usage": "final"},
    "no space behind the colon": {"space": False, "text": "some words of text", "usage": "final"},
    "comments, ids, other fields": {"events": FIELDS},
    "a character cut in two": {"events": CHAT, "writes": {"at": [len(C0) + C1.encode().index("北".encode()) + 1]}},
    "odd spelling": {"events": [ODD, C3, C4, DONE]},
    "unknown events and fields": {"events": [C0, *UNKNOWN, *CHAT[1:]]},
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
def test_the_usage_event_is_there_for_those_who_asked(stand: Stand, options: dict[str, object], sees_it: bool) -> None:
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
    sent = b'{"a":"exact","model":\t"renamed" ,"stream":true,"messages":[{"model":"renamed"}]}'
    reply = stand.ask(sent)
    assert texts(reply.body) == TEXT
    call = stand.calls("upstream-name")[-1]
    assert call.body.endswith(sent.replace(b'\t"renamed"', b'\t"upstream-name"')[1:])
    assert stand.entry(id=reply.id).attempts[0].upstream_model == "upstream-name"


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
    assert error_in(reply.body)["code"] == "upstream_interrupted"


def test_head_is_get_without_a_body(stand: Stand) -> None:
    with stand.connect() as client:
        client.send(request(method="HEAD", path="/v1/models"))
        head = client.head(method="HEAD")
        client.send(request(method="GET", path="/v1/models"))
        get = client.head()
        client.rest()
    assert (head.status, head.body) == (200, b"")
    assert head.header("content-length") == get.header("content-length") == str(len(get.body))


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
