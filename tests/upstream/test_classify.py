import json

import pytest

from headrace.model.problem import Kind, Problem, Source
from headrace.model.request import ReplyHead
from headrace.model.wire import Asked
from headrace.upstream.classify import Advice, Effect, classify, final_problem, needs_body

NOW = 1_800_000_000.0
RELAY, FAULT, NEXT = Advice.RELAY, Advice.RELAY_FAULT, Advice.TRY_NEXT


def head(status: int, media: str | None = "application/json", **headers: str) -> ReplyHead:
    lines = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    return ReplyHead(status, lines + ([(b"content-type", media.encode())] if media is not None else []))


def error(**members: object) -> bytes:
    return json.dumps({"error": members}).encode()


UNKNOWN_MODELS = [
    error(code="model_not_found", message="The model `x` does not exist", type="invalid_request_error"),
    b'{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}',
    error(code=404, message="models/gemini-9 is not found for API version v1beta", status="NOT_FOUND"),
    b"[" + error(code=404, message="models/gemini-9 is not found", status="NOT_FOUND") + b"]",
]
OTHER_404 = [
    b"",
    b"<html>nginx</html>",
    b'{"detail":"Not Found"}',
    error(code=None, message="No response found with id", type="invalid_request_error"),
    b'{"type":"error","error":{"type":"not_found_error","message":"File not found: model: x"}}',
    error(code=404, message="cachedContents/1 not found", status="NOT_FOUND"),
]
BAD_GEMINI_KEY = error(
    code=400,
    message="API key not valid.",
    status="INVALID_ARGUMENT",
    details=[{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "API_KEY_INVALID"}],
)

STATUSES = [
    # status, body, advice, kind, effect, http status of the problem
    (301, b"", NEXT, Kind.UPSTREAM_BAD_REPLY, Effect.FAILURE, 502),
    (307, b"", NEXT, Kind.UPSTREAM_BAD_REPLY, Effect.FAILURE, 502),
    (304, b"", NEXT, Kind.UPSTREAM_BAD_REPLY, Effect.FAILURE, 502),
    (199, b"", NEXT, Kind.UPSTREAM_BAD_REPLY, Effect.FAILURE, 502),
    (400, error(message="bad"), FAULT, None, Effect.NONE, None),
    (400, b"no JSON", FAULT, None, Effect.NONE, None),
    (400, BAD_GEMINI_KEY, NEXT, Kind.UPSTREAM_ERROR, Effect.DISABLE, 502),
    (401, b"", NEXT, Kind.UPSTREAM_ERROR, Effect.DISABLE, 502),
    (402, b"", NEXT, Kind.UPSTREAM_ERROR, Effect.DISABLE, 502),
    (403, b"", NEXT, Kind.UPSTREAM_ERROR, Effect.NONE, 502),
    (405, b"", FAULT, None, Effect.NONE, None),
    (408, b"", NEXT, Kind.UPSTREAM_TIMEOUT, Effect.FAILURE, 504),
    (409, b"", FAULT, None, Effect.NONE, None),
    (413, b"<html>Cloudflare</html>", FAULT, None, Effect.NONE, None),
    (422, b"", FAULT, None, Effect.NONE, None),
    (451, b"", FAULT, None, Effect.NONE, None),
    (429, b"", NEXT, Kind.UPSTREAM_RATE_LIMITED, Effect.COOL_MODEL, 429),
    (429, error(code="rate_limit_exceeded", message="in organization org-1"), NEXT, Kind.UPSTREAM_RATE_LIMITED,
     Effect.COOL_MODEL, 429),
    (429, error(code="insufficient_quota"), NEXT, Kind.UPSTREAM_RATE_LIMITED, Effect.COOL_CREDENTIAL, 429),
    (429, error(type="rate_limit_error", details={"error_code": "enforced_spend_limit_reached"}), NEXT,
     Kind.UPSTREAM_RATE_LIMITED, Effect.COOL_CREDENTIAL, 429),
    (500, b"", NEXT, Kind.UPSTREAM_ERROR, Effect.FAILURE, 502),
    (502, b"<html>", NEXT, Kind.UPSTREAM_ERROR, Effect.FAILURE, 502),
    (503, b"", NEXT, Kind.UPSTREAM_ERROR, Effect.FAILURE, 502),
    (504, b"", NEXT, Kind.UPSTREAM_TIMEOUT, Effect.FAILURE, 504),
    (524, b"", NEXT, Kind.UPSTREAM_TIMEOUT, Effect.FAILURE, 504),
    (529, b"", NEXT, Kind.UPSTREAM_ERROR, Effect.COOL_MODEL, 529),
    (599, b"", NEXT, Kind.UPSTREAM_ERROR, Effect.FAILURE, 502),
    *((404, body, NEXT, Kind.UPSTREAM_ERROR, Effect.NONE, 502) for body in UNKNOWN_MODELS),
    *((404, body, FAULT, None, Effect.NONE, None) for body in OTHER_404),
]  # fmt: skip


