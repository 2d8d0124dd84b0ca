"""What OpenAI's error objects mean: the status that an in-stream error maps to, and which 404 is about the model."""

from headrace.model.problem import Kind, Problem, Source

# Codes and types met in published error objects; a number is its own status. First match wins: code, then type.
_STATUS = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "tokens": 429,
    "requests": 429,
    "insufficient_quota": 402,
    "credit_balance_exhausted": 402,
    "billing_error": 402,
    "usage_not_included": 402,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "model_not_found": 404,
    "server_error": 500,
    "internal_error": 500,
    "internal_server_error": 500,
    "api_error": 500,
    "server_is_overloaded": 503,
    "slow_down": 503,
    "overloaded_error": 529,
    "overloaded": 503,
    "service_unavailable": 503,
    "timeout": 504,
    "timeout_error": 504,
    "invalid_request_error": 400,
    "invalid_prompt": 400,
    "context_length_exceeded": 400,
    "content_filter": 400,
    "content_policy_violation": 400,
    "string_above_max_length": 400,
}


def problem_from_error(error: object) -> Problem:
    """The problem behind an OpenAI `error` member: an object {message, type, param, code}, or a bare text.

    Status 400 to 599 by code or type; 500 where neither says anything.
    """
    if not isinstance(error, dict):
        return _problem(500, "", _text(error))
    code = error.get("code")
    message = _text(error.get("message") or "")
    for word in (code, error.get("status"), error.get("type")):
        status = _status(word)
        if status is not None:
            return _problem(status, _text(word), message)
    return _problem(500, _text(code or error.get("type") or ""), message)


def _text(value: object) -> str:
    """What goes into replies and records, which are UTF-8: bounded, half a surrogate pair becomes a question mark."""
    return str(value)[:500].encode("utf-8", "replace").decode("utf-8")


def _status(word: object) -> int | None:
    if isinstance(word, str):
        known = _STATUS.get(word.lower())
        if known is not None:
            return known
        word = int(word) if word.isascii() and word.isdigit() and len(word) == 3 else None
    if isinstance(word, int) and not isinstance(word, bool) and 400 <= word <= 599:
        return word
    return None


def _problem(status: int, code: str, message: str) -> Problem:
    detail = f"upstream error {status} {code}".rstrip()  # the message may quote a prompt
    if status == 429:
        return Problem(
            Kind.UPSTREAM_RATE_LIMITED, "The upstream is rate limited. Try again later.", status=429, detail=detail
        )
    if status in (401, 402, 403):
        # The channel's own credential: the client can do nothing about it, and need not know.
        return Problem(
            Kind.UPSTREAM_ERROR, "The upstream refused the gateway. Try again later.", status=502, detail=detail
        )
    if 400 <= status < 500 and status != 408:
        return Problem(
            Kind.BAD_REQUEST, message or "The upstream refused the request.", Source.UPSTREAM, status, detail=detail
        )
    if status == 504:
        return Problem(Kind.UPSTREAM_TIMEOUT, "The upstream timed out. Try again.", detail=detail)
    return Problem(Kind.UPSTREAM_ERROR, "The upstream failed. Try again.", status=max(status, 500), detail=detail)
