"""One HTTP request as it was received, and the reading of JSON bodies."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeVar

import msgspec

T = TypeVar("T")


class RequestError(ValueError):
    """A body that the API refuses: the message is for the client, `param` the member at fault."""

    def __init__(self, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.param = param


@dataclass(frozen=True, slots=True)
class Request:
    """Header names and values as received (latin-1); `path` is the target without its query."""

    method: str
    target: str
    version: str
    headers: tuple[tuple[str, str], ...]
    body: bytes = b""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    def header(self, name: str) -> str | None:
        """The first value of a header, by its lower-case name."""
        for found, value in self.headers:
            if found.lower() == name:
                return value
        return None

    @property
    def credential(self) -> str | None:
        """The secret that came, whatever its form: Bearer, x-api-key, x-goog-api-key."""
        scheme, _, token = (self.header("authorization") or "").partition(" ")
        if token and scheme.lower() == "bearer":
            return token.strip()
        return self.header("x-api-key") or self.header("x-goog-api-key")


class _Envelope(msgspec.Struct):
    model: str = ""
    stream: bool | None = None


def body_as(kind: type[T], body: bytes) -> T:
    """The body as a msgspec struct; unknown members are ignored. Raises RequestError."""
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        raise RequestError(f"Invalid type in request: {error}") from None
    except (msgspec.DecodeError, RecursionError):
        # Lone surrogates are real traffic, and msgspec refuses them.
        return _leniently(kind, body)


def model_and_stream(body: bytes) -> tuple[str, bool]:
    """`model` and `stream` of a body of any protocol; "" and False where they cannot be read."""
    try:
        envelope = body_as(_Envelope, body)
    except RequestError:
        return "", False
    return envelope.model, bool(envelope.stream)


def text_of(content: object) -> str:
    """The text of a message's content: a string, or the `text` members of its parts."""
    if isinstance(content, str):
        return content.encode("utf-8", "replace").decode()
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        return "".join(text_of(part) for part in parts if isinstance(part, str))
    return ""


def _leniently(kind: type[T], body: bytes) -> T:
    try:
        return msgspec.convert(json.loads(body), kind)
    except msgspec.ValidationError as error:
        raise RequestError(f"Invalid type in request: {error}") from None
    except (ValueError, RecursionError):
        raise RequestError(
            "We could not parse the JSON body of your request. (HINT: This likely means you aren't using your HTTP "
            "library correctly. The OpenAI API expects a JSON payload, but what was sent was not valid JSON.)"
        ) from None
