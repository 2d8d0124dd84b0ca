"""Which header fields pass: the client's up to an upstream, an upstream's down to a client. Lists, so that nothing
slips by."""

from headrace.model.headers import Headers, first, is_clean_value
from headrace.model.wire import Asked

HOP_BY_HOP = frozenset(
    (
        b"connection",
        b"keep-alive",
        b"proxy-connection",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    )
)
"""RFC 9110 section 7.6.1 and the fields that are hop-by-hop by custom."""

CREDENTIALS = frozenset(
    (b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key", b"xi-api-key", b"cookie", b"cookie2")
)
"""Every field that may hold a client's key: none of them goes up, whichever one the client used."""

_EVENT_STREAM = (b"content-type", b"text/event-stream; charset=utf-8")
_ARRAY = (b"content-type", b"application/json; charset=utf-8")
_UNBUFFERED: Headers = [(b"cache-control", b"no-cache, no-transform"), (b"x-accel-buffering", b"no")]

_IDENTITY = frozenset((b"user-agent", b"x-stainless-lang", b"x-goog-api-client", b"x-request-id"))
_NEVER_UP = (
    HOP_BY_HOP
    | CREDENTIALS
    | frozenset(
        (
            b"host",
            b"content-length",
            b"content-encoding",
            b"accept-encoding",
            b"expect",
            b"forwarded",
            b"via",
            b"x-real-ip",
            b"x-client-ip",
            b"true-client-ip",
            b"cf-connecting-ip",
            b"openai-organization",
            b"openai-project",
            b"origin",
            b"referer",
            b"http2-settings",
            b"x-request-id",
            b"x-goog-user-project",
        )
    )
)
_NEVER_UP_PREFIXES = (b"x-forwarded-", b"sec-", b"proxy-", b"access-control-", b"cf-")

_DOWN = frozenset(
    (
        b"content-type",
        b"content-encoding",
        b"content-length",
        b"content-disposition",
        b"retry-after",
        b"x-should-retry",
        b"openai-processing-ms",
        b"openai-version",
        b"openai-model",
        b"x-models-etag",
        b"x-reasoning-included",
        b"server-timing",
    )
)
_DOWN_PREFIXES = (b"x-codex-",)
_LIMITS = (b"x-ratelimit-", b"anthropic-ratelimit-")


def upward(headers: Headers) -> Headers:
    """The client's fields that go up, in order: all but hop-by-hop, credentials, addressing and what `Connection`
    names."""
    named = _named_by_connection(headers)
    return [
        (name, value)
        for name, value in headers
        if name not in _NEVER_UP and name not in named and not name.startswith(_NEVER_UP_PREFIXES)
    ]


def downward(headers: Headers, expose_limits: bool) -> Headers:
    """The upstream's fields that reach the client, by a closed list; rate-limit fields only where the channel exposes
    them."""
    named = _named_by_connection(headers)
    prefixes = _DOWN_PREFIXES + _LIMITS if expose_limits else _DOWN_PREFIXES
    return [
        (name, value) for name, value in headers if (name in _DOWN or name.startswith(prefixes)) and name not in named
    ]


def content_length(headers: Headers) -> int | None:
    """The length that a head announces, in bytes; None where it does not."""
    value = first(headers, b"content-length")
    return int(value) if value is not None and value.isdigit() else None


def stream_head(headers: Headers, asked: Asked = Asked.EVENTS) -> Headers:
    """The fields of a stream's head: no length, no encoding, a type, and a word to every proxy not to buffer."""
    kept = [field for field in headers if field[0] not in (b"content-length", b"content-encoding")]
    if not any(name == b"content-type" for name, _ in kept):
        kept.insert(0, _ARRAY if asked is Asked.ARRAY else _EVENT_STREAM)
    return unbuffered(kept)


def unbuffered(headers: Headers) -> Headers:
    """The same with a word to every proxy: what comes here must not wait for more."""
    return headers + _UNBUFFERED


def upstream_request_id(headers: Headers) -> bytes:
    """The id that the upstream gave its reply; empty where it gave none."""
    for name, value in headers:
        if name in (b"x-request-id", b"request-id", b"x-goog-request-id"):
            return value
    return b""


def identity(headers: Headers) -> Headers:
    """The few of a client's fields that tell who it is: all that is kept of a request's head while its stream runs."""
    return [field for field in headers if field[0] in _IDENTITY]


def id_headers(id: str) -> Headers:
    """The gateway's id under both names that SDKs read it by."""
    own = id.encode("ascii")
    return [(b"x-request-id", own), (b"request-id", own)]


def upstream_id_header(headers: Headers) -> Headers:
    """The upstream's id of its reply, under a name that is not the gateway's; nothing where it gave none."""
    value = upstream_request_id(headers)
    return [(b"x-upstream-request-id", value)] if value and is_clean_value(value) else []


def _named_by_connection(headers: Headers) -> frozenset[bytes]:
    named: set[bytes] = set()
    for name, value in headers:
        if name == b"connection":
            named.update(token.strip().lower() for token in value.split(b","))
    return frozenset(named)
