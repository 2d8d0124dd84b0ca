"""Writes docs/reference/errors.md from the table of error kinds: `python -m headrace.protocols.reference`."""

import sys

import msgspec

from headrace.model.problem import FACTS, Kind, Problem
from headrace.protocols.dialect import anthropic_type, gemini_name, openai_error, retry_headers
from headrace.protocols.responses_failure import failure_event

_TOP = """# Errors

<!-- Written by `python -m headrace.protocols.reference`; a test compares it with the code. -->

Every error that Headrace itself produces is of one of these kinds. In the OpenAI dialect the kind is the error's
`code`:

```json
{"error": {"message": "what happened and what to do", "type": "server_error", "param": null, "code":
"upstream_timeout"}}
```

Beside it may stand `hint`, `did_you_mean` and `accepted_request_formats`. Anthropic's dialect has
`{"type": "error", "error": {"type", "message"}, "request_id"}`, Google's
`{"error": {"code", "message", "status"}}`, with the words of the table. The dialect follows the path; elsewhere
the client's headers. Every reply carries the gateway's id as `x-request-id` and `request-id`;
`headrace explain ID` tells the rest. An error that an upstream made of the client's own fault (400, 404, 409, 413, 422)
is relayed as it came.

## Kinds

| code | status | type | Anthropic's type | Google's status | code in a Responses stream | whose | retry headers | \
SDKs retry | cause | what to do |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""

_REST = """
## Retries

* `Retry-After` comes where a wait is known: whole seconds, at most 60, with `retry-after-ms` beside it. Google's
  clients read neither, so Google's dialect has it as `RetryInfo` in `details` too.
* `x-should-retry: false` stands where an SDK would repeat by the status alone what cannot succeed: also with
  `bad_request` as 409, 501 or 505, and with `insufficient_quota` as 429.
* "SDKs retry" is what OpenAI's and Anthropic's SDKs do as they come: two more attempts. google-genai makes none unless
  its `retry_options` are set; they go by the status alone.

## In a stream

Once a stream's head is out, the status is 200 and stays so. Then the error is the stream's last event, and the body
ends cleanly behind it. No SDK repeats such a request by itself; google-genai asks on where a `continuationToken` came.

| API | after an event of the upstream's | before any (early open) | official SDKs |
| --- | --- | --- | --- |
| Chat Completions | `data: {"error": {…}}` with a reply's members, type `server_error`, no `[DONE]` behind it | \
the same | raise `APIError`; its `code` is the kind |
| Responses | `event: response.failed`, which continues the upstream's response; `error.code` is the table's | \
the same, with an id of its own and `sequence_number` 0 | give the event and raise nothing; Python's \
`responses.stream` raises `RuntimeError`: for the final response, or at once where no other event came |
| Messages | `event: error` with `{"type":"error","error":{"type":"api_error","message":"Response stream interrupted, \
please retry"}}`; `stopped` has its own message | `event: error` with the table's type and the cause's message; \
`upstream_interrupted` as on the left | raise `APIStatusError`, in Python with status 200 |
| Gemini | `data: {"error":{"code":503,"message":"…","status":"UNAVAILABLE"}}` | the same with the table's status, as \
`code`, and Google's status | raise the error of that `code`: `ClientError` below 500, else `ServerError` |

Without streaming, in Gemini's JSON array and inside an event that is larger than `max_event` there is no such form: the
connection is aborted. The pages of the APIs tell the exact bytes.
"""


def page() -> str:
    """The whole page."""
    return _TOP + "".join(_row(kind) for kind in Kind) + _REST


def _row(kind: Kind) -> str:
    facts = FACTS[kind]
    problem = Problem(kind, "")
    error = openai_error(problem)
    refused = (b"x-should-retry", b"false") in retry_headers(problem)
    retries = (facts.status in (408, 409, 429) or facts.status >= 500) and not refused
    cells = [
        f"`{kind.value}`",
        str(facts.status),
        f"`{error['type']}`",
        f"`{anthropic_type(problem)}`",
        f"`{gemini_name(problem.http_status)}`",
        f"`{_code_in_a_response(problem)}`",
        facts.source.value,
        _headers(kind, refused),
        "yes" if retries else "no",
        facts.cause,
        facts.remedy,
    ]
    return "| " + " | ".join(cells) + " |\n"


def _headers(kind: Kind, refused: bool) -> str:
    if kind is Kind.METHOD_NOT_ALLOWED:
        return "`Allow`"
    if refused:
        return "`x-should-retry: false`"
    return "`Retry-After`" if FACTS[kind].retryable else "none"


def _code_in_a_response(problem: Problem) -> str:
    """As the event has it."""
    event = msgspec.json.decode(failure_event(problem, None, b"\n", "").partition(b"data: ")[2])
    return str(event["response"]["error"]["code"])


if __name__ == "__main__":
    sys.stdout.write(page())
