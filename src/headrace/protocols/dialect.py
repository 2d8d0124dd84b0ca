"""How each dialect spells an error that is sent as an HTTP reply, and the JSON reading that all protocols share."""

import json
import math

import msgspec

from headrace.model.headers import Headers
from headrace.model.problem import Kind, Problem
from headrace.model.request import Reply
from headrace.model.wire import Dialect

MOST_RETRY_AFTER_S = 60
"""Anthropic's SDKs wait out any Retry-After; OpenAI's give up above 120 s (Python) or ignore it above 60 s (Node)."""

_RETRY_INFO = "type.googleapis.com/google.rpc.RetryInfo"
_OPENAI_TYPES = {
    401: "authentication_error",
    402: "insufficient_quota",
    403: "permission_error",
    429: "rate_limit_error",
}

ANTHROPIC_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    409: "conflict_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    504: "timeout_error",
    529: "overloaded_error",
}
"""Anthropic's error types by the status that each stands for (anthropic-python 2.14.0, types/shared)."""

GEMINI_NAMES = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    402: "RESOURCE_EXHAUSTED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    405: "UNIMPLEMENTED",
    408: "DEADLINE_EXCEEDED",
    409: "ABORTED",
    429: "RESOURCE_EXHAUSTED",
    499: "CANCELLED",
    500: "INTERNAL",
    501: "UNIMPLEMENTED",
    504: "DEADLINE_EXCEEDED",
}
"""Names of google.rpc.Code by the status that each stands for; else by the status's class."""


def refuse(dialect: Dialect, problem: Problem, request_id: str) -> Reply:
    """An error reply in `dialect`."""
    if dialect is Dialect.ANTHROPIC:
        return refuse_anthropic(problem, request_id)
    if dialect is Dialect.GEMINI:
        return refuse_gemini(problem)
    return refuse_openai(problem)


def openai_error(problem: Problem) -> dict[str, object]:
    """The `error` object of the OpenAI dialect; SDKs expose type and code verbatim and branch on the status."""
    error: dict[str, object] = {
        "message": problem.message,
        "type": _openai_type(problem),
        "param": problem.param,
        "code": problem.kind.value,
    }
    if problem.hint:
        error["hint"] = problem.hint
    if problem.did_you_mean:
        error["did_you_mean"] = problem.did_you_mean
    if problem.accepted_formats:
        error["accepted_request_formats"] = list(problem.accepted_formats)
    return error


def _openai_type(problem: Problem) -> str:
    """By status; but a spent budget has OpenAI's own word for it with 429 too, where it is no rate limit."""
    if problem.kind is Kind.INSUFFICIENT_QUOTA:
        return _OPENAI_TYPES[402]
    status = problem.http_status
    return "server_error" if status >= 500 else _OPENAI_TYPES.get(status, "invalid_request_error")


def refuse_openai(problem: Problem) -> Reply:
    """An OpenAI error reply: `{"error": {message, type, param, code}}` with the retry headers that its SDKs obey."""
    body = msgspec.json.encode({"error": openai_error(problem)})
    return Reply(problem.http_status, [(b"content-type", b"application/json"), *retry_headers(problem)], body)


def anthropic_error(problem: Problem) -> dict[str, object]:
    """The `error` object of Anthropic's dialect: {type, message}; its SDKs choose their class by the status."""
    message = problem.message
    if problem.did_you_mean:
        message += f" Did you mean {problem.did_you_mean!r}?"
    return {"type": anthropic_type(problem), "message": message}


def anthropic_type(problem: Problem) -> str:
    """The error type: by kind where the status alone would say the wrong thing, else by status."""
    status = problem.http_status
    if problem.kind is Kind.INSUFFICIENT_QUOTA:
        return ANTHROPIC_TYPES[402]
    if status == 503 and problem.kind is not Kind.STOPPED:
        return ANTHROPIC_TYPES[529]
    return ANTHROPIC_TYPES.get(status) or ANTHROPIC_TYPES[500 if status >= 500 else 400]


