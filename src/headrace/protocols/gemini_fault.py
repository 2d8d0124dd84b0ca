"""What Google's error objects mean: `{"error": {"code": 503, "message", "status": "UNAVAILABLE", "details": […]}}`.

`code` is the HTTP status; `status` a name of google.rpc.Code. A stream's endpoint may wrap it in a list of one.
"""

import json
from dataclasses import replace

from headrace.model.problem import Kind, Problem
from headrace.protocols.fault import clean_text, problem_from_status

_STATUS = {
    "INVALID_ARGUMENT": 400,
    "FAILED_PRECONDITION": 400,
    "OUT_OF_RANGE": 400,
    "UNAUTHENTICATED": 401,
    "PERMISSION_DENIED": 403,
    "NOT_FOUND": 404,
    "ALREADY_EXISTS": 409,
    "ABORTED": 409,
    "RESOURCE_EXHAUSTED": 429,
    "CANCELLED": 499,
    "UNKNOWN": 500,
    "INTERNAL": 500,
    "DATA_LOSS": 500,
    "UNIMPLEMENTED": 501,
    "UNAVAILABLE": 503,
    "DEADLINE_EXCEEDED": 504,
}
_BAD_KEY = ("API_KEY_INVALID", "API_KEY_EXPIRED", "API_KEY_SERVICE_BLOCKED")


def problem_from_error(error: object, fallback: int = 500) -> Problem:
    """The problem behind an `error` member: its code verbatim, else what its status name maps to, else `fallback`.

    A key that is invalid comes as a 400; it is the channel's own failure all the same, as is a model that this channel
    does not know. RetryInfo is the wait that the upstream asks for.
    """
    if not isinstance(error, dict):
        return problem_from_status(fallback, "", clean_text(error))
    code, name = error.get("code"), error.get("status")
    status = _whole_status(code) or _STATUS.get(name if isinstance(name, str) else "") or fallback
    word = clean_text(name or code or "")
    message = clean_text(error.get("message") or "")
    listed = error.get("details")
    details = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    if status == 400 and any(one.get("reason") in _BAD_KEY for one in details):
        return problem_from_status(401, word, message)
    if status == 404 and "models/" in message:
        # Another channel may well know it.
        return Problem(
            Kind.UPSTREAM_ERROR, "The upstream does not know this model. Try again later.", detail=f"404 {word}"
        )
    problem = problem_from_status(status, word, message)
    waits = [wait for one in details if (wait := _seconds(one.get("retryDelay"))) is not None]
    return replace(problem, retry_after_s=waits[0]) if waits else problem


def problem_from_body(body: bytes, status: int = 200) -> Problem | None:
    """What an error reply's body says (status 4xx, 5xx), or a 200 whose body is an error; None for anything else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if isinstance(value, list) and value:
        value = value[0]
    if not isinstance(value, dict) or not value.get("error"):
        return None
    return problem_from_error(value["error"], status if 400 <= status <= 599 else 500)


def _whole_status(code: object) -> int | None:
    """An HTTP status of an error; some servers write it as a text."""
    if isinstance(code, str) and code.isascii() and code.isdigit() and len(code) == 3:
        code = int(code)
    return code if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599 else None


def _seconds(delay: object) -> float | None:
    """Google's spelling of a duration: `"37s"`, `"1.5s"`."""
    if not isinstance(delay, str) or not delay.endswith("s"):
        return None
    try:
        seconds = float(delay[:-1])
    except ValueError:
        return None
    return seconds if 0 <= seconds < float("inf") else None
