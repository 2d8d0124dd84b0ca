"""Requests that cannot be served: the exact status, the error body, what to do about it, and nothing broken by them."""

# ruff: noqa: E501  a case a line
import gzip
import json
import zlib
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from tests.stand.client import Client, End, Reply
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand
from tests.stand.wire import CHAT, CHAT_PATH, KEY, TEXT, chat, error_in, request, texts

GOOD_BODY = json.dumps({"model": "one-good", "messages": [], "stream": True}).encode()
HUGE = 1024 * 1024 + 1


@dataclass(frozen=True)
class Bad:
    """One bad request and its answer. `says` must stand in the message; `closes`: whether the connection must end."""

    sent: bytes
    status: int
    code: str
    says: str = ""
    param: str | None = None
    closes: bool = False


def head(*lines: str, start: str = f"POST {CHAT_PATH} HTTP/1.1", body: bytes = b"") -> bytes:
    """A request with these header lines, a key, and nothing else."""
    return "\r\n".join([start, *lines, f"authorization: Bearer {KEY}", "", ""]).encode("latin-1") + body


def bare(*lines: str, start: str = f"POST {CHAT_PATH} HTTP/1.1") -> bytes:
    """The same without a key."""
    return "\r\n".join([start, *lines, "", ""]).encode("latin-1")


def body(content: bytes | str, **headers: str) -> bytes:
    """A request with this body."""
    sent = content if isinstance(content, bytes) else content.encode()
    return request(sent, headers={name.replace("_", "-"): value for name, value in headers.items()})


def get(path: str, method: str = "GET", **headers: str) -> bytes:
    """A request without a body."""
    return request(method=method, path=path, headers=headers | ({"content-length": "0"} if method == "POST" else {}))


def with_key(*lines: str) -> bytes:
    """A good request with these credentials alone."""
    return request(GOOD_BODY, key=None, headers=dict(line.split(": ", 1) for line in lines))


FRAMING = {
    "no HTTP": Bad(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400, "bad_request", "HTTP", closes=True),
    "no HTTP at all": Bad(b"hello\r\n\r\n", 400, "bad_request", "HTTP", closes=True),
    "HTTP/2 preface": Bad(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505, "bad_request", "HTTP/1.1", closes=True),
    "HTTP/3.0": Bad(head("host: g", start="GET /healthz HTTP/3.0"), 505, "bad_request", "HTTP/1.1", closes=True),
    "HTTP/0.9": Bad(head("host: g", start="GET /healthz HTTP/0.9"), 505, "bad_request", "HTTP/1.1", closes=True),
    "no Host": Bad(head("content-length: 0"), 400, "bad_request", "Host", closes=True),
    "two Hosts": Bad(head("host: a", "host: a", "content-length: 0"), 400, "bad_request", "Host", closes=True),
    "odd Host": Bad(head("host: a b", "content-length: 0"), 400, "bad_request", "Host", closes=True),
    "two lengths": Bad(head("host: g", "content-length: 1", "content-length: 2"), 400, "bad_request", "Content-Length", closes=True),
    "negative length": Bad(head("host: g", "content-length: -1"), 400, "bad_request", "Content-Length", closes=True),
    "a length in words": Bad(head("host: g", "content-length: ten"), 400, "bad_request", "Content-Length", closes=True),
    "a length of 30 digits": Bad(head("host: g", "content-length: " + "9" * 30), 400, "bad_request", "Content-Length", closes=True),
    "length and chunked": Bad(head("host: g", "content-length: 3", "transfer-encoding: chunked"), 400, "bad_request", "not both", closes=True),
    "gzip transfer": Bad(head("host: g", "transfer-encoding: gzip"), 501, "bad_request", "chunked", closes=True),
    "gzip, chunked": Bad(head("host: g", "transfer-encoding: gzip, chunked"), 501, "bad_request", "chunked", closes=True),
    "chunked twice": Bad(head("host: g", "transfer-encoding: chunked, chunked"), 501, "bad_request", "chunked", closes=True),
    "chunked in 1.0": Bad(head("host: g", "transfer-encoding: chunked", start=f"POST {CHAT_PATH} HTTP/1.0"), 400, "bad_request", "HTTP/1.0", closes=True),
    "a bad chunk size": Bad(head("host: g", "transfer-encoding: chunked", body=b"xyz\r\n"), 400, "bad_request", "chunked", closes=True),
    "a chunk that is too long": Bad(head("host: g", "transfer-encoding: chunked", body=b"2\r\nabcd\r\n0\r\n\r\n"), 400, "bad_request", "chunked", closes=True),
    "a bare LF": Bad(b"GET /healthz HTTP/1.1\nhost: g\n\n", 400, "bad_request", "HTTP", closes=True),
    "a folded header": Bad(head("host: g", "x-a: b\r\n c"), 400, "bad_request", "header", closes=True),
    "a space before the colon": Bad(head("host: g", "x-a : b"), 400, "bad_request", "header", closes=True),
    "a NUL in a header": Bad(head("host: g", "x-a: b\0c"), 400, "bad_request", "header", closes=True),
    "an odd header name": Bad(head("host: g", "x(a: b"), 400, "bad_request", "header", closes=True),
    "101 fields": Bad(head("host: g", *[f"x-{n}: y" for n in range(101)]), 431, "bad_request", "headers", closes=True),
    "a head of 70 KB": Bad(head("host: g", "x-a: " + "b" * 70_000), 431, "bad_request", "headers", closes=True),
    "a target of 70 KB": Bad(head("host: g", start=f"GET /{'a' * 70_000} HTTP/1.1"), 431, "bad_request", "", closes=True),
    "an expectation": Bad(head("host: g", "content-length: 1", "expect: more"), 417, "bad_request", "100-continue", closes=True),
}  # fmt: skip

