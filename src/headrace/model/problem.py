"""Failures as values: the closed list of error kinds, each with its status and meaning, and one problem of such a
kind."""

from dataclasses import dataclass
from enum import Enum


class Source(Enum):
    """Whose fault a problem is."""

    CLIENT = "client"
    GATEWAY = "gateway"
    UPSTREAM = "upstream"


class Kind(Enum):
    """Every kind of error that the gateway can produce. The value is also the OpenAI dialect's `code`."""

    BAD_REQUEST = "bad_request"
    UNSUPPORTED_PARAMETER = "unsupported_parameter"
    PROTOCOL_NOT_OFFERED = "protocol_not_offered"
    REQUEST_TIMEOUT = "request_timeout"
    PAYLOAD_TOO_LARGE = "payload_too_large"
    UNSUPPORTED_ENCODING = "unsupported_encoding"
    MISSING_API_KEY = "missing_api_key"
    INVALID_API_KEY = "invalid_api_key"
    EXPIRED_API_KEY = "expired_api_key"
    INSUFFICIENT_QUOTA = "insufficient_quota"
    MODEL_NOT_ALLOWED = "model_not_allowed"
    KEY_DISABLED = "key_disabled"
    MODEL_NOT_FOUND = "model_not_found"
    ID_NOT_FOUND = "id_not_found"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    RATE_LIMIT_EXCEEDED = "rate_limit_exceeded"
    CONCURRENCY_LIMIT_EXCEEDED = "concurrency_limit_exceeded"
    UPSTREAM_RATE_LIMITED = "upstream_rate_limited"
    UPSTREAM_ERROR = "upstream_error"
    UPSTREAM_UNREACHABLE = "upstream_unreachable"
    UPSTREAM_BAD_REPLY = "upstream_bad_reply"
    UPSTREAM_TIMEOUT = "upstream_timeout"
    UPSTREAM_INTERRUPTED = "upstream_interrupted"
    UPSTREAM_STALLED = "upstream_stalled"
    NO_CHANNEL_AVAILABLE = "no_channel_available"
    CHANNELS_BUSY = "channels_busy"
    OVERLOADED = "overloaded"
    DRAINING = "draining"
    STOPPED = "stopped"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class KindFacts:
    """What is fixed for a kind: its usual HTTP status, whose fault it is, whether the same request may be sent
    again."""

    status: int
    source: Source
    retryable: bool
    cause: str
    remedy: str


_C, _G, _U = Source.CLIENT, Source.GATEWAY, Source.UPSTREAM

