"""Writes docs/reference/errors.md from the table of error kinds: `python -m headrace.protocols.reference`."""

import sys

from headrace.model.problem import FACTS, Kind, Problem
from headrace.protocols.dialect import anthropic_type, gemini_name, openai_error, retry_headers

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
`headrace explain ID` tells the rest.

* An error that an upstream made of the client's own fault (400, 404, 409, 413, 422) is relayed as it came.
* Once a stream's head is out, the status is 200 and stays so. Then the error is the stream's last event: on Chat
  Completions `data: {"error": {…}}` with the same members and type `server_error`, and no `[DONE]`; on Messages
  `event: error`. Official SDKs raise it. The pages of the APIs tell the exact bytes.
* `Retry-After` is at most 60 seconds, with `retry-after-ms` beside it. `x-should-retry: false` stands where an SDK
  would repeat by the status alone what cannot succeed.

| code | status | type | Anthropic's type | Google's status | whose | SDKs retry | cause | what to do |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The whole page."""
    return _TOP + "".join(_row(kind) for kind in Kind)


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
        facts.source.value,
        "yes" if retries else "no",
        facts.cause,
        facts.remedy,
    ]
    return "| " + " | ".join(cells) + " |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
