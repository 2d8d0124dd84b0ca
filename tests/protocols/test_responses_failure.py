import json

import pytest
from openai.types.responses import ResponseFailedEvent

from headrace.model.problem import FACTS, Kind, Problem, Source
from headrace.protocols.responses_failure import Identity, failure_event
from headrace.sse.event import parse

SEEN = Identity("resp_1", 1790000000, "up", 7, begun=True)
OWN = "hr_01m8q4b28v294dqda0mjsmkayp"
PROBLEM = Problem(Kind.UPSTREAM_INTERRUPTED, "Send it again. 北")


def said(event: bytes) -> dict[str, object]:
    parsed = parse(event)
    assert parsed.name == b"response.failed" and parsed.data is not None
    value: dict[str, object] = json.loads(parsed.data)
    return value


@pytest.mark.parametrize("seen", [SEEN, None, Identity(), Identity(begun=True)])
def test_official_types_read_it(seen: Identity | None) -> None:
    """Strictly, so that a member that is missing or of a wrong type shows."""
    ResponseFailedEvent.model_validate({"sequence_number": 0, **said(failure_event(PROBLEM, seen, b"\n", OWN))})


def test_it_continues_what_was_seen() -> None:
    event = said(failure_event(PROBLEM, SEEN, b"\n", OWN))
    response = event.pop("response")
    assert event == {"type": "response.failed", "sequence_number": 8}
    assert isinstance(response, dict)
    assert [response[name] for name in ("id", "object", "created_at", "model", "status", "output")] == [
        "resp_1",
        "response",
        1790000000,
        "up",
        "failed",
        [],
    ]
    assert response["error"] == {"code": "server_error", "message": "Send it again. 北"}


def test_every_member_that_the_api_requires_is_there() -> None:
    """`required` of the Response schema in OpenAI's specification (openai/openai-openapi 2.3.0)."""
    response = said(failure_event(PROBLEM, SEEN, b"\n", OWN))["response"]
    assert isinstance(response, dict)
    required = (
        "id object created_at error incomplete_details instructions model tools output parallel_tool_calls metadata "
        "tool_choice temperature top_p"
    )
    assert set(required.split()) <= set(response)


def test_no_number_where_the_upstream_had_none() -> None:
    seen = Identity("resp_1", 1, "up", None, begun=True)
    assert "sequence_number" not in said(failure_event(PROBLEM, seen, b"\n", OWN))


@pytest.mark.parametrize("seen", [None, Identity(), Identity(last_number=3)], ids=["none", "nothing", "heartbeats"])
def test_before_any_event_it_stands_alone(seen: Identity | None) -> None:
    event = said(failure_event(PROBLEM, seen, None, OWN))
    response = event["response"]
    assert isinstance(response, dict)
    assert (event["sequence_number"], response["id"]) == (0, "resp_" + OWN.removeprefix("hr_").rjust(48, "0"))
    assert response["created_at"] == 1796072638


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_it_has_the_streams_line_ends(end: bytes) -> None:
    event = failure_event(PROBLEM, SEEN, end, OWN)
    assert event.count(end) == 3 and event.endswith(b"}" + end + end)
    assert event.replace(end, b"\n") == failure_event(PROBLEM, SEEN, b"\n", OWN)


@pytest.mark.parametrize("kind", list(Kind))
def test_the_code_follows_the_cause(kind: Kind) -> None:
    status = FACTS[kind].status
    expected = "rate_limit_exceeded" if status == 429 else "invalid_prompt" if status < 500 else "server_error"
    response = said(failure_event(Problem(kind, "m"), SEEN, None, OWN))["response"]
    assert isinstance(response, dict)
    assert response["error"]["code"] == expected


def test_an_upstreams_own_status_counts() -> None:
    problem = Problem(Kind.BAD_REQUEST, "m", Source.UPSTREAM, status=422)
    assert b'"code":"invalid_prompt"' in failure_event(problem, None, None, OWN)
