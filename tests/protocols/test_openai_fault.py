"""What OpenAI's error objects mean, and that none of them can break a reply or a record."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.problem import Kind, Source
from headrace.protocols.chat import Chat
from headrace.protocols.openai_fault import problem_from_error


@pytest.mark.parametrize(
    ("error", "kind", "status"),
    [
        ({"code": "rate_limit_exceeded"}, Kind.UPSTREAM_RATE_LIMITED, 429),
        ({"type": "rate_limit_error"}, Kind.UPSTREAM_RATE_LIMITED, 429),
        ({"type": "tokens", "code": "rate_limit_exceeded"}, Kind.UPSTREAM_RATE_LIMITED, 429),
        ({"code": 429}, Kind.UPSTREAM_RATE_LIMITED, 429),
        ({"code": "429"}, Kind.UPSTREAM_RATE_LIMITED, 429),
        ({"code": "insufficient_quota"}, Kind.UPSTREAM_ERROR, 502),
        ({"code": "invalid_api_key"}, Kind.UPSTREAM_ERROR, 502),
        ({"type": "permission_error"}, Kind.UPSTREAM_ERROR, 502),
        ({"code": 401}, Kind.UPSTREAM_ERROR, 502),
        ({"code": "model_not_found"}, Kind.UPSTREAM_ERROR, 404),
        ({"code": "context_length_exceeded", "type": "invalid_request_error"}, Kind.BAD_REQUEST, 400),
        ({"type": "invalid_request_error", "code": None}, Kind.BAD_REQUEST, 400),
        ({"code": "content_filter"}, Kind.BAD_REQUEST, 400),
        ({"code": 413}, Kind.BAD_REQUEST, 413),
        ({"code": "server_error"}, Kind.UPSTREAM_ERROR, 500),
        ({"code": "Server_Error"}, Kind.UPSTREAM_ERROR, 500),
        ({"code": "server_is_overloaded"}, Kind.UPSTREAM_ERROR, 503),
        ({"type": "overloaded_error"}, Kind.UPSTREAM_ERROR, 529),
        ({"code": 502, "message": "limit"}, Kind.UPSTREAM_ERROR, 502),
        ({"code": 408}, Kind.UPSTREAM_ERROR, 500),
        ({"code": "timeout"}, Kind.UPSTREAM_TIMEOUT, 504),
        ({"status": 503}, Kind.UPSTREAM_ERROR, 503),
        ({"code": "unheard_of", "type": "invalid_request_error"}, Kind.BAD_REQUEST, 400),
        ({"code": "unheard_of"}, Kind.UPSTREAM_ERROR, 500),
        ({"code": 200}, Kind.UPSTREAM_ERROR, 500),
        ({"code": 600}, Kind.UPSTREAM_ERROR, 500),
        ({"code": True}, Kind.UPSTREAM_ERROR, 500),
        ({"code": 1.5}, Kind.UPSTREAM_ERROR, 500),
        ({"code": "٤٢٩"}, Kind.UPSTREAM_ERROR, 500),
        ({"code": ["x"], "type": {"y": 1}}, Kind.UPSTREAM_ERROR, 500),
        ({}, Kind.UPSTREAM_ERROR, 500),
        ("text", Kind.UPSTREAM_ERROR, 500),
        (["a"], Kind.UPSTREAM_ERROR, 500),
        (5, Kind.UPSTREAM_ERROR, 500),
    ],
)
def test_what_an_error_means(error: object, kind: Kind, status: int) -> None:
    problem = problem_from_error(error)
    assert (problem.kind, problem.http_status) == (kind, status)
    assert problem.fault is Source.UPSTREAM


def test_the_clients_own_fault_keeps_its_words() -> None:
    problem = problem_from_error({"code": "context_length_exceeded", "message": "Too long."})
    assert problem.message == "Too long."
    assert problem_from_error({"code": "invalid_prompt"}).message


def test_the_channels_trouble_is_not_the_clients_to_read() -> None:
    """A message may name the account, or quote a prompt: neither is told, nor recorded."""
    for code in ("invalid_api_key", "rate_limit_exceeded", "server_error"):
        problem = problem_from_error({"code": code, "message": "org-123 sk-secret"})
        assert "org-123" not in problem.message + problem.detail
        assert code in problem.detail


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text() | st.just("\ud83d" * 600),
        lambda inner: (
            st.dictionaries(st.sampled_from(["code", "type", "status", "message", "x"]), inner) | st.lists(inner)
        ),
        max_leaves=6,
    )
)
def test_no_error_breaks_a_reply_or_a_record(error: object) -> None:
    problem = problem_from_error(error)
    assert 400 <= problem.http_status <= 599
    assert len(problem.message) <= 500 and len(problem.detail.encode()) <= 2100
    assert json.loads(Chat().refuse(problem, "hr_1").body)["error"]["message"] == problem.message
    assert Chat().interrupt(problem, None, b"\n").endswith(b"\n\n")


@pytest.mark.parametrize("error", [{"code": "unheard_of"}, {"type": "odd"}, {}, "text"])
def test_the_replys_status_counts_where_no_word_is_known(error: object) -> None:
    found = problem_from_error(error, 422)
    assert (found.kind, found.http_status) == (Kind.BAD_REQUEST, 422)
    assert problem_from_error(error, 200).http_status == 500
    assert problem_from_error({"code": "server_error"}, 422).http_status == 500
