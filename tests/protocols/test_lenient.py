from typing import Any

import msgspec
import pytest

from headrace.protocols.lenient import read_leniently


class Inner(msgspec.Struct):
    n: int | None = None


class Outer(msgspec.Struct):
    text: str | None = None
    n: int | None = None
    inner: Inner | None = None
    many: list[Inner] | None = None
    bare: list[str] = []
    anything: Any = None
    other: float | None = None


@pytest.mark.parametrize("payload", [b"", b"{", b"\xff", b"NaN", b'{"a":NaN}', b"[" * 100_000])
def test_what_is_no_json(payload: bytes) -> None:
    assert read_leniently(payload, Outer) is None


@pytest.mark.parametrize("payload", [b"5", b"[]", b'"x"', b"null", b"{}", b'{"zzz":1}'])
def test_json_without_members_is_empty(payload: bytes) -> None:
    assert read_leniently(payload, Outer) == Outer()


def test_members_of_odd_types_are_left_out_one_by_one() -> None:
    payload = b"""{"text": 5, "n": 1.0E+2, "inner": {"n": true}, "many": [{"n": 1}, 5, {"n": "x"}], "bare": ["a", 1],
        "anything": {"a": [1]}, "other": 1.5}"""
    assert read_leniently(payload, Outer) == Outer(
        None, 100, Inner(), [Inner(1), Inner()], ["a"], {"a": [1]}
    )  # a kind that no reader here uses is not read either
    assert read_leniently(b'{"n": 1.5, "inner": [], "many": {}, "bare": null}', Outer) == Outer()


def test_half_a_surrogate_pair_becomes_a_question_mark() -> None:
    assert read_leniently(b'{"text": "a\\ud83d"}', Outer) == Outer("a?")