@pytest.mark.parametrize(("status", "body", "advice", "kind", "effect", "answer"), STATUSES)
@pytest.mark.parametrize("asked", list(Asked))
def test_errors(
    status: int, body: bytes, advice: Advice, kind: Kind | None, effect: Effect, answer: int | None, asked: Asked
) -> None:
    verdict = classify(head(status), body, asked, NOW)
    assert (verdict.advice, verdict.effect) == (advice, effect)
    assert (verdict.problem.kind if verdict.problem else None) == kind
    assert (verdict.problem.http_status if verdict.problem else None) == answer
    assert verdict.rate_limited is (status == 429)
    assert verdict.word == (kind.value if kind else "relay_fault")
    assert needs_body(head(status), asked) is (status >= 400)
    if verdict.problem:
        assert str(status) in verdict.problem.detail
        assert "org-1" not in verdict.problem.detail, "messages may quote prompts and keys"


def test_a_protocols_reading_decides_too() -> None:
    unknown = Problem(Kind.MODEL_NOT_FOUND, "m")
    assert classify(head(404), b"odd", Asked.JSON, NOW, reading=unknown).advice is NEXT
    verdict = classify(head(400), b"odd", Asked.JSON, NOW, reading=Problem(Kind.INVALID_API_KEY, "m"))
    assert (verdict.advice, verdict.effect) == (NEXT, Effect.DISABLE)
    assert classify(head(400), b"odd", Asked.JSON, NOW, reading=unknown).advice is FAULT


def test_a_body_that_was_cut_off_at_the_limit_is_not_read() -> None:
    assert classify(head(404), UNKNOWN_MODELS[0], Asked.JSON, NOW, whole=False).advice is FAULT
    assert classify(head(200), error(code=429), Asked.JSON, NOW, whole=False).advice is RELAY


def test_the_wait_comes_from_headers_then_body() -> None:
    retry_info = error(code=429, status="RESOURCE_EXHAUSTED", details=[{"retryDelay": "37s"}])
    assert classify(head(429), retry_info, Asked.JSON, NOW).retry_after_s == 37
    verdict = classify(head(429, retry_after="7"), retry_info, Asked.JSON, NOW)
    assert verdict.retry_after_s == 7 and verdict.problem is not None and verdict.problem.retry_after_s == 7
    assert classify(head(503, retry_after_ms="1500"), b"", Asked.JSON, NOW).retry_after_s == 1.5
    assert classify(head(409, retry_after="3"), b"", Asked.JSON, NOW).retry_after_s == 3
    assert classify(head(429), b"", Asked.JSON, NOW).retry_after_s is None
    assert classify(head(429), b"{}", Asked.JSON, NOW).retry_after_s is None


GOOD = [
    # asked, media type, body, as a stream
    (Asked.EVENTS, "text/event-stream; charset=utf-8", b"", True),
    (Asked.EVENTS, "Text/Event-Stream", b"", True),
    (Asked.EVENTS, None, b"", True),
    (Asked.EVENTS, "application/json", b'{"id":1}', False),
    (Asked.EVENTS, "application/problem+json", b'{"id":1}', False),
    (Asked.JSON, "application/json", b'{"id":1,"error":null}', False),
    (Asked.JSON, "application/json", b'{"object":"response","status":"failed","error":{"code":"x"}}', False),
    (Asked.JSON, "application/json", b"[1]", False),
    (Asked.JSON, "application/json", b"{not JSON", False),
    (Asked.JSON, None, b' {"id":1}', False),
    (Asked.JSON, "text/plain", b'{"id":1}', False),
    (Asked.ARRAY, "application/json; charset=UTF-8", b"", True),
    (Asked.ARRAY, None, b"", True),
    (Asked.ANYTHING, "audio/mpeg", b"x", False),
    (Asked.ANYTHING, "text/event-stream", b"data: x", True),
    (Asked.ANYTHING, "application/json", b'{"id":1}', False),
    (Asked.ANYTHING, "text/html", b"<html>", False),
]


