"""Every kind of error in every protocol: what goes out, what docs/reference/errors.md says, what official SDKs make of
it as a reply and inside a stream. What it shall be stands in `error_table.py`."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import anthropic
import openai
import pytest
from google.genai import errors

from headrace.model.problem import FACTS, Kind, Problem
from headrace.model.request import Call, RequestHead
from headrace.model.wire import Asked, WireProtocol
from headrace.protocols.chat import Chat
from headrace.protocols.gemini import Gemini
from headrace.protocols.interface import Api
from headrace.protocols.messages import Messages
from headrace.protocols.responses import Responses
from tests.sdk.error_calls import ID, MADE_AT, Sdks, Told
from tests.sdk.error_table import KINDS, ROWS, Retry, Row
from tests.stand.gemini import chunk, event
from tests.stand.messages import ERROR, START
from tests.stand.upstreams import Upstreams
from tests.stand.wire import ROLE_ONLY

pytestmark = pytest.mark.sdk

PAGE = Path(__file__).resolve().parent.parent.parent / "docs/reference/errors.md"
APIS: tuple[Api, ...] = (Chat(), Responses(), Messages(), Gemini())
HEAD = RequestHead("POST", "/v1/models/m:streamGenerateContent", "alt=sse", [])
BROKEN = "Response stream interrupted, please retry"
_CREATED = {
    "id": "resp_up",
    "object": "response",
    "created_at": 7,
    "model": "up",
    "output": [],
    "status": "in_progress",
}
BEGINNINGS = {
    WireProtocol.CHAT: ROLE_ONLY,
    WireProtocol.RESPONSES: "event: response.created\ndata: "
    + json.dumps({"type": "response.created", "sequence_number": 4, "response": _CREATED})
    + "\n\n",
    WireProtocol.MESSAGES: START,
    WireProtocol.GEMINI: event(chunk("A", tokens=1), "\n"),
}
"""The first event of a stream of each protocol."""

every_row = pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
every_api = pytest.mark.parametrize("api", [pytest.param(api, id=api.protocol.value) for api in APIS])
with_helper = pytest.mark.parametrize(
    ("api", "helper"),
    [
        pytest.param(api, helper, id=api.protocol.value + (" helper" if helper else ""))
        for api in APIS
        for helper in (False, True)
        if not (helper and api.protocol is WireProtocol.GEMINI)
    ],
)


@pytest.fixture(scope="module")
def sdks() -> Iterator[Sdks]:
    with Upstreams(1) as upstreams, Sdks(upstreams[0]) as made:
        yield made


def said(problem: Problem) -> str:
    """The message where the dialect has no member for `did_you_mean`."""
    return problem.message + (f" Did you mean {problem.did_you_mean!r}?" if problem.did_you_mean else "")


# ----------------------------------------------------------------------------------------------------------- the bytes


def test_the_table_has_every_kind() -> None:
    assert [row.kind for row in KINDS] == list(Kind)
    assert {row.kind: row.status for row in KINDS} == {kind: facts.status for kind, facts in FACTS.items()}


@every_api
@every_row
def test_a_replys_body(row: Row, api: Api) -> None:
    problem = row.problem
    reply = api.refuse(problem, ID)
    assert reply.status == row.status
    body = json.loads(reply.body)
    match api.protocol:
        case WireProtocol.MESSAGES:
            error = {"type": row.anthropic_type, "message": said(problem)}
            assert body == {"type": "error", "error": error, "request_id": ID}
        case WireProtocol.GEMINI:
            assert body == {"error": {"code": row.status, "message": said(problem), "status": row.gemini_status}}
        case _:
            own = {"message": problem.message, "type": row.openai_type, "param": problem.param, "code": row.kind.value}
            more = {
                "hint": problem.hint,
                "did_you_mean": problem.did_you_mean,
                "accepted_request_formats": list(problem.accepted_formats),
            }
            assert body == {"error": own | {name: value for name, value in more.items() if value}}


@every_row
def test_a_replys_retry_headers(row: Row) -> None:
    fixed = {b"x-should-retry": b"false"} if row.retry is Retry.FORBIDDEN else {}
    if row.kind is Kind.METHOD_NOT_ALLOWED:
        fixed |= {b"allow": b"GET, HEAD"}
    for wait, seconds, milliseconds in (
        (None, None, None),
        (0.0, b"1", b"0"),
        (0.25, b"1", b"250"),
        (1.2, b"2", b"1200"),
        (60.0, b"60", b"60000"),
        (86400.0, b"60", b"60000"),
    ):
        waits = {} if seconds is None else {b"retry-after": seconds, b"retry-after-ms": milliseconds}
        for api in APIS:
            reply = api.refuse(replace(row.problem, retry_after_s=wait), ID)
            headers = dict(reply.headers)
            assert len(headers) == len(reply.headers)
            assert headers == {b"content-type": b"application/json"} | fixed | waits
        details = json.loads(Gemini().refuse(replace(row.problem, retry_after_s=wait), ID).body)["error"].get(
            "details", []
        )
        assert [one["retryDelay"] for one in details] == ([] if seconds is None else [f"{seconds.decode()}s"])


@every_row
def test_a_problems_own_word_about_retries_stands(row: Row) -> None:
    for api in APIS:
        for word in (True, False):
            reply = api.refuse(replace(row.problem, should_retry=word), ID)
            assert dict(reply.headers)[b"x-should-retry"] == (b"true" if word else b"false")


# ------------------------------------------------------------------------------------------------------ SDKs: a reply


@every_api
@every_row
def test_what_an_sdk_raises(sdks: Sdks, row: Row, api: Api) -> None:
    problem = replace(row.problem, retry_after_s=2.0)
    reply = api.refuse(problem, ID)
    told = sdks.whole(api.protocol, reply)
    assert (told.events, told.attempts) == ([], 1)
    error = told.error
    match api.protocol:
        case WireProtocol.MESSAGES:
            assert isinstance(error, anthropic.APIStatusError)
            assert type(error) is row.anthropic_error
            assert (error.status_code, error.type, error.request_id) == (row.status, row.anthropic_type, ID)
            assert error.api_message == said(problem)
            assert error.body == json.loads(reply.body)
            assert error.response.headers["retry-after"] == "2"
        case WireProtocol.GEMINI:
            assert isinstance(error, errors.APIError)
            assert type(error) is row.gemini_error
            assert (error.code, error.status, error.message) == (row.status, row.gemini_status, said(problem))
            assert error.response.headers["x-request-id"] == ID
            assert error.details["error"]["details"][0]["retryDelay"] == "2s"
        case _:
            assert isinstance(error, openai.APIStatusError)
            assert type(error) is row.openai_error
            assert (error.status_code, error.code, error.type) == (row.status, row.kind.value, row.openai_type)
            assert (error.param, error.request_id) == (problem.param, ID)
            assert error.message == f"Error code: {row.status} - {problem.message}"
            assert error.body == json.loads(reply.body)["error"]
            assert error.response.headers["retry-after"] == "2"


@every_api
@every_row
def test_how_often_an_sdk_asks(sdks: Sdks, row: Row, api: Api) -> None:
    """The wait is so short that the SDKs' own back-off, half a second and more, does not come into it."""
    told = sdks.whole(api.protocol, api.refuse(replace(row.problem, retry_after_s=0.001), ID), retries=True)
    assert told.error is not None
    assert told.attempts == (1 if api.protocol is WireProtocol.GEMINI else row.retry.attempts)


