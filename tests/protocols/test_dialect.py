"""Retry headers as SDKs obey them, and the second reading of JSON."""

import json
from dataclasses import replace

import pytest

from headrace.model.headers import Headers
from headrace.model.problem import FACTS, Kind, Problem
from headrace.model.wire import Dialect
from headrace.protocols.dialect import (
    anthropic_error,
    gemini_error,
    openai_error,
    read_json,
    refuse,
    refuse_openai,
    retry_headers,
)

PROBLEM = Problem(Kind.OVERLOADED, "Try later.")


@pytest.mark.parametrize(
    ("wait", "headers"),
    [
        (None, []),
        (0.0, [(b"retry-after", b"1"), (b"retry-after-ms", b"0")]),
        (0.2, [(b"retry-after", b"1"), (b"retry-after-ms", b"200")]),
        (1.2, [(b"retry-after", b"2"), (b"retry-after-ms", b"1200")]),
        (60.0, [(b"retry-after", b"60"), (b"retry-after-ms", b"60000")]),
        (3600.0, [(b"retry-after", b"60"), (b"retry-after-ms", b"60000")]),
        (-5.0, [(b"retry-after", b"1"), (b"retry-after-ms", b"0")]),
    ],
)
def test_retry_after(wait: float | None, headers: Headers) -> None:
    """at most 60 s, or Anthropic's SDKs hang and OpenAI's give up."""
    assert retry_headers(replace(PROBLEM, retry_after_s=wait)) == headers


@pytest.mark.parametrize("kind", list(Kind))
@pytest.mark.parametrize("status", [None, 402, 408, 409, 429, 503, 529])
def test_what_cannot_succeed_is_not_tried_again(kind: Kind, status: int | None) -> None:
    """SDKs repeat 408, 409, 429 and 5xx by themselves; where that is in vain they are told."""
    problem = Problem(kind, "x", status=status)
    told = (b"x-should-retry", b"false") in retry_headers(problem)
    repeated = problem.http_status in (408, 409, 429) or problem.http_status >= 500
    assert told is (repeated and not FACTS[kind].retryable)
    assert (b"x-should-retry", b"true") in retry_headers(replace(problem, should_retry=True))
    assert (b"x-should-retry", b"false") in retry_headers(replace(problem, should_retry=False))


def test_an_exhausted_budget_told_as_429() -> None:
    assert retry_headers(Problem(Kind.INSUFFICIENT_QUOTA, "x", status=429)) == [(b"x-should-retry", b"false")]
    assert retry_headers(Problem(Kind.INSUFFICIENT_QUOTA, "x")) == []


def test_allow() -> None:
    assert retry_headers(Problem(Kind.METHOD_NOT_ALLOWED, "x", allow="GET, HEAD")) == [(b"allow", b"GET, HEAD")]


@pytest.mark.parametrize(
    ("status", "name"),
    [
        (400, "invalid_request_error"),
        (401, "authentication_error"),
        (402, "insufficient_quota"),
        (403, "permission_error"),
        (404, "invalid_request_error"),
        (413, "invalid_request_error"),
        (429, "rate_limit_error"),
        (500, "server_error"),
        (504, "server_error"),
        (529, "server_error"),
    ],
)
def test_openai_types(status: int, name: str) -> None:
    assert openai_error(Problem(Kind.INTERNAL, "x", status=status))["type"] == name


def test_openai_members() -> None:
    problem = Problem(
        Kind.MODEL_NOT_FOUND, "No.", param="model", hint="h", did_you_mean="m", accepted_formats=("a", "b")
    )
    reply = refuse_openai(problem)
    assert reply.status == 404
    assert list(json.loads(reply.body)["error"].items()) == [
        ("message", "No."),
        ("type", "invalid_request_error"),
        ("param", "model"),
        ("code", "model_not_found"),
        ("hint", "h"),
        ("did_you_mean", "m"),
        ("accepted_request_formats", ["a", "b"]),
    ]


@pytest.mark.parametrize("dialect", list(Dialect))
@pytest.mark.parametrize("kind", list(Kind))
def test_every_kind_in_every_dialect(kind: Kind, dialect: Dialect) -> None:
    reply = refuse(dialect, Problem(kind, "What to do.", did_you_mean="m", retry_after_s=2.0), "hr_1")
    body = json.loads(reply.body)
    error = body["error"]
    assert reply.status == FACTS[kind].status and error["message"].startswith("What to do.")
    assert (b"content-type", b"application/json") in reply.headers and (b"retry-after", b"2") in reply.headers
    if dialect is Dialect.ANTHROPIC:
        assert body["type"] == "error" and body["request_id"] == "hr_1" and error["type"]
    elif dialect is Dialect.GEMINI:
        assert error["code"] == reply.status and isinstance(error["code"], int)
        assert error["status"].isupper() and error["details"][0]["retryDelay"] == "2s"
    else:
        assert error["code"] == kind.value


def test_other_dialects_without_more_to_say() -> None:
    assert anthropic_error(PROBLEM) == {"type": "overloaded_error", "message": "Try later."}
    assert gemini_error(PROBLEM) == {"code": 503, "message": "Try later.", "status": "UNAVAILABLE"}
    assert "details" not in json.loads(refuse(Dialect.GEMINI, PROBLEM, "").body)["error"]


@pytest.mark.parametrize("body", [b'{"a":"\\ud83d"}', b"5", b"[]", b"null", b'{"a":1e5}'])
def test_json_read_again(body: bytes) -> None:
    assert read_json(body) == json.loads(body)


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"\xff", "not UTF-8"),
        (b"[" * 100_000, "nested too deeply"),
        (b"NaN", "NaN"),
        (b"[Infinity]", "Infinity"),
        (b"{", "Expecting"),
        (b"\xef\xbb\xbf{}", "BOM"),
        (b"1" * 5000, "limit"),
    ],
)
def test_json_that_is_none(body: bytes, says: str) -> None:
    problem = read_json(body)
    assert isinstance(problem, Problem) and problem.kind is Kind.BAD_REQUEST and says in problem.message
