import json
from typing import Any

import pytest

from headrace.model.channel import BaseUrl, Channel
from headrace.model.headers import Headers
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call, ReplyHead, RequestHead
from headrace.model.wire import Asked, WireProtocol
from headrace.protocols.gemini import Gemini
from headrace.protocols.gemini_observer import GeminiObserver
from headrace.protocols.interface import Api

API: Api = Gemini()
STREAM = "gemini.stream_generate_content"
GENERATE = "gemini.generate_content"
BODY = b'{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}'
GO: Headers = [(b"x-goog-api-client", b"google-genai-sdk/1.69.0 gl-go/go1.24")]
LEGACY: Headers = [(b"x-goog-api-client", b"genai-js/0.24.1")]
BROKEN = Problem(Kind.UPSTREAM_INTERRUPTED, "It broke off.")


def head(
    path: str = "/v1beta/models/m:streamGenerateContent", query: str = "alt=sse", headers: Headers | None = None
) -> RequestHead:
    return RequestHead("POST", path, query, headers or [])


def inspect(body: bytes = BODY, operation: str = STREAM, **where: Any) -> Call | Problem:
    return API.inspect(head(**where), body, operation)


def call(body: bytes = BODY, operation: str = STREAM, asked: Asked = Asked.EVENTS, model: str = "m") -> Call:
    return Call(WireProtocol.GEMINI, operation, model, asked, body)


def channel(**members: Any) -> Channel:
    return Channel("c", BaseUrl("https", "h", 443, "/v1beta"), frozenset((WireProtocol.GEMINI,)), (), **members)


# ---- inspect


@pytest.mark.parametrize(
    ("path", "query", "model", "asked"),
    [
        ("/v1beta/models/m:streamGenerateContent", "alt=sse", "m", Asked.EVENTS),
        ("/v1/models/m:streamGenerateContent", "key=k&alt=sse", "m", Asked.EVENTS),
        ("/v1beta/models/m:streamGenerateContent", "", "m", Asked.ARRAY),
        ("/v1beta/models/m:streamGenerateContent", "alt=json", "m", Asked.ARRAY),
        ("/v1beta/models/m:generateContent", "alt=sse", "m", Asked.JSON),
        ("/v1beta/models/org/a%3Ab:countTokens", "", "org/a:b", Asked.JSON),
    ],
)
def test_model_and_form_come_from_the_path(path: str, query: str, model: str, asked: Asked) -> None:
    found = inspect(path=path, query=query)
    assert isinstance(found, Call)
    assert (found.model, found.asked, found.operation, found.body) == (model, asked, STREAM, BODY)


@pytest.mark.parametrize(
    ("body", "most", "choices"),
    [
        (b"{}", None, 1),
        (b'{"generationConfig":{"maxOutputTokens":5,"candidateCount":2}}', 5, 2),
        (b'{"generation_config":{"max_output_tokens":5,"candidate_count":2}}', 5, 2),
        (b'{"generationConfig":{"maxOutputTokens":"5","candidateCount":true}}', None, 1),
        (b'{"generationConfig":7,"model":9,"contents":"x"}', None, 1),
        (b'{"contents":[{"parts":[{"text":"\\ud83d"}]}],"generationConfig":{"maxOutputTokens":5}}', 5, 1),
    ],
)
def test_the_cap_of_output(body: bytes, most: int | None, choices: int) -> None:
    found = inspect(body)
    assert isinstance(found, Call)
    assert (found.max_output, found.choices) == (most, choices)


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"5", b"null", b"{", b"\xff", b'{"a":NaN}', b"[" * 100_000, b'["\\ud83d"]']
)
def test_the_body_must_be_an_object(body: bytes) -> None:
    found = inspect(body)
    assert isinstance(found, Problem)
    assert (found.kind, found.http_status) == (Kind.BAD_REQUEST, 400)
    assert "JSON" in found.message


def test_a_path_without_a_model() -> None:
    found = inspect(path="/v1beta/models/:generateContent")
    assert isinstance(found, Problem) and found.param == "model"


# ---- address


@pytest.mark.parametrize(
    ("model", "path"),
    [
        ("m", "/models/m:streamGenerateContent"),
        ("org/a:b@1", "/models/org/a:b@1:streamGenerateContent"),
        ("a b?", "/models/a%20b%3F:streamGenerateContent"),
        ("models/m", "/models/m:streamGenerateContent"),
        ("tunedModels/m", "/tunedModels/m:streamGenerateContent"),
    ],
)
def test_the_path_has_the_upstreams_model(model: str, path: str) -> None:
    request = API.address(call(), head(query="alt=sse&key=secret&x=1"), channel(), model)
    assert (request.method, request.path, request.query) == ("POST", path, "alt=sse&x=1")
    assert b"".join(request.body) == BODY
    assert (request.headers, request.added_usage) == ([], False)