# --------------------------------------------------------------------------------------------------- SDKs: in a stream


@with_helper
@every_row
def test_an_error_behind_an_event_and_a_keepalive(sdks: Sdks, row: Row, api: Api, helper: bool) -> None:
    for end in (b"\n", b"\r\n"):
        assert_raised_behind_an_event(told_behind_an_event(sdks, row, api, helper, end), row, api, helper)


def told_behind_an_event(sdks: Sdks, row: Row, api: Api, helper: bool, end: bytes) -> Told:
    first = BEGINNINGS[api.protocol].encode().replace(b"\n", end)
    observer = api.observer(Call(api.protocol, "", "m", Asked.EVENTS, b"{}"), False)
    observer.observe(first)
    keepalive = api.keepalive(end, observer.saw_id, HEAD, "hopbase-keepalive")
    last = api.interrupt(row.problem, observer, end, ID)
    assert keepalive and last.endswith(end + end) and last.count(b"\n") == last.count(end)
    return sdks.stream(api.protocol, [first, keepalive, last], helper=helper)


def assert_raised_behind_an_event(told: Told, row: Row, api: Api, helper: bool) -> None:
    assert told.attempts == 1
    match api.protocol:
        case WireProtocol.CHAT:
            assert [one.choices[0].delta.role for one in told.events] == ["assistant"]
            assert_chat(told, row)
        case WireProtocol.RESPONSES:
            assert_response(told, row, helper, ["response.created", "response.failed"], ("resp_up", 7, "up", 5))
        case WireProtocol.MESSAGES:
            assert [one.type for one in told.events] == ["message_start"]
            stopped = row.kind is Kind.STOPPED
            assert_messages(told, "api_error", row.problem.message if stopped else BROKEN)
        case WireProtocol.GEMINI:
            assert [one.text for one in told.events] == ["A"]
            assert_gemini(told, row, errors.ServerError, 503, "UNAVAILABLE")