TARGETS = {
    "CONNECT": Bad(head("host: g", start="CONNECT a:443 HTTP/1.1"), 405, "method_not_allowed", "GET or POST", closes=True),
    "TRACE": Bad(head("host: g", start="TRACE / HTTP/1.1"), 405, "method_not_allowed", "GET or POST", closes=True),
    "two slashes": Bad(get("//evil/v1/models"), 400, "bad_request", "slash", closes=True),
    "dot segments": Bad(get("/v1/../admin"), 400, "bad_request", "`..`", closes=True),
    "encoded dot segments": Bad(get("/v1/%2e%2e/admin"), 400, "bad_request", "`..`", closes=True),
    "encoded slashes and dots": Bad(get("/v1%2F%2E%2E%2Fadmin"), 400, "bad_request", "`..`", closes=True),
    "a backslash": Bad(get("/v1\\admin"), 400, "bad_request", "backslash", closes=True),
    "a NUL": Bad(get("/v1/%00"), 400, "bad_request", "control", closes=True),
    "a broken escape": Bad(get("/v1/%zz"), 400, "bad_request", "percent", closes=True),
    "a fragment": Bad(get("/v1/models#x"), 400, "bad_request", "", closes=True),
    "raw bytes": Bad(get("/v1/\xe5"), 400, "bad_request", "percent-encoded", closes=True),
    "user information": Bad(get("http://u:p@evil/v1/models"), 400, "bad_request", "user information", closes=True),
    "another scheme": Bad(get("ftp://evil/v1/models"), 400, "bad_request", "", closes=True),
    "an asterisk": Bad(get("*"), 400, "bad_request", "", closes=True),
    "unknown": Bad(get("/v2/chat"), 404, "not_found", "/v1/chat/completions"),
    "v1 twice": Bad(request(GOOD_BODY, path="/v1/v1/chat/completions"), 404, "not_found", "Use /v1/chat/completions"),
    "another prefix": Bad(request(GOOD_BODY, path="/api/chat/completions"), 404, "not_found", "Use /v1/chat/completions"),
    "a slash at the end": Bad(request(GOOD_BODY, path="/v1/chat/completions/"), 404, "not_found", "Use /v1/chat/completions"),
    "no admin route": Bad(get("/admin"), 404, "not_found", "base URL"),
    "GET for POST": Bad(get("/v1/chat/completions"), 405, "method_not_allowed", "POST"),
    "PUT for POST": Bad(get("/v1/chat/completions", "PUT"), 405, "method_not_allowed", "POST"),
    "POST for GET": Bad(get("/v1/models", "POST"), 405, "method_not_allowed", "GET, HEAD"),
    "DELETE of a model": Bad(get("/v1/models/exact", "DELETE"), 405, "method_not_allowed", "GET, HEAD"),
}  # fmt: skip

