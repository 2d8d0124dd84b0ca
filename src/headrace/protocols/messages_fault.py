"""What Anthropic's error objects mean: `{"type": "error", "error": {"type", "message", "details"?: {"error_code"}}}`.

The types are those of anthropic-python 2.14.0 (types/shared, _exceptions.py); in a stream they come with status 200.
"""

import json

from headrace.model.problem import Kind, Problem
from headrace.protocols.dialect import ANTHROPIC_TYPES
from headrace.protocols.fault import clean_text, problem_from_status

_STATUS = {word: status for status, word in ANTHROPIC_TYPES.items()}
_SPEND_LIMIT = "spend_limit"
_UNKNOWN_MODEL = "model:"
"""How the message of a 404 about the model begins."""


def problem_from_error(error: object, status: int | None = None) -> Problem:
    """The problem behind an `error` member; `status` is the reply's own, else the one that the type maps to.

    A limit of spending is 402 whatever its type says: no waiting helps, so it is the channel's failure.
    """
    if not isinstance(error, dict):
        return problem_from_status(status or 500, "", clean_text(error) if error else "")
    word = error.get("type")
    word = word if isinstance(word, str) else ""
    message = clean_text(error.get("message") or "")
    code = _error_code(error)
    if status is None:
        status = _STATUS.get(word, 500)
    if _SPEND_LIMIT in code:
        status = 402
    words = clean_text(f"{word} {code}".rstrip())
    if status == 404 and message.startswith(_UNKNOWN_MODEL):
        # Another channel may well know it.
        return Problem(
            Kind.UPSTREAM_ERROR, "The upstream does not know this model. Try again later.", detail=f"404 {words}"
        )
    return problem_from_status(status, words, message)


def problem_from_body(body: bytes, status: int) -> Problem | None:
    """What an error reply's body says (status 4xx, 5xx), or a 200 whose body is an error; None for anything else."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(value, dict) or not value.get("error"):
        return None
    return problem_from_error(value["error"], status if status >= 400 else None)


def _error_code(error: dict[str, object]) -> str:
    details = error.get("details")
    code = details.get("error_code") if isinstance(details, dict) else None
    return code if isinstance(code, str) else ""
