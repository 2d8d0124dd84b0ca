"""Reads a request's JSON body into the few members that a protocol needs, and finds the one that is spliced."""

from typing import Protocol, TypeVar

import msgspec

from headrace.http.model_path import has_dot_segment
from headrace.http.splice import Span, member_span, raw_span
from headrace.model.problem import Kind, Problem
from headrace.protocols.dialect import read_json, wrong_field


class Named(Protocol):
    """A request that names its model."""

    model: str


class _Model(msgspec.Struct):
    model: msgspec.Raw


T = TypeVar("T", bound=Named)

_decode_model = msgspec.json.Decoder(_Model).decode
_decode_members = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def read_body(body: bytes, decoder: msgspec.json.Decoder[T]) -> T | Problem:
    """The body as the decoder's struct, with a model that can be named; a Problem names the member at fault.

    By msgspec, and what it refuses once more by the standard library (lone surrogates).
    """
    request = _read(body, decoder)
    if isinstance(request, Problem):
        return request
    return wrong_model(request.model) or other_spelling(body) or request


def wrong_model(name: str) -> Problem | None:
    """What keeps `name` from being a model's name, whichever models there are."""
    if name and _is_unicode(name) and not has_dot_segment(name):
        return None
    what = "is empty"
    if name:
        what = "has a part `.` or `..`" if _is_unicode(name) else "holds half a surrogate pair"
    return Problem(Kind.BAD_REQUEST, f"`model` {what}. Name a model from GET /v1/models.", param="model")


def other_spelling(body: bytes) -> Problem | None:
    """A member of a JSON object that is `model` but for its case: an upstream that reads names without regard to it
    would serve another model than the one that was checked."""
    try:
        members = set(_decode_members(body))
    except (msgspec.MsgspecError, RecursionError):
        value = read_json(body)
        members = set(value) if isinstance(value, dict) else set()
    for name in sorted(members):
        if name != "model" and name.lower() == "model":
            return Problem(Kind.BAD_REQUEST, f"`{name}` must be spelled `model`. Name the model once.", param=name)
    return None


def _read(body: bytes, decoder: msgspec.json.Decoder[T]) -> T | Problem:
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        return _wrong(error)
    except (msgspec.DecodeError, RecursionError):
        value = read_json(body)
    if isinstance(value, Problem):
        return value
    try:
        request: T = msgspec.convert(value, decoder.type)
    except msgspec.ValidationError as error:
        return _wrong(error)
    return request


def model_span(body: bytes) -> Span:
    """Where the value of `model` stands in a body that was read."""
    try:
        return raw_span(_decode_model(body).model, body)
    except (msgspec.MsgspecError, RecursionError):
        span = member_span(body, "model")
    if span is None:
        raise ValueError("a body that was read has a model")
    return span


def count_from(value: object) -> int | None:
    """A member that is a number of things; None for anything else."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _is_unicode(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _wrong(error: msgspec.ValidationError) -> Problem:
    if "missing required field `model`" in str(error):
        return Problem(Kind.BAD_REQUEST, "`model` is missing. Name a model from GET /v1/models.", param="model")
    return wrong_field(error)