KEYS = {
    "none": Bad(with_key(), 401, "missing_api_key", "Bearer"),
    "none, for models": Bad(request(method="GET", path="/v1/models", key=None), 401, "missing_api_key", "Bearer"),
    "empty": Bad(with_key("authorization: Bearer "), 401, "missing_api_key", "Bearer"),
    "another scheme": Bad(with_key("authorization: Basic abc"), 401, "missing_api_key", "Bearer"),
    "unknown": Bad(with_key("authorization: Bearer sk-x"), 401, "invalid_api_key", "Check"),
    "the key in another case": Bad(with_key(f"authorization: Bearer {KEY.upper()}"), 401, "invalid_api_key", "Check"),
    "half the key": Bad(with_key(f"authorization: Bearer {KEY[:-1]}"), 401, "invalid_api_key", "Check"),
    "a quote": Bad(with_key("authorization: Bearer sk-' OR 1=1--"), 401, "invalid_api_key", "Check"),
    "not ASCII": Bad(with_key("authorization: Bearer sk-\xe5\xff"), 401, "invalid_api_key", "Check"),
    "60 KB": Bad(with_key("authorization: Bearer " + "k" * 60_000), 401, "invalid_api_key", "Check"),
    "two that differ": Bad(with_key(f"authorization: Bearer {KEY}", "x-api-key: sk-other"), 401, "invalid_api_key", "two different"),
    "two headers": Bad(bare("host: g", f"authorization: Bearer {KEY}", "authorization: Bearer sk-other", "content-length: 0"), 401, "invalid_api_key", "two different"),
    "one in the query that differs": Bad(request(GOOD_BODY, path=f"{CHAT_PATH}?key=sk-other"), 401, "invalid_api_key", "two different"),
    "expired": Bad(with_key("x-api-key: sk-hr-expired-0123456789abcdef"), 401, "expired_api_key", "operator"),
    "disabled": Bad(with_key("x-goog-api-key: sk-hr-disabled-0123456789abcdef"), 403, "key_disabled", "operator"),
}  # fmt: skip