FACTS: dict[Kind, KindFacts] = {
    Kind.BAD_REQUEST: KindFacts(
        400,
        _C,
        False,
        "The request is not valid HTTP (then also 431, 501 or 505), not JSON, or a field has a wrong type.",
        "Correct the field that the message names.",
    ),
    Kind.UNSUPPORTED_PARAMETER: KindFacts(
        400, _C, False, "A parameter that this endpoint does not take.", "Leave the parameter out."
    ),
    Kind.PROTOCOL_NOT_OFFERED: KindFacts(
        400,
        _C,
        False,
        "The model is not offered through this wire API.",
        "Use one of the formats in `accepted_request_formats`.",
    ),
    Kind.REQUEST_TIMEOUT: KindFacts(
        408, _C, True, "The request's head or body came too slowly.", "Send it again on a faster connection."
    ),
    Kind.PAYLOAD_TOO_LARGE: KindFacts(
        413,
        _C,
        False,
        "The body is larger than `server.max_body`.",
        "Send less, or ask the operator for a larger limit.",
    ),
    Kind.UNSUPPORTED_ENCODING: KindFacts(
        415,
        _C,
        False,
        "The body has a Content-Encoding that the gateway cannot decode.",
        "Send it plain, or with an encoding that the message names.",
    ),
    Kind.MISSING_API_KEY: KindFacts(
        401, _C, False, "No key came with the request.", "Send the key as `Authorization: Bearer KEY`."
    ),
    Kind.INVALID_API_KEY: KindFacts(401, _C, False, "The key is not known here.", "Check the key and the base URL."),
    Kind.EXPIRED_API_KEY: KindFacts(401, _C, False, "The key's time is over.", "Ask the operator for a new key."),
    Kind.INSUFFICIENT_QUOTA: KindFacts(
        402, _C, False, "The budget of the key or of its owner is spent.", "Wait for the reset, or ask for more."
    ),
    Kind.MODEL_NOT_ALLOWED: KindFacts(
        403, _C, False, "The key may not use this model.", "Choose one from GET /v1/models."
    ),
    Kind.KEY_DISABLED: KindFacts(
        403, _C, False, "The key is switched off, or may not be used from the client's address.", "Ask the operator."
    ),
    Kind.MODEL_NOT_FOUND: KindFacts(
        404, _C, False, "No model of this name is configured.", "Choose one from GET /v1/models."
    ),
    Kind.ID_NOT_FOUND: KindFacts(
        404, _C, False, "The object is unknown, or belongs to another owner.", "Start again without the id."
    ),
    Kind.NOT_FOUND: KindFacts(404, _C, False, "No such path.", "Check the base URL; the message names the likely one."),
    Kind.METHOD_NOT_ALLOWED: KindFacts(
        405, _C, False, "The path exists, the method does not.", "Use a method that the `Allow` header names."
    ),
    Kind.RATE_LIMIT_EXCEEDED: KindFacts(
        429, _C, True, "The key or owner sent too many requests or tokens in a minute.", "Wait for `Retry-After`."
    ),
    Kind.CONCURRENCY_LIMIT_EXCEEDED: KindFacts(
        429, _C, True, "Too many exchanges of the key or owner run at once.", "Wait for one to end."
    ),
    Kind.UPSTREAM_RATE_LIMITED: KindFacts(
        429, _U, True, "Every channel of the model is rate limited.", "Wait for `Retry-After`."
    ),
    Kind.UPSTREAM_ERROR: KindFacts(502, _U, True, "The upstream answered with an error of its own.", "Try again."),
    Kind.UPSTREAM_UNREACHABLE: KindFacts(
        502, _U, True, "No connection to the upstream, or it was lost before an answer.", "Try again."
    ),
    Kind.UPSTREAM_BAD_REPLY: KindFacts(
        502,
        _U,
        True,
        "The upstream answered 200 with something that was not asked for.",
        "Try again; tell the operator.",
    ),
    Kind.UPSTREAM_TIMEOUT: KindFacts(504, _U, True, "The upstream did not begin to answer in time.", "Try again."),
    Kind.UPSTREAM_INTERRUPTED: KindFacts(
        502, _U, True, "The upstream's stream broke off before its end.", "Send the whole request again."
    ),
    Kind.UPSTREAM_STALLED: KindFacts(
        504, _U, True, "The upstream's stream made no progress for the stall limit.", "Send the whole request again."
    ),
    Kind.NO_CHANNEL_AVAILABLE: KindFacts(
        503, _G, True, "No channel of the model can take the request now.", "Try later."
    ),
    Kind.CHANNELS_BUSY: KindFacts(503, _G, True, "The gateway's own share of every channel is in use.", "Try later."),
    Kind.OVERLOADED: KindFacts(503, _G, True, "The gateway holds as much as it may.", "Try later."),
    Kind.DRAINING: KindFacts(
        503, _G, True, "The gateway is shutting down.", "Try again: another instance will answer."
    ),
    Kind.STOPPED: KindFacts(
        503, _G, False, "The gateway ended the exchange: a deadline, an operator or a budget.", "See the message."
    ),
    Kind.INTERNAL: KindFacts(500, _G, True, "A fault of the gateway.", "Try again; tell the operator the request id."),
}


LOST_OR_LATE = frozenset((Kind.UPSTREAM_TIMEOUT, Kind.UPSTREAM_STALLED, Kind.UPSTREAM_INTERRUPTED))
"""Kinds that say that an answer did not come, and nothing of what the answer was."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One failure.

    `message` is for the client and says what to do next; `detail` is for the operator and never leaves the process's
    records. `status` overrides the kind's own (431, 501, 505 and 529 have no kind of their own). `retry_after_s` is the
    earliest sensible retry in seconds; 60 is the most that is ever sent.
    """

    kind: Kind
    message: str
    source: Source | None = None
    status: int | None = None
    retry_after_s: float | None = None
    should_retry: bool | None = None
    param: str | None = None
    hint: str | None = None
    allow: str | None = None
    accepted_formats: tuple[str, ...] = ()
    did_you_mean: str | None = None
    detail: str = ""

    @property
    def facts(self) -> KindFacts:
        """The fixed facts of this problem's kind."""
        return FACTS[self.kind]

    @property
    def http_status(self) -> int:
        """The status that a client sees when nothing has been sent yet."""
        return self.status if self.status is not None else FACTS[self.kind].status

    @property
    def fault(self) -> Source:
        """Whose fault it is."""
        return self.source if self.source is not None else FACTS[self.kind].source
