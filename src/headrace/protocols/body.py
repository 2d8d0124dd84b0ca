"""Reads a request's JSON body into the few members that a protocol needs, and finds the one that is spliced."""

from typing import TypeVar

import msgspec

from headrace.http.splice import Span, member_span, raw_span
from headrace.model.problem import Kind, Problem
from headrace.protocols.dialect import read_json, wrong_field

T = TypeVar("T")


class _Model(msgspec.Struct):
    model: msgspec.Raw


_decode_model = msgspec.json.Decoder(_Model).decode


def read_body(body: bytes, decoder: msgspec.json.Decoder[T]) -> T | Problem:
    """The body as the decoder's struct, which must have a member `model`; a Problem names the member at fault.

    By msgspec, and what it refuses once more by the standard library (lone surrogates).
    """
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        return _wrong(error)
    except (msgspec.DecodeError, RecursionError):
        value = read_json(body)
    if isinstance(value, Problem):
        return value
    try:
        return msgspec.convert(value, decoder.type)
    except msgspec.ValidationError as error:
        return _wrong(error)


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


def _wrong(error: msgspec.ValidationError) -> Problem:
    if "missing required field `model`" in str(error):
        return Problem(Kind.BAD_REQUEST, "`model` is missing. Name a model from GET /v1/models.", param="model")
    return wrong_field(error)