JSON = {
    "no body": Bad(body(b""), 400, "bad_request", "JSON"),
    "no JSON": Bad(body("model=x"), 400, "bad_request", "JSON"),
    "cut JSON": Bad(body('{"model": "one-x"'), 400, "bad_request", "JSON"),
    "something behind": Bad(body('{"model": "one-x"} x'), 400, "bad_request", "JSON"),
    "null": Bad(body("null"), 400, "bad_request", "JSON object"),
    "a list": Bad(body("[1]"), 400, "bad_request", "JSON object"),
    "a number": Bad(body("5"), 400, "bad_request", "JSON object"),
    "a string": Bad(body('"x"'), 400, "bad_request", "JSON object"),
    "NaN": Bad(body('{"model": "one-x", "temperature": NaN}'), 400, "bad_request", "NaN"),
    "Infinity": Bad(body('{"model": "one-x", "temperature": -Infinity}'), 400, "bad_request", "Infinity"),
    "UTF-16": Bad(body('{"model": "one-x"}'.encode("utf-16")), 400, "bad_request", "UTF-8"),
    "a byte order mark": Bad(body(b'\xef\xbb\xbf{"model": "one-x"}'), 400, "bad_request", "JSON"),
    "broken UTF-8": Bad(body(b'{"model": "one-\xff"}'), 400, "bad_request", "UTF-8"),
    "too deep": Bad(body('{"model": "one-x", "a": ' + "[" * 100_000 + "]" * 100_000 + "}"), 400, "bad_request", "nested"),
    "single quotes": Bad(body("{'model': 'one-x'}"), 400, "bad_request", "JSON"),
    "no model": Bad(body("{}"), 400, "bad_request", "model", "model"),
    "an empty model": Bad(body('{"model": ""}'), 400, "bad_request", "model", "model"),
    "a null model": Bad(body('{"model": null}'), 400, "bad_request", "model", "model"),
    "a model that is a number": Bad(body('{"model": 5}'), 400, "bad_request", "model", "model"),
    "stream as text": Bad(body('{"model": "one-x", "stream": "true"}'), 400, "bad_request", "stream", "stream"),
    "stream as a number": Bad(body('{"model": "one-x", "stream": 1}'), 400, "bad_request", "stream", "stream"),
}  # fmt: skip

MODELS = {
    "unknown": Bad(body('{"model": "gpt-none"}'), 404, "model_not_found", "/v1/models", "model"),
    "close to a known one": Bad(body('{"model": "exakt"}'), 404, "model_not_found", "/v1/models", "model"),
    "with an address": Bad(body('{"model": "x@evil", "base_url": "http://evil"}'), 404, "model_not_found", "/v1/models", "model"),
    "300 KB long": Bad(body('{"model": "' + "m" * 300_000 + '"}'), 404, "model_not_found", "/v1/models", "model"),
    "not offered here": Bad(body('{"model": "responses-only"}'), 400, "protocol_not_offered", "openai_responses", "model"),
    "not allowed": Bad(request(chat("pair-x"), key="sk-hr-narrow-0123456789abcdef"), 403, "model_not_allowed", "/v1/models", "model"),
    "not listed": Bad(get("/v1/models/none"), 404, "model_not_found", "/v1/models", "model"),
    "listed, not for this key": Bad(request(method="GET", path="/v1/models/renamed", key="sk-hr-narrow-0123456789abcdef"), 404, "model_not_found", "/v1/models", "model"),
}  # fmt: skip

BODIES = {
    "too large": Bad(body(b"x" * HUGE), 413, "payload_too_large", "1048576 bytes", closes=True),
    "announced too large": Bad(head("host: g", f"content-length: {HUGE}"), 413, "payload_too_large", "1048576 bytes", closes=True),
    "announced far too large": Bad(head("host: g", "content-length: 99999999999"), 413, "payload_too_large", "1048576 bytes", closes=True),
    "announced with an expectation": Bad(head("host: g", f"content-length: {HUGE}", "expect: 100-continue"), 413, "payload_too_large", "1048576 bytes", closes=True),
    "too large in chunks": Bad(head("host: g", "transfer-encoding: chunked", body=b"80000\r\n" + b"x" * 0x80000 + b"\r\n80001\r\n" + b"x" * 0x80001 + b"\r\n"), 413, "payload_too_large", "1048576 bytes", closes=True),
    "mostly framing": Bad(head("host: g", "transfer-encoding: chunked", body=(b"1;" + b"e" * 4000 + b"\r\nx\r\n") * 40), 431, "bad_request", "chunk extensions", closes=True),
}  # fmt: skip