@pytest.mark.parametrize(("asked", "media", "body", "as_stream"), GOOD)
def test_good_replies(asked: Asked, media: str | None, body: bytes, as_stream: bool) -> None:
    verdict = classify(head(200, media), body, asked, NOW)
    assert (verdict.advice, verdict.effect, verdict.as_stream) == (RELAY, Effect.SUCCESS, as_stream)
    assert verdict.problem is None and verdict.word == "relay"


BAD = [
    (Asked.EVENTS, "text/html", b"<html>"),
    (Asked.ARRAY, "text/event-stream", b""),
    (Asked.ARRAY, "text/html", b""),
    (Asked.EVENTS, "text/plain", b"data: x\n\n"),
    (Asked.EVENTS, "application/json", b""),
    (Asked.JSON, "application/json", b" \n"),
    (Asked.JSON, None, b""),
    (Asked.JSON, None, b"<html>"),
    (Asked.JSON, "text/html", b'{"looks":"like JSON"}'),
    (Asked.JSON, "text/plain", b"ok"),
    (Asked.JSON, "text/event-stream", b"data: x\n\n"),
    (Asked.ANYTHING, "audio/mpeg", b""),
    (Asked.ANYTHING, "application/json", b""),
]


@pytest.mark.parametrize(("asked", "media", "body"), BAD)
def test_a_200_that_was_not_asked_for(asked: Asked, media: str | None, body: bytes) -> None:
    verdict = classify(head(200, media), body, asked, NOW)
    assert (verdict.advice, verdict.effect) == (NEXT, Effect.FAILURE)
    assert verdict.problem is not None and verdict.problem.kind is Kind.UPSTREAM_BAD_REPLY


def test_json_comes_too_late_after_an_early_open() -> None:
    verdict = classify(head(200), b'{"id":1}', Asked.EVENTS, NOW, opened=True)
    assert verdict.word == "upstream_bad_reply"
    assert classify(head(200, "text/event-stream"), b"", Asked.EVENTS, NOW, opened=True).advice is RELAY


def test_an_encoded_body_cannot_be_judged() -> None:
    assert classify(head(200, content_encoding="gzip"), b"\x1f\x8b", Asked.JSON, NOW).advice is RELAY
    assert classify(head(200, content_encoding="identity"), error(code=429), Asked.JSON, NOW).advice is NEXT


ERRORS_IN_200 = [
    (error(code="rate_limit_exceeded"), Kind.UPSTREAM_RATE_LIMITED, Effect.COOL_MODEL, 429),
    (error(code=429, status="RESOURCE_EXHAUSTED"), Kind.UPSTREAM_RATE_LIMITED, Effect.COOL_MODEL, 429),
    (error(code="429"), Kind.UPSTREAM_RATE_LIMITED, Effect.COOL_MODEL, 429),
    (error(code="insufficient_quota"), Kind.UPSTREAM_ERROR, Effect.DISABLE, 502),
    (error(type="overloaded_error"), Kind.UPSTREAM_ERROR, Effect.COOL_MODEL, 529),
    (error(type="timeout_error"), Kind.UPSTREAM_TIMEOUT, Effect.FAILURE, 504),
    (error(type="invalid_request_error"), Kind.UPSTREAM_ERROR, Effect.NONE, 502),
    (error(message="?"), Kind.UPSTREAM_ERROR, Effect.FAILURE, 502),
    (b'{"error":"it broke"}', Kind.UPSTREAM_ERROR, Effect.FAILURE, 502),
    (b'{"error":{}}', Kind.UPSTREAM_ERROR, Effect.FAILURE, 502),
]


@pytest.mark.parametrize(("body", "kind", "effect", "answer"), ERRORS_IN_200)
def test_a_200_that_holds_an_error(body: bytes, kind: Kind, effect: Effect, answer: int) -> None:
    for asked in (Asked.JSON, Asked.EVENTS, Asked.ANYTHING):
        verdict = classify(head(200), body, asked, NOW)
        assert (verdict.advice, verdict.effect) == (NEXT, effect)
        assert verdict.problem is not None
        assert (verdict.problem.kind, verdict.problem.http_status) == (kind, answer)
        assert verdict.problem.detail.startswith("200 that holds an error: status ")


