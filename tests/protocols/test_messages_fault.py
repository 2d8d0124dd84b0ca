import json

import pytest

from headrace.model.problem import Kind, Problem, Source
from headrace.protocols.messages_fault import problem_from_body, problem_from_error


@pytest.mark.parametrize(
    ("word", "kind", "status"),
    [
        ("invalid_request_error", Kind.BAD_REQUEST, 400),
        ("authentication_error", Kind.UPSTREAM_ERROR, 502),
        ("billing_error", Kind.UPSTREAM_ERROR, 502),
        ("permission_error", Kind.UPSTREAM_ERROR, 502),
        ("not_found_error", Kind.BAD_REQUEST, 404),
        ("conflict_error", Kind.BAD_REQUEST, 409),
        ("request_too_large", Kind.BAD_REQUEST, 413),
        ("rate_limit_error", Kind.UPSTREAM_RATE_LIMITED, 429),
        ("api_error", Kind.UPSTREAM_ERROR, 500),
        ("timeout_error", Kind.UPSTREAM_TIMEOUT, 504),
        ("overloaded_error", Kind.UPSTREAM_ERROR, 529),
        ("zzz_error", Kind.UPSTREAM_ERROR, 500),
        (5, Kind.UPSTREAM_ERROR, 500),
    ],
)
def test_a_type_has_its_status(word: object, kind: Kind, status: int) -> None:
    problem = problem_from_error({"type": word, "message": "m"})
    assert (problem.kind, problem.http_status) == (kind, status)


@pytest.mark.parametrize("error", [None, "busy", ["busy"]])
def test_an_error_may_have_any_form(error: object) -> None:
    problem = problem_from_error(error)
    assert (problem.kind, problem.http_status) == (Kind.UPSTREAM_ERROR, 500)


@pytest.mark.parametrize(
    "code",
    ["contract_spend_limit_reached", "enforced_spend_limit_reached", "linked_organization_spend_limit_reached"],
)
def test_a_limit_of_spending_is_no_rate_limit(code: str) -> None:
    error = {"type": "rate_limit_error", "message": "m", "details": {"error_code": code}}
    problem = problem_from_error(error)
    assert (problem.kind, problem.http_status) == (Kind.UPSTREAM_ERROR, 502)
    assert code in problem.detail
    other = problem_from_error({**error, "details": {"error_code": 5}})
    assert other.kind is Kind.UPSTREAM_RATE_LIMITED


def test_an_unknown_model_is_not_the_clients_fault() -> None:
    error = {"type": "not_found_error", "message": "model: claude-x"}
    problem = problem_from_error(error)
    assert (problem.kind, problem.http_status, problem.fault) == (Kind.UPSTREAM_ERROR, 502, Source.UPSTREAM)


def test_texts_are_bounded_and_clean() -> None:
    problem = problem_from_error({"type": "invalid_request_error", "message": "\ud83d" + "x" * 1000})
    assert problem.message == "?" + "x" * 499


def read(body: object, status: int) -> Problem | None:
    return problem_from_body(body if isinstance(body, bytes) else json.dumps(body).encode(), status)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[" * 100_000, [], {}, {"error": None}, {"type": "message"}])
def test_no_error_object_is_no_problem(body: object) -> None:
    assert read(body, 200) is None


def test_the_replys_status_counts_where_it_is_an_error() -> None:
    body = {"type": "error", "error": {"type": "invalid_request_error", "message": "m"}}
    found = [read(body, status) for status in (200, 400, 422)]
    assert [problem.http_status for problem in found if problem is not None] == [400, 400, 422]
    text = read({"error": "busy"}, 404)
    assert text is not None
    assert (text.kind, text.message) == (Kind.BAD_REQUEST, "busy")