ENCODINGS = {
    "unknown": Bad(body(GOOD_BODY, content_encoding="foo"), 415, "unsupported_encoding", "gzip"),
    "no gzip": Bad(body(GOOD_BODY, content_encoding="gzip"), 400, "bad_request", "Content-Encoding"),
    "cut gzip": Bad(body(gzip.compress(GOOD_BODY)[:-9], content_encoding="gzip"), 400, "bad_request", "cut short"),
    "a gzip bomb": Bad(body(gzip.compress(b"x" * 50_000_000), content_encoding="gzip"), 413, "payload_too_large", "1048576"),
    "a deflate bomb": Bad(body(zlib.compress(b"x" * 50_000_000), content_encoding="deflate"), 413, "payload_too_large", "1048576"),
}  # fmt: skip

TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


def check(bad: Bad, reply: Reply, method: str = "POST") -> None:
    """The answer is the right one, in form and in words."""
    assert reply.status == bad.status, reply.body[:500]
    assert reply.header("content-type") == "application/json"
    assert reply.id.startswith("hr_")
    assert len(reply.id) == 29
    error = error_in(reply.body)
    assert error["code"] == bad.code
    assert error["type"] == ("server_error" if bad.status >= 500 else TYPES.get(bad.status, "invalid_request_error"))
    assert error["param"] == bad.param
    message = error["message"]
    assert isinstance(message, str)
    assert bad.says in message, message
    assert len(message) < 500
    assert message.endswith(".")
    assert KEY not in str(reply.body)
    if bad.status == 405:
        assert reply.header("allow")


def check_serving(stand: Stand) -> None:
    """A good request is served on a new connection."""
    model = stand.model("one", {"events": CHAT})
    assert texts(stand.ask(chat(model)).body) == TEXT


def check_table(stand: Stand, bad: Bad) -> None:
    with stand.connect() as client:
        client.send(bad.sent)
        reply = client.rest()
        assert reply.end is End.FRAMED
        check(bad, reply)
        if bad.closes:
            assert reply.header("connection") == "close"
            client.shut()
            assert client.ended() in (End.CLOSED, End.RESET)
        else:
            client.send(request(method="GET", path="/healthz"))
            assert client.head().status == 200, "the connection goes on"
    check_serving(stand)


TABLES = {
    f"{table}: {name}": bad
    for table, cases in {
        "framing": FRAMING, "target": TARGETS, "key": KEYS, "JSON": JSON, "model": MODELS, "body": BODIES,
    }.items()
    for name, bad in cases.items()
}  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_a_bad_request(stand: Stand, name: str) -> None:
    """Cases B105, B107, B108, B109, B115."""
    check_table(stand, TABLES[name])


@pytest.mark.parametrize("name", ENCODINGS)
def test_a_badly_encoded_body(stand: Stand, name: str) -> None:
    """Case B095."""
    check_table(stand, ENCODINGS[name])


def test_there_are_enough_of_them() -> None:
    assert len(TABLES) >= 60


@pytest.mark.parametrize("name", [name for name in TABLES if TABLES[name].status < 500 and not TABLES[name].closes])
def test_a_bad_request_spends_nothing(stand: Stand, name: str) -> None:
    """It goes nowhere upstream, and an entry there is exactly for what came with a valid key to an exchange's path."""
    bad = TABLES[name]
    reply = stand_reply(stand, bad)
    calls = len(stand.ch1.calls("one-good"))
    assert calls == 0
    if bad.code in ("not_found", "method_not_allowed", "key_disabled") or bad.status == 401:
        assert not stand.entries(id=reply.id)
    elif b"/models" not in bad.sent.partition(b"\r\n")[0]:
        entry = stand.entry(id=reply.id)
        assert (entry.end, entry.kind, entry.source, entry.status) == ("refused", bad.code, "client", bad.status)
        assert not entry.attempts


def stand_reply(stand: Stand, bad: Bad) -> Reply:
    """The answer alone."""
    with stand.connect() as client:
        client.send(bad.sent)
        return client.rest()


def test_hints(stand: Stand) -> None:
    """What the OpenAI dialect adds for programs."""
    exact = error_in(stand.ask({"model": "exakt"}).body)
    assert exact["did_you_mean"] == "exact"
    other = error_in(stand.ask({"model": "responses-only"}).body)
    assert other["accepted_request_formats"] == ["openai_responses"]
    assert "hint" in error_in(stand.ask({}, path="/v1/v1/chat/completions").body)


