"""Which header fields pass: the client's up to an upstream, an upstream's down to a client. Lists, so that nothing
slips by."""

from collections.abc import Callable
from itertools import compress
from operator import itemgetter

from headrace.model.headers import MOST_NAMES, Headers, is_clean_value
from headrace.model.request import Fields
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


class Verdicts(dict[bytes, bool]):
    """Whether a field of a name passes, decided once per name: 40 ns a field in place of 250."""

    __slots__ = ("_decide",)

    def __init__(self, decide: Callable[[bytes], bool]) -> None:
        self._decide = decide

    def __missing__(self, name: bytes) -> bool:
        verdict = self._decide(name)
        if len(self) < MOST_NAMES and len(name) <= 64:
            self[name] = verdict
        return verdict


goes_up = Verdicts(lambda name: name not in _NEVER_UP and not name.startswith(_NEVER_UP_PREFIXES))
_goes_down = Verdicts(lambda name: name in _DOWN or name.startswith(_DOWN_PREFIXES))
_goes_down_with_limits = Verdicts(lambda name: name in _DOWN or name.startswith(_DOWN_PREFIXES + _LIMITS))


def upward(head: Fields) -> Headers:
    """The client's fields that go up, in order: all but hop-by-hop, credentials, addressing and what `Connection`
    names."""
    return _passing(head, goes_up)


def downward(head: Fields, expose_limits: bool) -> Headers:
    """The upstream's fields that reach the client, by a closed list; rate-limit fields only where the channel exposes
    them."""
    return _passing(head, _goes_down_with_limits if expose_limits else _goes_down)


def _passing(head: Fields, passes: Verdicts) -> Headers:
    named = head.every(b"connection")
    if not named or named in _NAMES_NO_FIELD:
        return list(compress(head.headers, map(passes.__getitem__, map(_NAME, head.headers))))  # in C: a third
    hop_by_hop = {token.strip().lower() for value in named for token in value.split(b",")}
    return [field for field in head.headers if passes[field[0]] and field[0] not in hop_by_hop]


_NAME = itemgetter(0)
_NAMES_NO_FIELD = ([b"keep-alive"], [b"close"])
"""What nearly every `Connection` says: `keep-alive` never passes anyway, and no field is called `close`."""


def content_length(head: Fields) -> int | None:
    """The length that a head announces, in bytes; None where it does not."""
    value = head.header(b"content-length")
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


UPSTREAM_IDS = (b"x-request-id", b"request-id", b"x-goog-request-id")


def upstream_request_id(head: Fields) -> bytes:
    """The id that the upstream gave its reply; empty where it gave none."""
    for name in UPSTREAM_IDS:
        value = head.header(name)
        if value is not None:
            return value
    return b""


def upstream_ids(head: Fields) -> Headers:
    """The fields that `upstream_request_id` looks at."""
    return [field for field in head.headers if field[0] in UPSTREAM_IDS]


def identity(head: Fields) -> Headers:
    """The few of a client's fields that tell who it is: all that is kept of a request's head while its stream runs."""
    return [field for field in head.headers if field[0] in _IDENTITY]


def id_headers(id: str) -> Headers:
    """The gateway's id under both names that SDKs read it by."""
    own = id.encode("ascii")
    return [(b"x-request-id", own), (b"request-id", own)]


def upstream_id_header(head: Fields) -> Headers:
    """The upstream's id of its reply, under a name that is not the gateway's; nothing where it gave none."""
    value = upstream_request_id(head)
    return [(b"x-upstream-request-id", value)] if value and is_clean_value(value) else []
