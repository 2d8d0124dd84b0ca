from enum import StrEnum
from pathlib import Path

import pytest

from headrace.simulator import fields as f
from headrace.simulator.fields import Fields, Place, ScriptError


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


AT = Place("here", Path())


@pytest.mark.parametrize(
    ("read", "value", "message"),
    [
        (f.boolean, "yes", "here: expected true or false, not 'yes'"),
        (f.string, 3, "here: expected a string, not 3"),
        (f.string, "\ud83c", "here: holds half of a surrogate pair"),
        (f.raw_bytes, "\ud83c", "here: holds half of a surrogate pair"),
        (f.seconds, -1, "here: expected seconds (a number from 0 to 86400), not -1"),
        (f.seconds, True, "here: expected seconds (a number from 0 to 86400), not True"),
        (f.seconds, float("nan"), "here: expected seconds (a number from 0 to 86400), not nan"),
        (f.whole(1, 5), 6, "here: expected a whole number from 1 to 5, not 6"),
        (f.whole(1, 5), 2.0, "here: expected a whole number from 1 to 5, not 2.0"),
        (f.choice(Colour), "green", "here: 'green' is not one of red, blue"),
        (f.list_of(f.string), ["a", 1], "here.1: expected a string, not 1"),
        (f.mapping_of(f.string), {"k": 1}, "here.k: expected a string, not 1"),
        (f.mapping_of(f.string), [], "here: expected a mapping, not []"),
        (f.raw_bytes, {"text": "a", "json": 1}, "here: expected a string or exactly one of text, base64, json, file"),
        (f.raw_bytes, {"base64": "*"}, "here.base64: not base64: "),
        (f.raw_bytes, {"file": "absent"}, "here.file: cannot be read: No such file or directory"),
        (f.raw_bytes, {"text": "x" * 1000, "repeat": 1_000_000}, "here: 1000000000 bytes; at most 268435456"),
        (f.raw_bytes, {"txt": "a"}, "here.txt: unknown field; did you mean text? allowed here: base64, file, json"),
        (f.raw_bytes, 5, "here: expected a mapping of fields, not 5"),
        (f.json_bytes, object, "here: not representable as JSON: "),
    ],
)
def test_a_bad_value_is_named_with_its_place_and_what_is_allowed(
    read: f.Reader[object], value: object, message: str
) -> None:
    with pytest.raises(ScriptError) as caught:
        read(value, AT)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("水\n", "水\n".encode()),
        ("\ud83c\udf0a", "🌊".encode()),
        ({"base64": "AAE="}, b"\0\1"),
        ({"json": {"a": [1, "é"]}}, '{"a":[1,"é"]}'.encode()),
        ({"text": "ab", "repeat": 3}, b"ababab"),
        (["a", {"text": "b"}, {"base64": "Yw=="}], b"abc"),
    ],
)
def test_bytes_come_from_strings_mappings_and_lists(value: object, expected: bytes) -> None:
    assert f.raw_bytes(value, AT) == expected


def test_a_body_is_json_unless_it_has_a_key_of_bytes() -> None:
    assert f.body_bytes({"error": {"code": 1}}, AT) == b'{"error":{"code":1}}'
    assert f.body_bytes({"text": "plain"}, AT) == b"plain"
    assert f.body_bytes("<html>", AT) == b"<html>"


def test_files_are_relative_to_the_folder_and_refused_without_one(tmp_path: Path) -> None:
    (tmp_path / "recorded").write_bytes(b"\xff\r")
    assert f.file_bytes("recorded", Place("x", tmp_path)) == b"\xff\r"
    with pytest.raises(ScriptError, match="only be named in a script"):
        f.file_bytes("recorded", Place("x", None))


def test_null_is_absent_and_a_left_over_field_an_error() -> None:
    fields = Fields({"a": None, "b": 1}, Place())
    assert fields.take("a", f.string, "default") == "default"
    with pytest.raises(ScriptError, match="b: unknown field; allowed here: a"):
        fields.end()
    assert fields.has("b")


def test_a_long_value_is_shortened_in_its_error() -> None:
    with pytest.raises(ScriptError) as caught:
        f.boolean("x" * 500, AT)
    assert len(str(caught.value)) < 120
