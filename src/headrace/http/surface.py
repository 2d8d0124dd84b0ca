"""The data port's paths: which of them may go upstream, in which protocol, and what the others are."""

from dataclasses import dataclass
from enum import Enum

from headrace.http.model_path import PREFIXES, VERBS, decoded, model_and_verb
from headrace.http.target import without_key
from headrace.model.problem import Kind, Problem
from headrace.model.request import RequestHead
from headrace.model.wire import Dialect, WireProtocol


class Place(Enum):
    """What stands at a path."""

    EXCHANGE = "exchange"
    MODELS = "models"
    MODEL = "model"
    USAGE = "usage"
    HEALTH = "health"
    READY = "ready"
    ABOUT = "about"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path of the data port. `argument` is what the path names: a model's id."""

    place: Place
    dialect: Dialect = Dialect.OPENAI
    protocol: WireProtocol | None = None
    operation: str = ""
    argument: str = ""


_EXCHANGES = {
    "/v1/chat/completions": Endpoint(
        Place.EXCHANGE, protocol=WireProtocol.CHAT, operation="chat.completions", dialect=Dialect.OPENAI
    ),
    "/v1/responses": Endpoint(Place.EXCHANGE, protocol=WireProtocol.RESPONSES, operation="responses"),
    "/v1/responses/input_tokens": Endpoint(
        Place.EXCHANGE, protocol=WireProtocol.RESPONSES, operation="responses.input_tokens"
    ),
    "/v1/responses/compact": Endpoint(Place.EXCHANGE, protocol=WireProtocol.RESPONSES, operation="responses.compact"),
    "/v1/messages": Endpoint(
        Place.EXCHANGE, protocol=WireProtocol.MESSAGES, operation="messages", dialect=Dialect.ANTHROPIC
    ),
    "/v1/messages/count_tokens": Endpoint(
        Place.EXCHANGE, protocol=WireProtocol.MESSAGES, operation="messages.count_tokens", dialect=Dialect.ANTHROPIC
    ),
}
_FAMILIES = {
    WireProtocol.COMPLETIONS: ("completions",),
    WireProtocol.EMBEDDINGS: ("embeddings",),
    WireProtocol.MODERATIONS: ("moderations",),
    WireProtocol.IMAGES: ("images.generations", "images.edits", "images.variations"),
    WireProtocol.AUDIO: ("audio.speech", "audio.transcriptions", "audio.translations"),
    WireProtocol.VIDEOS: ("videos",),
    WireProtocol.RERANK: ("rerank",),
}
"""The passthrough families' operations; an operation's name is its path: images.edits, /v1/images/edits."""
_PASSED = {
    "/v1/" + operation.replace(".", "/"): Endpoint(Place.EXCHANGE, protocol=family, operation=operation)
    for family, operations in _FAMILIES.items()
    for operation in operations
}
_PAGES = {
    "/healthz": Endpoint(Place.HEALTH),
    "/readyz": Endpoint(Place.READY),
    "/": Endpoint(Place.ABOUT),
    "/v1/models": Endpoint(Place.MODELS),
    "/v1beta/models": Endpoint(Place.MODELS, Dialect.GEMINI),
    "/v1/usage": Endpoint(Place.USAGE),
}
_ALIASES = {
    path.removeprefix("/v1"): path for path in (*_EXCHANGES, *_PAGES, "/v1/embeddings") if path.startswith("/v1/")
}
_EXCHANGES |= _PASSED
_PATHS_OF = (
    ("/v1/messages", Dialect.ANTHROPIC),
    ("/messages", Dialect.ANTHROPIC),
    ("/v1beta", Dialect.GEMINI),
    ("/upload/v1beta", Dialect.GEMINI),
)
"""Paths that belong to one API, with all that is below them, whether something stands there or not."""
_GEMINI_HEADERS = (b"x-goog-api-key", b"x-goog-api-client")
_MODEL_PREFIXES = (*PREFIXES, "/models/")
_GEMINI_CALLS = {
    verb: Endpoint(Place.EXCHANGE, Dialect.GEMINI, WireProtocol.GEMINI, operation) for verb, operation in VERBS.items()
}


def find(method: str, path: str) -> Endpoint | Problem:
    """The endpoint at `path`, or 404 with the likely fix, or 405 with what is allowed. HEAD is GET."""
    path = _ALIASES.get(path, path)
    if (exchange := _EXCHANGES.get(path) or _gemini_call(path)) is not None:
        return exchange if method == "POST" else _not_allowed(method, path, "POST")
    page = _PAGES.get(path) or _model(path)
    if page is None:
        return Problem(
            Kind.NOT_FOUND, f"There is nothing at {path[:200]}.{_likely(path)}", hint=_likely(path).strip() or None
        )
    if method == "POST" and page.place is Place.MODEL:
        verbs = ", ".join(VERBS)
        return Problem(
            Kind.NOT_FOUND, f"{path[:200]} asks nothing of a model. The path ends in `:` and one of {verbs}."
        )
    return page if method in ("GET", "HEAD") else _not_allowed(method, path, "GET, HEAD")


def dialect_of(head: RequestHead) -> Dialect:
    """How errors and lists are spelled for this request: as its path's API does, elsewhere as its client seems to."""
    path = _ALIASES.get(head.path, head.path)
    if (exchange := _EXCHANGES.get(path) or _gemini_call(path)) is not None:
        return exchange.dialect
    for prefix, dialect in _PATHS_OF:
        if path == prefix or path.startswith(f"{prefix}/"):
            return dialect
    if any(head.header(name) is not None for name in _GEMINI_HEADERS) or without_key(head.query) != head.query:
        return Dialect.GEMINI
    return Dialect.ANTHROPIC if head.header(b"anthropic-version") is not None else Dialect.OPENAI


def _gemini_call(path: str) -> Endpoint | None:
    found = model_and_verb(path)
    return None if found is None else _GEMINI_CALLS[found[1]]


def _model(path: str) -> Endpoint | None:
    for prefix in _MODEL_PREFIXES:
        if path.startswith(prefix) and len(path) > len(prefix):
            return Endpoint(Place.MODEL, argument=decoded(path.removeprefix(prefix)))
    return None


def _not_allowed(method: str, path: str, allow: str) -> Problem:
    return Problem(Kind.METHOD_NOT_ALLOWED, f"{path} does not take {method[:20]}. Use {allow}.", allow=allow)


def _likely(path: str) -> str:
    """What the client probably meant: SDKs add `/v1` themselves or do not, and base URLs are written either way."""
    known = sorted({*_EXCHANGES, *_PAGES}, key=len, reverse=True)
    for wrong, right in (("/v1/v1/", "/v1/"), ("//", "/"), ("/v1beta/v1/", "/v1/")):
        if wrong in path and path.replace(wrong, right) in known:
            return f" Use {path.replace(wrong, right)}: the base URL has one part too many."
    for one in known:
        if len(one) > 1 and path.rstrip("/").endswith(one.removeprefix("/v1")):
            return f" Use {one}: check the base URL."
    return " Use /v1/chat/completions, /v1/messages or /v1/models; check the base URL."
