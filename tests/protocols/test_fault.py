import pytest

from headrace.model.problem import Kind, Source
from headrace.protocols.fault import clean_text, problem_from_status


@pytest.mark.parametrize(
    ("status", "kind", "told", "message"),
    [
        (400, Kind.BAD_REQUEST, 400, "m"),
        (401, Kind.UPSTREAM_ERROR, 502, None),
        (402, Kind.UPSTREAM_ERROR, 502, None),
        (403, Kind.UPSTREAM_ERROR, 502, None),
        (404, Kind.BAD_REQUEST, 404, "m"),
        (408, Kind.UPSTREAM_ERROR, 500, None),
        (429, Kind.UPSTREAM_RATE_LIMITED, 429, None),
        (500, Kind.UPSTREAM_ERROR, 500, None),
        (504, Kind.UPSTREAM_TIMEOUT, 504, None),
        (529, Kind.UPSTREAM_ERROR, 529, None),
    ],
)
def test_only_the_clients_own_fault_is_told_in_the_upstreams_words(
    status: int, kind: Kind, told: int, message: str | None
) -> None:
    problem = problem_from_status(status, "word", "m")
    assert (problem.kind, problem.http_status, problem.fault) == (kind, told, Source.UPSTREAM)
    assert problem.detail == f"upstream error {status} word"
    assert (problem.message == "m") is (message is not None)
    assert problem_from_status(400, "", "").message


def test_texts_are_bounded_and_utf8() -> None:
    assert clean_text("\ud83dx") == "?x"
    assert len(clean_text("x" * 9000)) == 500
    assert clean_text(5) == "5"
