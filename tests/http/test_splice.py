"""One member is replaced or added, and no other byte moves."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.http.splice import insertion_point, member_span, raw_span, replace, replace_all

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from('abm"\\{}[],:é'), inner, max_size=4),
    max_leaves=12,
)


class Wanted(msgspec.Struct):
    """A member as a view into the body."""

    model: msgspec.Raw


@given(
    st.dictionaries(st.sampled_from(["a", "b", "model", 'mo"del', "mo\\del", "é"]), JSON, min_size=1),
    st.sampled_from([None, 2]),
    st.booleans(),
)
def test_the_span_of_a_member(value: dict[str, object], indent: int | None, ascii_only: bool) -> None:
    body = json.dumps(value, indent=indent, ensure_ascii=ascii_only).encode("utf-8", "surrogatepass")
    for name, member in value.items():
        span = member_span(body, name)
        assert span is not None
        assert json.loads(body[span[0] : span[1]].decode("utf-8", "surrogatepass")) == member
        assert body[span[0] : span[1]] == body[span[0] : span[1]].strip()
    assert member_span(body, "absent") is None


@pytest.mark.parametrize(
    ("body", "value"),
    [
        (b'{"model":"a","model":"b"}', b'"b"'),
        (b'{"x":{"model":"inner"},"model":1}', b"1"),
        (b'{"model":1,"x":{"model":"inner"}}', b"1"),
        (b'{"x":["model",{"model":2}],"model" \n: \t[1, 2] }', b"[1, 2]"),
        (b'{"m\\u006fdel":"escaped"}', b'"escaped"'),
        (b'{"a":"\\"model\\":1","model":{"b":[]}}', b'{"b":[]}'),
        (b'{"\\ud800":1,"model":"\\ud83d"}', b'"\\ud83d"'),
        (b'{"a":"}{][,:","model":-1.5e+3}', b"-1.5e+3"),
        (b'{"model":""}', b'""'),
    ],
)
def test_odd_bodies(body: bytes, value: bytes) -> None:
    """Of duplicates the last counts; a member of the same name further down does not."""
    span = member_span(body, "model")
    assert span is not None and body[span[0] : span[1]] == value


@pytest.mark.parametrize("body", [b'{"x":{"model":1}}', b"{}", b'{"modell":1}', b'{"x":"model"}', b'["model",1]'])
def test_no_such_member(body: bytes) -> None:
    assert member_span(body, "model") is None


def test_a_member_of_a_member() -> None:
    body = b'{"include_usage":1,"stream_options":{"a":{"include_usage":2},"include_usage": 3 },"z":{"include_usage":4}}'
    outer = member_span(body, "stream_options")
    assert outer is not None
    inner = member_span(body, "include_usage", outer)
    assert inner is not None and body[inner[0] : inner[1]] == b"3"
    assert insertion_point(body, outer) == (outer[0] + 1, outer[0] + 1)


def test_the_place_of_a_raw_member() -> None:
    body = b'{"a":1,  "model" : {"x": "y"} , "b":2}'
    raw = msgspec.json.decode(body, type=Wanted).model
    start, end = raw_span(raw, body)
    assert body[start:end] == b'{"x": "y"}'
    with pytest.raises(ValueError, match="not a view"):
        raw_span(raw, bytes(bytearray(body[:5])))


def test_replaced() -> None:
    body = b"0123456789"
    assert b"".join(replace(body, (2, 5), b"x")) == b"01x56789"
    assert replace_all(body, []) == (body,)
    parts = replace_all(body, [((8, 10), b"z"), ((0, 0), b"a"), ((3, 4), b"")])
    assert b"".join(parts) == b"a0124567z"
    assert all(isinstance(part, memoryview) or part in (b"z", b"a", b"") for part in parts), "the large parts are views"


def test_insertion_point() -> None:
    assert insertion_point(b' \n{"a":1}') == (3, 3)
