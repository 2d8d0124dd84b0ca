import msgspec
import pytest

from headrace.model.problem import Kind, Problem
from headrace.protocols.body import count_from, model_span, read_body


class Request(msgspec.Struct):
    model: str
    stream: bool | None = None


DECODER = msgspec.json.Decoder(Request)


def problem(body: bytes) -> Problem:
    read = read_body(body, DECODER)
    assert isinstance(read, Problem)
    assert read.kind is Kind.BAD_REQUEST
    return read


def test_a_body_is_read_by_either_reader() -> None:
    assert read_body(b'{"model":"m","stream":true,"x":[{}]}', DECODER) == Request("m", True)
    assert read_body(b'{"model":"m","input":"\\ud83d"}', DECODER) == Request("m")


@pytest.mark.parametrize(
    ("body", "param", "words"),
    [
        (b"{}", "model", "`model` is missing"),
        (b'{"x":"\\ud83d"}', "model", "`model` is missing"),
        (b'{"model":""}', "model", "is empty"),
        (b'{"model":"\\ud83d"}', "model", "half a surrogate pair"),
        (b'{"model":1}', "model", "`model` has a wrong type"),
        (b'{"model":null}', "model", "`model` has a wrong type"),
        (b'{"model":"m","stream":"yes"}', "stream", "`stream` has a wrong type"),
        (b'{"model":"\\ud83d","stream":1}', "stream", "`stream` has a wrong type"),
        (b'{"model":".."}', "model", "part `.` or `..`"),
        (b'{"model":"a/../b"}', "model", "part `.` or `..`"),
        (b'{"model":"m","Model":"n"}', "Model", "`Model` must be spelled `model`"),
        (b'{"MODEL":"n","model":"m"}', "MODEL", "`MODEL` must be"),
        (b'{"model":"m","mode\\u004c":"n"}', "modeL", "`modeL` must be"),
        (b'{"model":"m","Model":"n","x":"\\ud83d"}', "Model", "`Model` must be"),
        (b"[]", None, "wrong shape"),
        (b"", None, "not valid JSON"),
        (b'{"model":', None, "not valid JSON"),
        (b'{"model":"m","x":NaN}', None, "NaN is not JSON"),
        (b'{"model":"\xff"}', None, "not UTF-8"),
        (b'{"a":' * 100_000, None, "nested too deeply"),
    ],
)
def test_a_bad_body_names_the_member(body: bytes, param: str | None, words: str) -> None:
    found = problem(body)
    assert found.param == param
    assert words in found.message


@pytest.mark.parametrize(
    "body", [b'{"x":{"model":"no"}, "model" : "yes" }', b'{"a":"\\ud83d","model": "yes"}', b'{"model":1,"model":"yes"}']
)
def test_the_models_place_is_found(body: bytes) -> None:
    start, end = model_span(body)
    assert body[start:end] == b'"yes"'


def test_a_body_without_a_model_was_not_read() -> None:
    with pytest.raises(ValueError, match="has a model"):
        model_span(b'{"a":"\\ud83d"}')


@pytest.mark.parametrize(("value", "count"), [(5, 5), (0, None), (-1, None), (True, None), ("5", None), (None, None)])
def test_a_count_is_a_positive_whole_number(value: object, count: int | None) -> None:
    assert count_from(value) == count


@pytest.mark.parametrize(
    "body", [b'{"model":"m","x":{"Model":"n"}}', b'{"model":"m","x":"Model"}', b'{"m\\u006fdel":"m","x":"\\u0041"}']
)
def test_another_spelling_counts_as_a_member_of_the_request_only(body: bytes) -> None:
    assert read_body(body, DECODER) == Request("m")
