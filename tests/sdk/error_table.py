"""What each kind of error is in each dialect and to each SDK: written by hand, so that tests hold the code to it.

Words of the gateway's own: docs/reference/errors.md. Classes: openai 3.57.0 `_client.py`, anthropic 2.14.0
`_client.py`, google-genai 3.6.1 `errors.py`, each `_make_status_error` or `raise_error`.
"""

from dataclasses import dataclass
from enum import Enum

import anthropic
import openai
from google.genai import errors

from headrace.model.problem import Kind, Problem


class Retry(Enum):
    """What an SDK is led to do: to repeat by the status, or not; or not although its status says so."""

    YES = 3
    NO = 1
    FORBIDDEN = -1

    @property
    def attempts(self) -> int:
        """Requests that OpenAI's and Anthropic's SDKs make, as they come."""
        return 3 if self is Retry.YES else 1


@dataclass(frozen=True)
class Row:
    """A kind with a status; `usual`: with the status that the kind has by itself."""

    kind: Kind
    status: int
    openai_type: str
    anthropic_type: str
    gemini_status: str
    responses_code: str
    retry: Retry
    usual: bool = True

    @property
    def id(self) -> str:
        return self.kind.value if self.usual else f"{self.kind.value} as {self.status}"

    @property
    def problem(self) -> Problem:
        """One of this row, with the members that its kind comes with, and a message that any encoding must keep."""
        message = f'{self.kind.value}: "Größe" is 北 — \\ {{}}\nTry it 🌊.'
        return Problem(self.kind, message, status=None if self.usual else self.status, **MEMBERS.get(self.kind, {}))  # type: ignore[arg-type]

    @property
    def openai_error(self) -> type[openai.APIStatusError]:
        if self.status >= 500:
            return openai.InternalServerError
        return OPENAI_CLASSES.get(self.status, openai.APIStatusError)

    @property
    def anthropic_error(self) -> type[anthropic.APIStatusError]:
        if self.status >= 500:
            return ANTHROPIC_CLASSES.get(self.status, anthropic.InternalServerError)
        return ANTHROPIC_CLASSES.get(self.status, anthropic.APIStatusError)

    @property
    def gemini_error(self) -> type[errors.APIError]:
        return errors.ServerError if self.status >= 500 else errors.ClientError


MEMBERS: dict[Kind, dict[str, object]] = {
    Kind.UNSUPPORTED_PARAMETER: {"param": "background"},
    Kind.PROTOCOL_NOT_OFFERED: {"param": "model", "accepted_formats": ("chat", "messages")},
    Kind.MODEL_NOT_FOUND: {"param": "model", "did_you_mean": "gpt-北"},
    Kind.MODEL_NOT_ALLOWED: {"param": "model"},
    Kind.NOT_FOUND: {"hint": "Did you mean /v1/models?"},
    Kind.METHOD_NOT_ALLOWED: {"allow": "GET, HEAD"},
}

OPENAI_CLASSES: dict[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError,
    401: openai.AuthenticationError,
    403: openai.PermissionDeniedError,
    404: openai.NotFoundError,
    409: openai.ConflictError,
    422: openai.UnprocessableEntityError,
    429: openai.RateLimitError,
}

ANTHROPIC_CLASSES: dict[int, type[anthropic.APIStatusError]] = {
    400: anthropic.BadRequestError,
    401: anthropic.AuthenticationError,
    402: anthropic.PaymentRequiredError,
    403: anthropic.PermissionDeniedError,
    404: anthropic.NotFoundError,
    408: anthropic.RequestTimeoutError,
    409: anthropic.ConflictError,
    413: anthropic.ContentTooLargeError,
    422: anthropic.UnprocessableEntityError,
    429: anthropic.RateLimitError,
    431: anthropic.RequestHeaderFieldsTooLargeError,
    501: anthropic.HTTPNotImplementedError,
    503: anthropic.ServiceUnavailableError,
    504: anthropic.GatewayTimeoutError,
    529: anthropic.OverloadedError,
}

_BAD, _AUTH, _DENIED, _LIMIT = "invalid_request_error", "authentication_error", "permission_error", "rate_limit_error"
_SERVER, _API, _BUSY, _LATE = "server_error", "api_error", "overloaded_error", "timeout_error"
_ARGUMENT, _AWAY, _FULL, _DEADLINE = "INVALID_ARGUMENT", "UNAVAILABLE", "RESOURCE_EXHAUSTED", "DEADLINE_EXCEEDED"
_PROMPT, _RATE = "invalid_prompt", "rate_limit_exceeded"
_YES, _NO, _FORBIDDEN = Retry.YES, Retry.NO, Retry.FORBIDDEN

