import json

import pytest

from headrace.model.problem import Kind, Problem, Source
from headrace.protocols.gemini_fault import problem_from_body, problem_from_error


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"code": 503, "message": "busy", "status": "UNAVAILABLE"}, Kind.UPSTREAM_ERROR, 503),
        ({"code": 500}, Kind.UPSTREAM_ERROR, 500),
        ({"code": 504}, Kind.UPSTREAM_TIMEOUT, 504),
        ({"code": 529}, Kind.UPSTREAM_ERROR, 529),
        ({"code": 429, "status": "RESOURCE_EXHAUSTED"}, Kind.UPSTREAM_RATE_LIMITED, 429),
        ({"code": 400, "message": "bad"}, Kind.BAD_REQUEST, 400),
        ({"code": 404, "message": "no such cache"}, Kind.BAD_REQUEST, 404),
        ({"code": 401}, Kind.UPSTREAM_ERROR, 502),
        ({"code": 403}, Kind.UPSTREAM_ERROR, 502),
        ({"code": 404, "message": "models/x is not found"}, Kind.UPSTREAM_ERROR, 502),
        ({"code": 400, "details": [{"reason": "API_KEY_INVALID"}]}, Kind.UPSTREAM_ERROR, 502),
        ({"code": "429"}, Kind.UPSTREAM_RATE_LIMITED, 429),
        ({"status": "RESOURCE_EXHAUSTED"}, Kind.UPSTREAM_RATE_LIMITED, 429),
        ({"code": 14, "status": "UNAVAILABLE"}, Kind.UPSTREAM_ERROR, 503),
        ({"code": True, "status": 5, "message": {}}, Kind.UPSTREAM_ERROR, 500),
        ({}, Kind.UPSTREAM_ERROR, 500),
        ("gone", Kind.UPSTREAM_ERROR, 500),
    ],
)
def test_the_code_decides(error: object, kind: Kind, status: int) -> None:
    problem = problem_from_error(error)
    assert (problem.kind, problem.http_status) == (kind, status)


def test_the_clients_fault_is_told_in_the_upstreams_words() -> None:
    problem = problem_from_error({"code": 400, "message": "bad \ud83d tools", "status": "INVALID_ARGUMENT"})
    assert (problem.message, problem.fault) == ("bad ? tools", Source.UPSTREAM)
    assert problem.detail == "upstream error 400 INVALID_ARGUMENT"
    assert "secret" not in str(problem_from_error({"code": 500, "message": "secret"}))


@pytest.mark.parametrize(
    ("delay", "wait"),
    [
        ("37s", 37.0),
        ("1.5s", 1.5),
        ("0s", 0.0),
        ("-1s", None),
        ("infs", None),
        ("nans", None),
        ("x", None),
        ("xs", None),
        (3, None),
    ],
)
def test_retry_info(delay: object, wait: float | None) -> None:
    error = {"code": 429, "details": [{"reason": "X"}, 5, {"retryDelay": delay}]}
    assert problem_from_error(error).retry_after_s == wait


def test_a_body() -> None:
    error = {"error": {"code": 503}}
    for body in (error, [error]):
        found = problem_from_body(json.dumps(body).encode())
        assert isinstance(found, Problem) and found.http_status == 503
    for other in (b"", b"<html>", b"[]", b"{}", b'{"error":null}', b"5", b"[" * 100_000):
        assert problem_from_body(other) is None


def test_the_replys_status_counts_where_the_error_has_none() -> None:
    for error in ({"message": "odd", "status": "NEW"}, "text"):
        body = json.dumps({"error": error}).encode()
        found = [problem_from_body(body, status) for status in (422, 200)]
        assert [(one.kind, one.http_status) for one in found if one is not None] == [
            (Kind.BAD_REQUEST, 422),
            (Kind.UPSTREAM_ERROR, 500),
        ]
