import json

import msgspec
import pytest

from headrace.model.channel import BaseUrl, Channel
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call, ReplyHead, RequestHead
from headrace.model.wire import Asked, WireProtocol
from headrace.protocols.messages import COUNT_TOKENS, CREATE, Messages
from headrace.protocols.messages_observer import MessagesObserver

API = Messages()
BROKEN = (
    b'event: error\ndata: {"type":"error","error":{"type":"api_error",'
    b'"message":"Response stream interrupted, please retry"}}\n\n'
)
CUT = Problem(Kind.UPSTREAM_INTERRUPTED, "It broke off.")
STALLED = Problem(Kind.UPSTREAM_STALLED, "It stalled.")


def head(query: str = "", **headers: str) -> RequestHead:
    fields = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return RequestHead("POST", "/v1/messages", query, fields)


def inspect(body: object, operation: str = CREATE) -> Call | Problem:
    return API.inspect(head(), body if isinstance(body, bytes) else json.dumps(body).encode(), operation)


def call(body: object, operation: str = CREATE) -> Call:
    found = inspect(body, operation)
    assert isinstance(found, Call)
    return found


def channel(**paths: str) -> Channel:
    named = tuple((name.replace("__", "."), path) for name, path in paths.items())
    return Channel("ch", BaseUrl("https", "h", 443, "/v1"), frozenset((WireProtocol.MESSAGES,)), (), paths=named)


def begun() -> MessagesObserver:
    observer = MessagesObserver()
    observer.observe(b'event: message_start\ndata: {"type":"message_start"}\n\n')
    return observer


def test_a_request_is_read_leniently() -> None:
    body = {"model": "m", "stream": True, "max_tokens": 9, "messages": 5, "system": {}, "zzz": None}
    found = call(body)
    assert (found.model, found.asked, found.max_output, found.choices) == ("m", Asked.EVENTS, 9, 1)
    assert found.body == json.dumps(body).encode()
    assert call({"model": "m", "max_tokens": "many"}).max_output is None
    assert call({"model": "m", "stream": None}).asked is Asked.JSON
    assert call(b'{"model":"m","messages":[{"role":"user","content":"\\ud83d"}]}').model == "m"


def test_a_count_is_never_a_stream() -> None:
    found = call({"model": "m", "stream": True, "max_tokens": 9}, COUNT_TOKENS)
    assert (found.operation, found.asked, found.max_output) == (COUNT_TOKENS, Asked.JSON, None)


@pytest.mark.parametrize(
    ("body", "param"),
    [
        ({}, "model"),
        ({"model": ""}, "model"),
        ({"model": 5}, "model"),
        ({"model": "m", "stream": "yes"}, "stream"),
        (b'{"model":"\\ud83d"}', "model"),
        (b"{", None),
        ([], None),
    ],
)
def test_what_cannot_be_read_names_the_member(body: object, param: str | None) -> None:
    found = inspect(body)
    assert isinstance(found, Problem)
    assert (found.kind, found.param) == (Kind.BAD_REQUEST, param)


def test_only_the_model_is_spliced() -> None:
    body = b'{ "zzz":1.0E+2,\n"model" : "m" ,"stream":true, "model2":"m"}'
    found = call(body)
    same = API.address(found, head(), channel(), "m")
    assert (same.method, same.path, same.headers, b"".join(same.body)) == ("POST", "/messages", [], body)
    other = API.address(found, head(), channel(), 'up"x')
    assert b"".join(other.body) == body.replace(b'"m" ', b'"up\\"x" ')
    assert not other.added_usage


@pytest.mark.parametrize(
    ("query", "kept"),
    [
        ("", ""),
        ("beta=true", "beta=true"),
        ("beta=true&key=secret&a=%20+&b", "beta=true&a=%20+&b"),
        ("%6Bey=secret&key", ""),
        ("keys=1&=2", "keys=1&=2"),
    ],
)
def test_the_query_stays_but_for_the_key(query: str, kept: str) -> None:
    assert API.address(call({"model": "m"}), head(query), channel(), "m").query == kept


def test_a_channel_may_have_paths_of_its_own() -> None:
    own = channel(messages="/x/{model}:raw")
    assert API.address(call({"model": "m"}), head(), own, "a/b").path == "/x/a%2Fb:raw"
    assert API.address(call({"model": "m"}, COUNT_TOKENS), head(), own, "m").path == "/messages/count_tokens"
    own = channel(messages__count_tokens="/count")
    assert API.address(call({"model": "m"}, COUNT_TOKENS), head(), own, "m").path == "/count"


@pytest.mark.parametrize(
    ("body", "seed"),
    [
        ({"prompt_cache_key": "k", "metadata": {"user_id": "u"}}, b"k"),
        ({"prompt_cache_key": "", "metadata": {"user_id": "u"}}, b"u"),
        ({"metadata": {"user_id": 5}, "messages": [{"role": "user", "content": "hi"}]}, b'"hi"'),
        ({"metadata": 1, "messages": [{"role": "x", "content": "a"}, {"role": "user", "content": "b"}]}, b'"b"'),
        ({"messages": [{"role": "user", "content": "x" * 5000}]}, b'"' + b"x" * 4095),
        ({"messages": []}, b""),
        ({"messages": 5}, b""),
    ],
)  # fmt: skip
def test_what_tells_a_conversation_apart(body: dict[str, object], seed: bytes) -> None:
    assert API.seed(call({"model": "m", **body}), head()) == seed