def test_models_of_others_are_not_suggested(stand: Stand) -> None:
    reply = stand.ask({"model": "renamed-"}, key="sk-hr-narrow-0123456789abcdef")
    assert "did_you_mean" not in error_in(reply.body)


def test_a_pipelined_bad_request_is_answered_in_turn(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gap": 0.02})
    with stand.connect() as client:
        client.send(request(chat(model)) + FRAMING["no Host"].sent)
        assert texts(client.rest().body) == TEXT
        client.head()
        check(FRAMING["no Host"], client.rest())
        assert client.ended() is End.CLOSED


def test_the_last_of_two_members_counts(stand: Stand) -> None:
    """Case B107: the model that is routed by is the one that the upstream will read."""
    one, two = stand.model("one", {"events": CHAT}), stand.model("one", {"events": CHAT})
    stand.ask(f'{{"model": "{one}", "stream": true, "model": "{two}"}}'.encode())
    assert not stand.calls(one)
    assert stand.calls(two)[0].body.count(b'"model"') == 2


def test_a_lone_surrogate_is_real_traffic(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT})
    sent = f'{{"model": "{model}", "stream": true, "messages": [{{"role":"user","content":"\\ud83d"}}]}}'.encode()
    assert stand.ask(sent).status == 200
    assert b"\\ud83d" in stand.calls(model)[0].body


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_an_encoded_body_goes_up_plain(stand: Stand, encoding: str) -> None:
    """Case B095."""
    model = stand.model("one", {"events": CHAT})
    plain = json.dumps(chat(model, usage=True)).encode()
    sent = gzip.compress(plain) if encoding == "gzip" else zlib.compress(plain)
    assert stand.ask(sent, headers={"content-encoding": encoding}).status == 200
    call = stand.calls(model)[0]
    assert call.body == plain
    assert call.header("content-encoding") is None


def test_the_largest_body_is_served(stand: Stand) -> None:
    """Case B105."""
    model = stand.model("one", {"events": CHAT})
    fill = chat(model, usage=True, pad="")
    fill["pad"] = "x" * (HUGE - 1 - len(json.dumps(fill)))
    sent = json.dumps(fill).encode()
    assert len(sent) == HUGE - 1
    assert texts(stand.ask(sent).body) == TEXT
    assert stand.calls(model)[0].body_length == len(sent)


def test_100_continue(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT})
    sent = request(chat(model), headers={"expect": "100-continue"})
    start, _, content = sent.partition(b"\r\n\r\n")
    with stand.connect() as client:
        client.send(start + b"\r\n\r\n")
        client.interim(100)
        client.send(content)
        assert texts(client.rest().body) == TEXT


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A stand whose gateway waits for no slow client."""
    limits = "max_body: 1MiB\n  head_timeout: 500ms\n  body_timeout: 500ms\n  idle_timeout: 1s"
    with Stand(tmp_path_factory.mktemp("hurried"), CONFIG.replace("max_body: 1MiB", limits)) as one:
        yield one


def slow(client: Client, sent: bytes) -> Reply:
    """What comes if nothing more is sent."""
    client.send(sent)
    return client.rest()


@pytest.mark.parametrize("part", [1, 30, -60])
def test_a_request_that_does_not_come_is_told_so(hurried: Stand, part: int) -> None:
    sent = request(GOOD_BODY)
    with hurried.connect() as client:
        reply = slow(client, sent[: part if part > 0 else len(sent) + part])
        check(Bad(b"", 408, "request_timeout", "again"), reply)
    check_serving(hurried)


def test_a_connection_without_a_request_is_closed_silently(hurried: Stand) -> None:
    with hurried.connect() as client:
        assert client.ended() is End.CLOSED
