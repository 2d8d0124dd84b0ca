"""OpenAI's error objects, as its API spells them (openai-python 3.57.0 for which statuses it raises)."""

import msgspec

from headrace.simulator.scenario import ErrorSpec


class ErrorObject(msgspec.Struct):
    message: str
    type: str | None
    param: str | None
    code: str | int | None


class ErrorBody(msgspec.Struct):
    error: ErrorObject


class Refused(Exception):  # noqa: N818  (an outcome of routing, not an error of the program)
    """A request that gets an error reply before any scenario plays."""

    def __init__(self, status: int, body: bytes, allow: str = "") -> None:
        super().__init__(status)
        self.status = status
        self.body = body
        self.allow = allow


# status → (message, type, code)
_BY_STATUS: dict[int, tuple[str, str, str | None]] = {
    400: ("Invalid request.", "invalid_request_error", None),
    401: ("Incorrect API key provided.", "invalid_request_error", "invalid_api_key"),
    402: ("You have run out of credits.", "insufficient_quota", "credit_balance_exhausted"),
    403: ("You are not allowed to sample from this model", "invalid_request_error", None),
    404: ("The requested resource was not found.", "invalid_request_error", None),
    408: ("Request timed out.", "server_error", None),
    409: ("The request conflicts with another one.", "invalid_request_error", None),
    413: ("Request entity too large.", "invalid_request_error", None),
    422: ("The request could not be processed.", "invalid_request_error", None),
    429: ("Rate limit reached for requests. Please try again later.", "requests", "rate_limit_exceeded"),
    503: ("The server is currently overloaded. Please try again later.", "server_error", "server_is_overloaded"),
}
_SERVER = ("The server had an error while processing your request. Sorry about that!", "server_error", None)
_CLIENT = ("The request was refused.", "invalid_request_error", None)


_OPEN = ErrorSpec()


def error_json(status: int, spec: ErrorSpec = _OPEN) -> bytes:
    """`{"error": {message, type, param, code}}`; members that `spec` leaves open come from the status (HTTP)."""
    message, kind, code = _BY_STATUS.get(status, _CLIENT if 400 <= status < 500 else _SERVER)
    return msgspec.json.encode(
        ErrorBody(
            ErrorObject(
                message=spec.message if spec.message is not None else message,
                type=spec.type if spec.type is not None else kind,
                param=spec.param,
                code=spec.code if spec.code is not None else code,
            )
        )
    )


def unknown_model(model: str) -> bytes:
    spec = ErrorSpec(f"The model `{model}` does not exist or you do not have access to it.", code="model_not_found")
    return error_json(404, spec)


def bad_key(key: str | None) -> bytes:
    """OpenAI's two texts: a key that is absent, and one that is wrong (shown with its middle starred)."""
    if not key:
        text = (
            "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer "
            "auth (i.e. Authorization: Bearer YOUR_KEY)."
        )
        return msgspec.json.encode(ErrorBody(ErrorObject(text, "invalid_request_error", None, None)))
    shown = key[:4] + "*" * 8 + key[-4:] if len(key) > 12 else "*" * len(key)
    text = f"Incorrect API key provided: {shown}. You can find your API key at https://platform.openai.com/account/api-keys."
    return error_json(401, ErrorSpec(text))