KINDS = (
    Row(Kind.BAD_REQUEST, 400, _BAD, _BAD, _ARGUMENT, _PROMPT, _NO),
    Row(Kind.UNSUPPORTED_PARAMETER, 400, _BAD, _BAD, _ARGUMENT, _PROMPT, _NO),
    Row(Kind.PROTOCOL_NOT_OFFERED, 400, _BAD, _BAD, _ARGUMENT, _PROMPT, _NO),
    Row(Kind.REQUEST_TIMEOUT, 408, _BAD, _BAD, _DEADLINE, _PROMPT, _YES),
    Row(Kind.PAYLOAD_TOO_LARGE, 413, _BAD, "request_too_large", _ARGUMENT, _PROMPT, _NO),
    Row(Kind.UNSUPPORTED_ENCODING, 415, _BAD, _BAD, _ARGUMENT, _PROMPT, _NO),
    Row(Kind.MISSING_API_KEY, 401, _AUTH, _AUTH, "UNAUTHENTICATED", _PROMPT, _NO),
    Row(Kind.INVALID_API_KEY, 401, _AUTH, _AUTH, "UNAUTHENTICATED", _PROMPT, _NO),
    Row(Kind.EXPIRED_API_KEY, 401, _AUTH, _AUTH, "UNAUTHENTICATED", _PROMPT, _NO),
    Row(Kind.INSUFFICIENT_QUOTA, 402, "insufficient_quota", "billing_error", _FULL, _PROMPT, _NO),
    Row(Kind.MODEL_NOT_ALLOWED, 403, _DENIED, _DENIED, "PERMISSION_DENIED", _PROMPT, _NO),
    Row(Kind.KEY_DISABLED, 403, _DENIED, _DENIED, "PERMISSION_DENIED", _PROMPT, _NO),
    Row(Kind.MODEL_NOT_FOUND, 404, _BAD, "not_found_error", "NOT_FOUND", _PROMPT, _NO),
    Row(Kind.ID_NOT_FOUND, 404, _BAD, "not_found_error", "NOT_FOUND", _PROMPT, _NO),
    Row(Kind.NOT_FOUND, 404, _BAD, "not_found_error", "NOT_FOUND", _PROMPT, _NO),
    Row(Kind.METHOD_NOT_ALLOWED, 405, _BAD, _BAD, "UNIMPLEMENTED", _PROMPT, _NO),
    Row(Kind.RATE_LIMIT_EXCEEDED, 429, _LIMIT, _LIMIT, _FULL, _RATE, _YES),
    Row(Kind.CONCURRENCY_LIMIT_EXCEEDED, 429, _LIMIT, _LIMIT, _FULL, _RATE, _YES),
    Row(Kind.UPSTREAM_RATE_LIMITED, 429, _LIMIT, _LIMIT, _FULL, _RATE, _YES),
    Row(Kind.UPSTREAM_ERROR, 502, _SERVER, _API, _AWAY, _SERVER, _YES),
    Row(Kind.UPSTREAM_UNREACHABLE, 502, _SERVER, _API, _AWAY, _SERVER, _YES),
    Row(Kind.UPSTREAM_BAD_REPLY, 502, _SERVER, _API, _AWAY, _SERVER, _YES),
    Row(Kind.UPSTREAM_TIMEOUT, 504, _SERVER, _LATE, _DEADLINE, _SERVER, _YES),
    Row(Kind.UPSTREAM_INTERRUPTED, 502, _SERVER, _API, _AWAY, _SERVER, _YES),
    Row(Kind.UPSTREAM_STALLED, 504, _SERVER, _LATE, _DEADLINE, _SERVER, _YES),
    Row(Kind.NO_CHANNEL_AVAILABLE, 503, _SERVER, _BUSY, _AWAY, _SERVER, _YES),
    Row(Kind.CHANNELS_BUSY, 503, _SERVER, _BUSY, _AWAY, _SERVER, _YES),
    Row(Kind.OVERLOADED, 503, _SERVER, _BUSY, _AWAY, _SERVER, _YES),
    Row(Kind.DRAINING, 503, _SERVER, _BUSY, _AWAY, _SERVER, _YES),
    Row(Kind.STOPPED, 503, _SERVER, _API, _AWAY, _SERVER, _FORBIDDEN),
    Row(Kind.INTERNAL, 500, _SERVER, _API, "INTERNAL", _SERVER, _YES),
)

OTHER_STATUSES = (
    Row(Kind.BAD_REQUEST, 409, _BAD, "conflict_error", "ABORTED", _PROMPT, _FORBIDDEN, usual=False),
    Row(Kind.BAD_REQUEST, 417, _BAD, _BAD, _ARGUMENT, _PROMPT, _NO, usual=False),
    Row(Kind.BAD_REQUEST, 422, _BAD, _BAD, _ARGUMENT, _PROMPT, _NO, usual=False),
    Row(Kind.BAD_REQUEST, 431, _BAD, _BAD, _ARGUMENT, _PROMPT, _NO, usual=False),
    Row(Kind.BAD_REQUEST, 501, _SERVER, _API, "UNIMPLEMENTED", _SERVER, _FORBIDDEN, usual=False),
    Row(Kind.BAD_REQUEST, 505, _SERVER, _API, _AWAY, _SERVER, _FORBIDDEN, usual=False),
    Row(Kind.INSUFFICIENT_QUOTA, 429, "insufficient_quota", "billing_error", _FULL, _RATE, _FORBIDDEN, usual=False),
    Row(Kind.UPSTREAM_ERROR, 500, _SERVER, _API, "INTERNAL", _SERVER, _YES, usual=False),
    Row(Kind.UPSTREAM_ERROR, 503, _SERVER, _BUSY, _AWAY, _SERVER, _YES, usual=False),
    Row(Kind.UPSTREAM_ERROR, 529, _SERVER, _BUSY, _AWAY, _SERVER, _YES, usual=False),
)
"""Statuses that a kind can have besides: of a request that is no HTTP, of an upstream's first event, of settings."""

ROWS = KINDS + OTHER_STATUSES
