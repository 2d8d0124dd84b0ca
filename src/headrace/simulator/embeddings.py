"""OpenAI embeddings: a unit vector that depends on the text alone, so that equal texts have equal vectors."""

import base64
import hashlib
import math
import struct
from dataclasses import dataclass
from typing import Any

import msgspec

from headrace.simulator.answer import Asked, tokens_from_bytes
from headrace.simulator.request import RequestError, body_as
from headrace.simulator.scenario import UsageSpec

PATH = "/embeddings"
DIMENSIONS = 1536
MAX_DIMENSIONS = 3072
MAX_INPUTS = 2048  # OpenAI's own limit


class _Request(msgspec.Struct):
    model: str = ""
    input: Any = None
    encoding_format: str = "float"
    dimensions: int | None = None


class _Embedding(msgspec.Struct, kw_only=True):
    object: str = "embedding"
    index: int
    embedding: list[float] | str


class _Usage(msgspec.Struct):
    prompt_tokens: int
    total_tokens: int


class _Reply(msgspec.Struct, kw_only=True):
    object: str = "list"
    data: list[_Embedding]
    model: str
    usage: _Usage


def read_request(body: bytes) -> tuple[Asked, "Inputs"]:
    """What a POST …/embeddings asks for; raises RequestError."""
    request = body_as(_Request, body)
    if not request.model:
        raise RequestError("you must provide a model parameter")
    dimensions = DIMENSIONS if request.dimensions is None else request.dimensions
    if not 1 <= dimensions <= MAX_DIMENSIONS:
        raise RequestError(f"Invalid value for 'dimensions': expected 1 to {MAX_DIMENSIONS}.", "dimensions")
    if request.encoding_format not in ("float", "base64"):
        raise RequestError("Invalid value for 'encoding_format': expected 'float' or 'base64'.", "encoding_format")
    inputs, tokens = _inputs(request.input)
    asked = Asked(model=request.model, prompt_tokens=tokens)
    return asked, Inputs(inputs, dimensions, request.encoding_format == "base64")


def embeddings_json(asked: Asked, inputs: "Inputs", usage: UsageSpec) -> bytes:
    """The list object, one embedding per input in order."""
    tokens = asked.prompt_tokens if usage.prompt is None else usage.prompt
    data = [_Embedding(index=index, embedding=inputs.vector(item)) for index, item in enumerate(inputs.items)]
    return msgspec.json.encode(_Reply(data=data, model=asked.model, usage=_Usage(tokens, tokens)))


@dataclass(frozen=True, slots=True)
class Inputs:
    """What to embed (as bytes), and the form of the vectors."""

    items: tuple[bytes, ...]
    dimensions: int
    base64: bool

    def vector(self, item: bytes) -> list[float] | str:
        packed = hashlib.shake_256(item).digest(self.dimensions * 2)
        numbers = struct.unpack(f"<{self.dimensions}h", packed)
        length = math.sqrt(sum(number * number for number in numbers)) or 1.0
        unit = [number / length for number in numbers]
        if self.base64:
            # The SDK's default form: little-endian float32.
            return base64.b64encode(struct.pack(f"<{self.dimensions}f", *unit)).decode()
        return unit


def _inputs(value: object) -> tuple[tuple[bytes, ...], int]:
    """The inputs as bytes, and their tokens: a string, strings, one list of token ids, or lists of them."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list) or not 1 <= len(value) <= MAX_INPUTS:
        raise RequestError("'$.input' is invalid. Please check the API reference.", "input")
    if all(isinstance(item, str) for item in value):
        texts = tuple(item.encode("utf-8", "replace") for item in value)
        return texts, sum(tokens_from_bytes(len(text)) for text in texts)
    if all(isinstance(item, int) for item in value):
        value = [value]
    if all(isinstance(item, list) and all(isinstance(number, int) for number in item) for item in value):
        return tuple(repr(item).encode() for item in value), sum(len(item) for item in value)
    raise RequestError("'$.input' is invalid. Please check the API reference.", "input")
