"""Cross-origin requests of browsers (the Fetch standard, section 3.2): what is said to a page of another origin.

An origin that is not listed gets no word about it, and its browser keeps the reply from the page. Credentials in the
sense of the standard (cookies) are never allowed: the key is a header.
"""

from headrace.model.headers import Headers
from headrace.model.request import Reply, RequestHead

MAX_AGE_S = 600
"""How long a browser may keep a preflight's answer; browsers cap it at a few hours themselves."""
_METHODS = b"GET, HEAD, POST, DELETE"
_ALLOWED = frozenset(
    (
        b"authorization",
        b"x-api-key",
        b"x-goog-api-key",
        b"x-goog-api-client",
        b"x-server-timeout",
        b"content-type",
        b"user-agent",
        b"x-request-id",
    )
)
_ALLOWED_PREFIXES = (b"anthropic-", b"openai-", b"x-stainless-")
_EXPOSED = b"x-request-id, request-id, x-upstream-request-id, retry-after, retry-after-ms, x-should-retry"


def is_allowed(origin: bytes, origins: tuple[str, ...]) -> bool:
    """Whether `origin`, a request's Origin, is listed; `*` lists all."""
    return "*" in origins or origin.decode("latin-1").lower() in origins


def is_preflight(head: RequestHead) -> bool:
    """Whether a request only asks whether another may be made."""
    return head.method == "OPTIONS" and head.header(b"access-control-request-method") is not None


def preflight(head: RequestHead, origins: tuple[str, ...]) -> Reply:
    """The answer to a preflight: 204, with permissions only for a listed origin. It needs no key: browsers send
    none."""
    headers: Headers = [(b"vary", b"origin, access-control-request-headers")]
    origin = head.header(b"origin")
    if origin is not None and is_allowed(origin, origins):
        headers += [
            (b"access-control-allow-origin", origin),
            (b"access-control-allow-methods", _METHODS),
            (b"access-control-max-age", b"%d" % MAX_AGE_S),
        ]
        wanted = head.header(b"access-control-request-headers")
        if wanted is not None:
            names = [name.strip().lower() for name in wanted.split(b",")]
            granted = [name for name in names if name in _ALLOWED or name.startswith(_ALLOWED_PREFIXES)]
            headers.append((b"access-control-allow-headers", b", ".join(granted)))
    return Reply(204, headers, b"")


def reply_headers(head: RequestHead, origins: tuple[str, ...], narrowed: tuple[str, ...] = ()) -> Headers:
    """What every reply to a request carries: nothing where no origins are configured or the request is not a browser's.

    `narrowed` are the key's own origins; empty, the key narrows nothing.
    """
    if not origins:
        return []
    headers: Headers = [(b"vary", b"origin")]
    origin = head.header(b"origin")
    if origin is not None and is_allowed(origin, origins) and (not narrowed or is_allowed(origin, narrowed)):
        headers += [(b"access-control-allow-origin", origin), (b"access-control-expose-headers", _EXPOSED)]
    return headers