def test_a_protocols_reading_is_the_problem_of_a_200_that_holds_an_error() -> None:
    reading = Problem(Kind.BAD_REQUEST, "Too long.", Source.UPSTREAM, 400)
    verdict = classify(head(200), error(code="context_length_exceeded"), Asked.JSON, NOW, reading=reading)
    assert verdict.problem is not None and verdict.problem.message == "Too long."


def test_which_bodies_must_be_seen() -> None:
    assert needs_body(head(200), Asked.JSON) and needs_body(head(200, None), Asked.JSON)
    assert needs_body(head(200), Asked.EVENTS) and not needs_body(head(200), Asked.ARRAY)
    assert not needs_body(head(200, "text/event-stream"), Asked.EVENTS)
    assert not needs_body(head(200, "text/event-stream"), Asked.JSON)
    assert not needs_body(head(200, "text/html"), Asked.EVENTS)
    assert needs_body(head(200), Asked.ANYTHING) and not needs_body(head(200, "audio/mpeg"), Asked.ANYTHING)


# ----------------------------------------------------------------------------------------------------- the final answer


def limited(wait: float | None) -> Problem:
    return Problem(Kind.UPSTREAM_RATE_LIMITED, "m", retry_after_s=wait, detail="status 429")


FAILED = Problem(Kind.UPSTREAM_ERROR, "m")
OVERLOADED = Problem(Kind.UPSTREAM_ERROR, "m", status=529)
TIMEOUT = Problem(Kind.UPSTREAM_TIMEOUT, "m")
STALLED = Problem(Kind.UPSTREAM_STALLED, "m")
BUSY = Problem(Kind.CHANNELS_BUSY, "m", retry_after_s=5)
CLIENTS = Problem(Kind.BAD_REQUEST, "m", Source.UPSTREAM, 400)


@pytest.mark.parametrize(
    ("failures", "cooling_s", "kind", "status", "wait"),
    [
        ([], None, Kind.NO_CHANNEL_AVAILABLE, 503, None),
        ([], 12.0, Kind.UPSTREAM_RATE_LIMITED, 429, 12.0),
        ([], 900.0, Kind.UPSTREAM_RATE_LIMITED, 429, 60.0),
        ([limited(30), limited(20)], None, Kind.UPSTREAM_RATE_LIMITED, 429, 20),
        ([limited(30), limited(None)], 25.0, Kind.UPSTREAM_RATE_LIMITED, 429, 25.0),
        ([limited(None)], None, Kind.UPSTREAM_RATE_LIMITED, 429, 60.0),
        ([limited(3600)], None, Kind.UPSTREAM_RATE_LIMITED, 429, 60.0),
        ([limited(30), BUSY], None, Kind.CHANNELS_BUSY, 503, 5),
        ([BUSY, TIMEOUT, FAILED], None, Kind.CHANNELS_BUSY, 503, 5),
        ([Problem(Kind.OVERLOADED, "m")], None, Kind.OVERLOADED, 503, None),
        ([TIMEOUT, FAILED], None, Kind.UPSTREAM_TIMEOUT, 504, None),
        ([FAILED, STALLED], None, Kind.UPSTREAM_STALLED, 504, None),
        ([FAILED, limited(9)], None, Kind.UPSTREAM_ERROR, 502, None),
        ([limited(9), FAILED], None, Kind.UPSTREAM_ERROR, 502, None),
        ([FAILED], 10.0, Kind.UPSTREAM_ERROR, 502, None),
        ([FAILED, OVERLOADED], None, Kind.UPSTREAM_ERROR, 529, None),
        ([FAILED, CLIENTS], None, Kind.BAD_REQUEST, 400, None),
        ([CLIENTS, FAILED], None, Kind.UPSTREAM_ERROR, 502, None),
        ([FAILED, Problem(Kind.PAYLOAD_TOO_LARGE, "m")], None, Kind.PAYLOAD_TOO_LARGE, 413, None),
    ],
)
def test_the_final_answer(
    failures: list[Problem], cooling_s: float | None, kind: Kind, status: int, wait: float | None
) -> None:
    final = final_problem(failures, cooling_s)
    assert (final.kind, final.http_status, final.retry_after_s) == (kind, status, wait)
