"""A fault of the client that comes when its stream is open already is told as the client's, in each protocol's form."""

import json

import pytest

from headrace.model.outcome import Failure
from headrace.model.request import ReplyHead
from headrace.model.wire import Asked
from headrace.protocols.chat import Chat
from headrace.protocols.gemini import Gemini
from headrace.protocols.interface import Api
from headrace.protocols.messages import Messages
from headrace.protocols.responses import Responses
from headrace.upstream.judge import Judge


@pytest.mark.parametrize(
    ("api", "says"),
    [
        (Chat(), b'"code":"bad_request"'),
        (Responses(), b'"code":"invalid_prompt"'),
        (Gemini(), b'"code":422'),
        (Messages(), b'"type":"invalid_request_error"'),
    ],
)
@pytest.mark.parametrize(
    "error",
    [{"type": "odd", "code": "unheard_of", "message": "Yours."}, {"message": "Yours."}, {"type": "server_error"}],
)
def test_a_late_fault_of_the_clients_stays_the_clients(api: Api, says: bytes, error: dict[str, str]) -> None:
    judge = Judge(api, ReplyHead(422, [(b"content-type", b"application/json")]), Asked.EVENTS, opened=True)
    failure = judge(json.dumps({"error": error}).encode(), True)
    assert isinstance(failure, Failure) and failure.final
    assert failure.problem.http_status == 422 and not failure.problem.facts.retryable
    assert says in api.interrupt(failure.problem, None, b"\n", "hr_1")
    assert "message" not in error or error["message"] == failure.problem.message


def test_a_late_fault_without_a_body_has_its_status() -> None:
    failure = Judge(Gemini(), ReplyHead(413, []), Asked.EVENTS, opened=True)(b"", True)
    assert failure is not None and failure.problem.http_status == 413