def test_a_channel_can_have_its_own_path() -> None:
    own = channel(paths=((STREAM, "/publishers/google/models/{model}:streamGenerateContent"),))
    request = API.address(call(), head(), own, "a b")
    assert request.path == "/publishers/google/models/a%20b:streamGenerateContent"
    request = API.address(call(operation=GENERATE), head(), own, "a")
    assert request.path == "/models/a:generateContent"


# ---- seed


@pytest.mark.parametrize(
    ("body", "seed"),
    [
        (BODY, b'[{"text":"hi"}]'),
        (b'{"contents":[{"role":"model","parts":[1]},{"parts":[2]}]}', b"[2]"),
        (b'{"contents":[{"role":"user","parts":"' + b"x" * 9000 + b'"}]}', b'"' + b"x" * 4095),
        (b'{"contents":[{"role":"model"}]}', b""),
        (b'{"contents":"hi"}', b""),
        (b"{}", b""),
        (b"{", b""),
    ],
)
def test_the_seed_is_the_first_user_content(body: bytes, seed: bytes) -> None:
    assert API.seed(call(body), head()) == seed


# ---- keepalive, early open


@pytest.mark.parametrize(
    ("line_end", "bytes_"), [(None, b"\r\n\r\n"), (b"\r\n", b"\r\n\r\n"), (b"\n", b"\n\n"), (b"\r", b"\r\n\r\n")]
)
@pytest.mark.parametrize("saw_id", [True, False])
def test_a_keepalive_is_the_streams_line_end_twice(line_end: bytes | None, bytes_: bytes, saw_id: bool) -> None:
    assert API.keepalive(line_end, saw_id, head(), "comment") == bytes_
    assert API.keepalive(line_end, saw_id, head(headers=GO), "comment") == bytes_
    assert API.keepalive(line_end, saw_id, head(headers=LEGACY), "comment") == b""
    assert API.keepalive(line_end, saw_id, head(query=""), "comment") == b""


def test_early_open() -> None:
    assert API.may_open_early(call(), head())
    assert not API.may_open_early(call(), head(headers=GO))
    assert not API.may_open_early(call(), head(headers=LEGACY))
    assert not API.may_open_early(call(), head(headers=[(b"user-agent", b"Go-http-client/1.1")]))
    assert not API.may_open_early(call(asked=Asked.ARRAY), head(query=""))
    assert not API.keeps_comments


# ---- errors


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n", None])
def test_the_error_event(line_end: bytes | None) -> None:
    event = API.interrupt(BROKEN, GeminiObserver(), line_end)
    assert event == (
        b'data: {"error":{"code":503,"message":"It broke off.","status":"UNAVAILABLE"}}' + 2 * (line_end or b"\r\n")
    )
    assert API.interrupt(BROKEN, GeminiObserver(array=True), line_end) == b""


def test_before_any_event_it_is_the_cause() -> None:
    limited = Problem(Kind.UPSTREAM_RATE_LIMITED, "Wait.")
    event = API.interrupt(limited, None, None)
    assert event == b'data: {"error":{"code":429,"message":"Wait.","status":"RESOURCE_EXHAUSTED"}}\r\n\r\n'


@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_has_an_error(kind: Kind) -> None:
    reply = API.refuse(Problem(kind, "what"), "hr_1")
    error = json.loads(reply.body)["error"]
    assert list(error) == ["code", "message", "status"]
    assert error["code"] == reply.status and 400 <= error["code"] <= 599
    assert error["status"].replace("_", "").isupper()
    assert (b"content-type", b"application/json") in reply.headers


def test_an_error_names_the_wait_and_the_likely_model() -> None:
    reply = API.refuse(Problem(Kind.RATE_LIMIT_EXCEEDED, "Slow.", retry_after_s=2.5), "hr_1")
    assert json.loads(reply.body)["error"]["details"] == [
        {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "3s"}
    ]
    assert (b"retry-after", b"3") in reply.headers
    reply = API.refuse(Problem(Kind.MODEL_NOT_FOUND, "No.", did_you_mean="m"), "hr_1")
    assert json.loads(reply.body)["error"]["message"] == "No. Did you mean 'm'?"


def test_an_upstreams_fault() -> None:
    found = API.classify_fault(ReplyHead(503, []), b'[{"error":{"code":503}}]')
    assert found is not None and found.http_status == 503
    assert API.classify_fault(ReplyHead(503, []), b"<html>") is None


def test_the_observer_knows_what_was_asked() -> None:
    array = API.observer(call(asked=Asked.ARRAY), False)
    assert isinstance(array, GeminiObserver) and array.array
    counted = API.observer(call(operation="gemini.count_tokens", asked=Asked.JSON), False)
    assert counted.observe_body(b"{}").reason == ""
    assert API.observer(call(operation=GENERATE, asked=Asked.JSON), False).observe_body(b"{}").reason == "none"