def refuse_anthropic(problem: Problem, request_id: str) -> Reply:
    """An Anthropic error reply: `{"type": "error", "error": {type, message}, "request_id"}` with the retry headers."""
    body = msgspec.json.encode({"type": "error", "error": anthropic_error(problem), "request_id": request_id})
    return Reply(problem.http_status, [(b"content-type", b"application/json"), *retry_headers(problem)], body)


def gemini_error(problem: Problem) -> dict[str, object]:
    """The `error` object of Google's dialect: {code, message, status}. google-genai fails on a code that is no
    integer."""
    message = problem.message
    if problem.did_you_mean:
        message += f" Did you mean {problem.did_you_mean!r}?"
    return {"code": problem.http_status, "message": message, "status": gemini_name(problem.http_status)}


def gemini_name(status: int) -> str:
    """The name that stands for an HTTP status."""
    return GEMINI_NAMES.get(status) or ("UNAVAILABLE" if status >= 500 else "INVALID_ARGUMENT")


def refuse_gemini(problem: Problem) -> Reply:
    """Google's error reply: `{"error": {code, message, status}}`, and the wait as RetryInfo, since its clients read no
    Retry-After."""
    error = gemini_error(problem)
    if problem.retry_after_s is not None:
        wait = min(max(problem.retry_after_s, 0.0), MOST_RETRY_AFTER_S)
        error["details"] = [{"@type": _RETRY_INFO, "retryDelay": f"{max(1, math.ceil(wait))}s"}]
    body = msgspec.json.encode({"error": error})
    return Reply(problem.http_status, [(b"content-type", b"application/json"), *retry_headers(problem)], body)


def retry_headers(problem: Problem) -> Headers:
    """`Retry-After` (whole seconds, at most 60) with `retry-after-ms` beside it, `x-should-retry` where it must
    overrule the status, and `Allow`."""
    headers: Headers = []
    if problem.retry_after_s is not None:
        wait = min(max(problem.retry_after_s, 0.0), MOST_RETRY_AFTER_S)
        headers.append((b"retry-after", b"%d" % max(1, math.ceil(wait))))
        headers.append((b"retry-after-ms", b"%d" % math.ceil(wait * 1000)))
    should_retry = problem.should_retry
    if should_retry is None and not problem.facts.retryable and _is_retried(problem.http_status):
        should_retry = False
    if should_retry is not None:
        headers.append((b"x-should-retry", b"true" if should_retry else b"false"))
    if problem.allow:
        headers.append((b"allow", problem.allow.encode("ascii")))
    return headers


def _is_retried(status: int) -> bool:
    """Whether official SDKs repeat a request by this status alone."""
    return status in (408, 409, 429) or status >= 500


def read_json(body: bytes) -> object | Problem:
    """Any JSON value, by the standard library: the second reading of what msgspec refused (lone surrogates are real
    traffic).

    UTF-8 only, no byte order mark, no NaN or Infinity, bounded nesting. A Problem says what is wrong and where.
    """
    try:
        value: object = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
        return value
    except UnicodeDecodeError:
        what = "it is not UTF-8"
    except RecursionError:
        what = "it is nested too deeply"
    except ValueError as error:
        what = str(error)
    return Problem(Kind.BAD_REQUEST, f"The request body is not valid JSON: {what}. Send one JSON object in UTF-8.")


def _refuse_constant(name: str) -> object:
    raise ValueError(f"{name} is not JSON")


def wrong_field(error: msgspec.ValidationError) -> Problem:
    """A field of a wrong type, named as `param`. msgspec says "Expected `bool | null`, got `str` - at `$.stream`"."""
    what, _, place = str(error).partition(" - at `")
    param = place.rstrip("`").removeprefix("$").removeprefix(".") or None
    if param is None:
        return Problem(Kind.BAD_REQUEST, f"The request body has a wrong shape: {what}. Send one JSON object.")
    return Problem(Kind.BAD_REQUEST, f"`{param}` has a wrong type: {what}.", param=param)