@with_helper
@every_row
def test_an_error_after_an_early_open(sdks: Sdks, row: Row, api: Api, helper: bool) -> None:
    """The head and a keepalive are out, and nothing of the upstream's."""
    keepalive = api.keepalive(None, False, HEAD, "hopbase-keepalive")
    last = api.interrupt(row.problem, None, None, ID)
    told = sdks.stream(api.protocol, [keepalive, last], helper=helper)
    assert told.attempts == 1
    if api.protocol is WireProtocol.RESPONSES:
        assert_response(told, row, helper, ["response.failed"], (f"resp_{ID[3:]:0>48}", MADE_AT, "", 0))
        return
    assert told.events == []
    match api.protocol:
        case WireProtocol.CHAT:
            assert_chat(told, row)
        case WireProtocol.MESSAGES:
            broken = row.kind is Kind.UPSTREAM_INTERRUPTED
            assert_messages(told, row.anthropic_type, BROKEN if broken else said(row.problem))
        case WireProtocol.GEMINI:
            assert_gemini(told, row, row.gemini_error, row.status, row.gemini_status)


def assert_chat(told: Told, row: Row) -> None:
    error = told.error
    assert isinstance(error, openai.APIError) and type(error) is openai.APIError, error
    assert (error.code, error.type, error.param) == (row.kind.value, "server_error", row.problem.param)
    assert error.message == row.problem.message


def assert_response(told: Told, row: Row, helper: bool, kinds: list[str], told_of: tuple[str, int, str, int]) -> None:
    """Plain iteration gives the event; the helper raises: at once where there was no other, else for the final
    response."""
    if helper:
        missing = "response.created" if kinds == ["response.failed"] else "response.completed"
        assert isinstance(told.error, RuntimeError) and missing in str(told.error)
    else:
        assert told.error is None
        assert [one.type for one in told.events] == kinds
        last = told.events[-1]
        assert (last.response.id, last.response.created_at, last.response.model, last.sequence_number) == told_of
        assert (last.response.status, last.response.output, last.response.usage) == ("failed", [], None)
        assert (last.response.error.code, last.response.error.message) == (row.responses_code, row.problem.message)


def assert_messages(told: Told, kind: str, message: str) -> None:
    error = told.error
    assert isinstance(error, anthropic.APIStatusError) and type(error) is anthropic.APIStatusError, error
    assert (error.status_code, error.type, error.api_message, error.request_id) == (200, kind, message, ID)


def assert_gemini(told: Told, row: Row, kind: type[errors.APIError], code: int, status: str) -> None:
    error = told.error
    assert isinstance(error, errors.APIError) and type(error) is kind, error
    assert (error.code, error.status, error.message) == (code, status, said(row.problem))


# ------------------------------------------------------------------------------------------------------------ the page


@pytest.fixture(scope="module")
def page() -> str:
    return PAGE.read_text("utf-8")


def tables(page: str) -> list[list[dict[str, str]]]:
    """Each table of the page: its rows by the words of its head, without code marks."""
    found = []
    for block in re.findall(r"(?:^\|.*\n)+", page, re.M):
        head, rule, *rows = [[cell.strip() for cell in line.strip("|\n ").split(" | ")] for line in block.splitlines()]
        assert set("".join(rule)) <= {"-", " ", "|"} and all(len(row) == len(head) for row in rows), block[:80]
        found.append([dict(zip(head, row, strict=True)) for row in rows])
    return found


def test_the_page_has_a_row_for_each_kind(page: str) -> None:
    kinds = tables(page)[0]
    assert [row["code"] for row in kinds] == [f"`{row.kind.value}`" for row in KINDS]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in KINDS])
def test_a_row_of_the_page(page: str, row: Row) -> None:
    (found,) = (one for one in tables(page)[0] if one["code"] == f"`{row.kind.value}`")
    facts = FACTS[row.kind]
    headers = {Retry.YES: "`Retry-After`", Retry.NO: "none", Retry.FORBIDDEN: "`x-should-retry: false`"}[row.retry]
    assert found == {
        "code": f"`{row.kind.value}`",
        "status": str(row.status),
        "type": f"`{row.openai_type}`",
        "Anthropic's type": f"`{row.anthropic_type}`",
        "Google's status": f"`{row.gemini_status}`",
        "code in a Responses stream": f"`{row.responses_code}`",
        "whose": facts.source.value,
        "retry headers": "`Allow`" if row.kind is Kind.METHOD_NOT_ALLOWED else headers,
        "SDKs retry": "yes" if row.retry.attempts == 3 else "no",
        "cause": facts.cause,
        "what to do": facts.remedy,
    }


def test_the_page_tells_the_forms_in_a_stream(page: str) -> None:
    streams = {row["API"]: row["after an event of the upstream's"] for row in tables(page)[1]}
    assert list(streams) == ["Chat Completions", "Responses", "Messages", "Gemini"]
    assert ERROR.decode().splitlines()[1].removeprefix("data: ") in streams["Messages"]
    observer = Gemini().observer(Call(WireProtocol.GEMINI, "", "m", Asked.EVENTS, b"{}"), False)
    gemini = Gemini().interrupt(Problem(Kind.UPSTREAM_STALLED, "…"), observer, b"\n").decode().strip()
    assert f"`{gemini}`" in streams["Gemini"]
