import base64
import json
import math
import struct

import pytest

from headrace.simulator.embeddings import DIMENSIONS, embeddings_json, read_request
from headrace.simulator.request import RequestError
from headrace.simulator.scenario import UsageSpec


def reply(usage: UsageSpec | None = None, **body: object) -> dict[str, object]:
    asked, inputs = read_request(json.dumps({"model": "e", **body}).encode())
    made: dict[str, object] = json.loads(embeddings_json(asked, inputs, usage or UsageSpec()))
    return made


def test_equal_texts_have_equal_unit_vectors() -> None:
    made = reply(input=["a", "b", "a"])
    first, second, third = (item["embedding"] for item in made["data"])  # type: ignore[attr-defined]
    assert first == third != second
    assert len(first) == DIMENSIONS
    assert math.isclose(sum(number * number for number in first), 1.0)
    assert made["usage"] == {"prompt_tokens": 3, "total_tokens": 3}


def test_base64_holds_the_same_numbers() -> None:
    packed = reply(input="a", encoding_format="base64", dimensions=4)["data"][0]["embedding"]  # type: ignore[index]
    plain = reply(input="a", dimensions=4)["data"][0]["embedding"]  # type: ignore[index]
    assert struct.unpack("<4f", base64.b64decode(packed)) == pytest.approx(plain)


@pytest.mark.parametrize(("given", "count", "tokens"), [("abcde", 1, 2), ([1, 2, 3], 1, 3), ([[1], [2, 3]], 2, 3)])
def test_forms_of_input(given: object, count: int, tokens: int) -> None:
    made = reply(input=given, dimensions=1)
    assert [item["index"] for item in made["data"]] == list(range(count))  # type: ignore[attr-defined]
    assert made["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    assert reply(UsageSpec(prompt=9), input=given)["usage"] == {"prompt_tokens": 9, "total_tokens": 9}


@pytest.mark.parametrize(
    "body",
    [
        {"input": None},
        {"input": []},
        {"input": [1, "a"]},
        {"input": ["a"] * 2049},
        {"input": "a", "dimensions": 0},
        {"input": "a", "encoding_format": "hex"},
        {"input": "a", "model": ""},
    ],
)
def test_bad_requests(body: dict[str, object]) -> None:
    with pytest.raises(RequestError):
        reply(None, **body)
