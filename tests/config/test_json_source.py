"""JSON documents become the same plain values as YAML."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config.json_source import read_document
from headrace.config.source import MAX_DEPTH, Block, Items


def test_every_scalar_stays_its_text() -> None:
    block = read_document('{"a": "x", "b": 1.10, "c": 123456789.123456789, "d": true, "e": false, "f": -7, "g": "1.0"}')
    assert dict(block) == {
        "a": "x", "b": "1.10", "c": "123456789.123456789", "d": "true", "e": "false", "f": "-7", "g": "1.0",
    }  # fmt: skip


def test_a_member_that_is_null_is_not_there() -> None:
    block = read_document('{"a": null, "b": {"c": null, "d": []}, "e": [null, "x"]}')
    assert dict(block) == {"b": {"d": []}, "e": [None, "x"]}
    assert isinstance(block["b"], Block)
    assert isinstance(block["e"], Items)


@pytest.mark.parametrize(
    ("number", "text"),
    [("1e-9", "0.000000001"), ("2.5E+3", "2500"), ("1e0", "1"), ("1e999999999", "1e999999999"), ("1e-50", "1e-50")],
)
def test_an_exponent_is_written_out(number: str, text: str) -> None:
    assert read_document(f'{{"a": {number}}}')["a"] == text


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "is not JSON"),
        ("{", "is not JSON"),
        ("[]", "must be an object"),
        ('"x"', "must be an object"),
        ('{"a": NaN}', "is no number of JSON"),
        ('{"a": 1, "a": 2}', "has a member twice"),
        ('{"a": ' * (MAX_DEPTH + 1) + "1" + "}" * (MAX_DEPTH + 1), "nested deeper"),
        ('{"a": ' + "[" * 100_000, "nested deeper"),
    ],
)
def test_what_is_no_document(content: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        read_document(content)


values = st.recursive(st.text(), lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=20)


@given(st.dictionaries(st.text(), values))
def test_texts_come_as_they_are(document: dict[str, object]) -> None:
    assert read_document(json.dumps(document)) == document