def test_keepalives_are_comments() -> None:
    assert API.may_open_early(call({"model": "m"}), head())
    assert API.keepalive(None, False, head(), "ka") == b": ka\n\n"
    assert API.keepalive(b"\n", True, head(), "ka") == b": ka\n"
    assert API.keepalive(b"\n", False, head(user_agent="Go-http-client/2.0"), "ka") == b": ka\n"


def test_a_broken_stream_ends_in_exactly_these_bytes() -> None:
    for problem in (CUT, STALLED, Problem(Kind.INTERNAL, "A fault.")):
        assert API.interrupt(problem, begun(), b"\n") == BROKEN
    assert API.interrupt(CUT, None, None) == BROKEN
    assert API.interrupt(CUT, begun(), b"\r\n") == BROKEN.replace(b"\n", b"\r\n")


def error_in(event: bytes) -> tuple[str, str]:
    name, _, data = event.partition(b"\ndata: ")
    assert name == b"event: error" and data.endswith(b"\n\n")
    value = json.loads(data)
    assert set(value) == {"type", "error"} and value["type"] == "error"
    return value["error"]["type"], value["error"]["message"]


def test_a_stop_does_not_ask_to_retry() -> None:
    stopped = Problem(Kind.STOPPED, "An operator ended it.")
    for observer in (begun(), MessagesObserver(), None):
        assert error_in(API.interrupt(stopped, observer, b"\n")) == ("api_error", "An operator ended it.")


@pytest.mark.parametrize(
    ("problem", "kind"),
    [
        (Problem(Kind.UPSTREAM_RATE_LIMITED, "w"), "rate_limit_error"),
        (Problem(Kind.UPSTREAM_ERROR, "w"), "api_error"),
        (Problem(Kind.UPSTREAM_ERROR, "w", status=529), "overloaded_error"),
        (Problem(Kind.UPSTREAM_TIMEOUT, "w"), "timeout_error"),
        (Problem(Kind.UPSTREAM_STALLED, "w"), "timeout_error"),
        (Problem(Kind.CHANNELS_BUSY, "w"), "overloaded_error"),
        (Problem(Kind.BAD_REQUEST, "w", status=413), "request_too_large"),
    ],
)
def test_before_any_event_the_words_are_the_causes(problem: Problem, kind: str) -> None:
    for observer in (None, MessagesObserver()):
        assert error_in(API.interrupt(problem, observer, None)) == (kind, "w")


@pytest.mark.parametrize(
    ("problem", "status", "kind"),
    [
        (Problem(Kind.BAD_REQUEST, "w"), 400, "invalid_request_error"),
        (Problem(Kind.BAD_REQUEST, "w", status=431), 431, "invalid_request_error"),
        (Problem(Kind.BAD_REQUEST, "w", status=501), 501, "api_error"),
        (Problem(Kind.MISSING_API_KEY, "w"), 401, "authentication_error"),
        (Problem(Kind.INSUFFICIENT_QUOTA, "w"), 402, "billing_error"),
        (Problem(Kind.INSUFFICIENT_QUOTA, "w", status=429), 429, "billing_error"),
        (Problem(Kind.MODEL_NOT_ALLOWED, "w"), 403, "permission_error"),
        (Problem(Kind.MODEL_NOT_FOUND, "w"), 404, "not_found_error"),
        (Problem(Kind.REQUEST_TIMEOUT, "w"), 408, "invalid_request_error"),
        (Problem(Kind.BAD_REQUEST, "w", status=409), 409, "conflict_error"),
        (Problem(Kind.PAYLOAD_TOO_LARGE, "w"), 413, "request_too_large"),
        (Problem(Kind.RATE_LIMIT_EXCEEDED, "w"), 429, "rate_limit_error"),
        (Problem(Kind.INTERNAL, "w"), 500, "api_error"),
        (Problem(Kind.UPSTREAM_ERROR, "w"), 502, "api_error"),
        (Problem(Kind.DRAINING, "w"), 503, "overloaded_error"),
        (Problem(Kind.STOPPED, "w"), 503, "api_error"),
        (Problem(Kind.UPSTREAM_TIMEOUT, "w"), 504, "timeout_error"),
        (Problem(Kind.UPSTREAM_ERROR, "w", status=529), 529, "overloaded_error"),
    ],
)
def test_a_refusal_has_status_type_and_id(problem: Problem, status: int, kind: str) -> None:
    reply = API.refuse(problem, "hr_1")
    assert reply.status == status
    assert msgspec.json.decode(reply.body) == {
        "type": "error",
        "error": {"type": kind, "message": "w"},
        "request_id": "hr_1",
    }
    assert (b"content-type", b"application/json") in reply.headers


def test_a_refusal_says_when_to_come_back_and_what_was_meant() -> None:
    reply = API.refuse(Problem(Kind.RATE_LIMIT_EXCEEDED, "w", retry_after_s=3600, did_you_mean="claude-x"), "hr_1")
    assert (b"retry-after", b"60") in reply.headers and (b"retry-after-ms", b"60000") in reply.headers
    assert json.loads(reply.body)["error"]["message"] == "w Did you mean 'claude-x'?"


def test_a_fault_is_read_by_status_and_body() -> None:
    body = b'{"type":"error","error":{"type":"invalid_request_error","message":"too long"}}'
    problem = API.classify_fault(ReplyHead(422, []), body)
    assert problem is not None
    assert (problem.kind, problem.http_status, problem.message) == (Kind.BAD_REQUEST, 422, "too long")
    assert isinstance(API.observer(call({"model": "m"}), False), MessagesObserver)
