"""The `response.failed` that ends a Responses stream which its upstream did not end.

Strict clients (serde, pydantic, generated code) refuse an object that lacks a member, a new id, or a sequence number
that begins anew, and then report a parse error in place of the failure. So the event is whole: what the gateway knows
of the upstream's response, and for the rest the API's own neutral values (openai-python 3.57.0,
types/responses/response.py).
"""

from dataclasses import dataclass

import msgspec

from headrace.model.problem import Problem

_DIGITS = "0123456789abcdefghjkmnpqrstvwxyz"
"""Of the gateway's ids: Crockford's base 32, two spare bits and 48 of milliseconds first (journal.ids)."""


@dataclass(slots=True)
class Identity:
    """What of an upstream's response its stream has told: all that is kept of it."""

    id: str = ""
    created_at: int | float = 0
    model: str = ""
    last_number: int | None = None
    """The last `sequence_number`; None where the upstream has sent none."""
    begun: bool = False
    """Whether any event but heartbeats and errors has come."""


class _Error(msgspec.Struct):
    code: str
    message: str


class _Reasoning(msgspec.Struct):
    effort: None = None
    summary: None = None


class _Format(msgspec.Struct):
    type: str = "text"


class _Text(msgspec.Struct):
    format: _Format = msgspec.field(default_factory=_Format)


class _Response(msgspec.Struct, kw_only=True):
    """A Response object; members in OpenAI's order."""

    id: str
    object: str = "response"
    created_at: int | float
    status: str = "failed"
    background: bool = False
    completed_at: None = None
    error: _Error
    incomplete_details: None = None
    instructions: None = None
    max_output_tokens: None = None
    model: str
    output: tuple[()] = ()
    parallel_tool_calls: bool = True
    previous_response_id: None = None
    reasoning: _Reasoning = msgspec.field(default_factory=_Reasoning)
    temperature: None = None
    text: _Text = msgspec.field(default_factory=_Text)
    tool_choice: str = "auto"
    tools: tuple[()] = ()
    top_p: None = None
    truncation: str = "disabled"
    usage: None = None
    user: None = None
    metadata: dict[str, str] = {}


class _Failed(msgspec.Struct, kw_only=True):
    type: str = "response.failed"
    sequence_number: int | msgspec.UnsetType = msgspec.UNSET
    response: _Response


def failure_event(problem: Problem, seen: Identity | None, line_end: bytes | None, request_id: str) -> bytes:
    """The whole event, in the stream's line ends (LF where none came)."""
    known = seen if seen is not None and seen.begun else Identity(last_number=-1)
    response = _Response(
        id=known.id or _own_id(request_id),
        created_at=known.created_at or _made_at(request_id),
        model=known.model,
        error=_Error(_code(problem), problem.message),
    )
    event = _Failed(response=response)
    if known.last_number is not None:
        event.sequence_number = known.last_number + 1
    end = line_end or b"\n"
    return b"event: response.failed" + end + b"data: " + msgspec.json.encode(event) + end + end


def _own_id(request_id: str) -> str:
    """The id of a failure before any event: of no response, in the form of one."""
    return "resp_" + request_id.removeprefix("hr_").rjust(48, "0")


def _made_at(request_id: str) -> int:
    """Seconds since the epoch, from the first 50 bits of the gateway's id; 0 where there is none."""
    number = 0
    for digit in request_id.removeprefix("hr_")[:10]:
        number = number * 32 + max(_DIGITS.find(digit), 0)
    return number // 1000


def _code(problem: Problem) -> str:
    """One of the API's own codes: Codex, for one, waits and tries again at the first, and gives up at the last."""
    status = problem.http_status
    if status == 429:
        return "rate_limit_exceeded"
    return "server_error" if status >= 500 else "invalid_prompt"
