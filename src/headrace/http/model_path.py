"""Gemini's paths, which name the model and what is asked of it: `/{v1,v1beta}/models/{model}:{verb}`.

A model's name may hold slashes and colons, plain or percent-encoded: the verb follows the last colon. The name is
decoded once. Dot segments, backslashes and control characters never come here (`http.target`), and whoever writes the
name into a path encodes it again.
"""

from urllib.parse import quote, unquote

VERBS = {
    "generateContent": "gemini.generate_content",
    "streamGenerateContent": "gemini.stream_generate_content",
    "countTokens": "gemini.count_tokens",
    "embedContent": "gemini.embed_content",
    "batchEmbedContents": "gemini.batch_embed_contents",
}
"""What can be asked of a model, and the operation that each is."""

PREFIXES = ("/v1/models/", "/v1beta/models/")
_PLAIN = "/:@!$&'()*+,;=~"
"""What may stand in a path as it is (RFC 3986, pchar and the slash)."""


def model_and_verb(path: str) -> tuple[str, str] | None:
    """(model, verb) of a path below one of PREFIXES that ends in a known verb; None for any other.

    A name that is not UTF-8 when decoded keeps its percent signs.
    """
    for prefix in PREFIXES:
        if path.startswith(prefix):
            name, _, verb = path.removeprefix(prefix).rpartition(":")
            return (decoded(name), verb) if verb in VERBS else None
    return None


def decoded(name: str) -> str:
    """A name from a path, percent-decoded once; as it stands where that is not UTF-8."""
    if "%" not in name:
        return name
    try:
        return unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name


def encoded(name: str) -> str:
    """A name as it can stand in a path; slashes and colons stay."""
    return quote(name, safe=_PLAIN)


def has_dot_segment(name: str) -> bool:
    """Whether a name has `.` or `..` between slashes: put into a path, it would lead elsewhere."""
    return (name.startswith(".") or "/." in name) and any(part in (".", "..") for part in name.split("/"))


def streams_events(query: str) -> bool:
    """Whether a stream is asked for as server-sent events: `alt=sse`, or Google's other spelling `$alt`."""
    return any(part in ("alt=sse", "$alt=sse", "%24alt=sse") for part in query.split("&"))
