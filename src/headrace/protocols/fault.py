"""The problem that an upstream's error object stands for, by the HTTP status that it has or maps to."""

from headrace.model.problem import Kind, Problem, Source

MOST_TEXT = 500
"""Characters of an upstream's words that are kept."""


def problem_from_status(status: int, word: str, message: str) -> Problem:
    """`status` 400 to 599; `word` is the error's code or type, `message` the upstream's own text.

    The message reaches the client only where the fault is the client's; it may quote a prompt, so no record holds it.
    """
    detail = f"upstream error {status} {word}".rstrip()
    if status == 429:
        return Problem(
            Kind.UPSTREAM_RATE_LIMITED, "The upstream is rate limited. Try again later.", status=429, detail=detail
        )
    if status in (401, 402, 403):
        # The channel's own credential: the client can do nothing about it, and need not know.
        return Problem(
            Kind.UPSTREAM_ERROR, "The upstream refused the gateway. Try again later.", status=502, detail=detail
        )
    if word == "model_not_found":
        # About the route, not the request: another channel may well know the model.
        return Problem(Kind.UPSTREAM_ERROR, "The upstream does not know this model.", status=status, detail=detail)
    if 400 <= status < 500 and status != 408:
        return Problem(
            Kind.BAD_REQUEST, message or "The upstream refused the request.", Source.UPSTREAM, status, detail=detail
        )
    if status == 504:
        return Problem(Kind.UPSTREAM_TIMEOUT, "The upstream timed out. Try again.", detail=detail)
    return Problem(Kind.UPSTREAM_ERROR, "The upstream failed. Try again.", status=max(status, 500), detail=detail)


def clean_text(value: object) -> str:
    """What goes into replies and records, which are UTF-8: bounded, half a surrogate pair becomes a question mark."""
    return str(value)[:MOST_TEXT].encode("utf-8", "replace").decode("utf-8")
