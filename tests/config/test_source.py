"""YAML as text values that know their lines."""

import json

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.config import source
from headrace.config.errors import Fault
from headrace.config.source import Block, Items, Value, fault, has, place, read, value_at


def values(text: str) -> Block:
    root, faults = read(text)
    assert not faults
    return root


def faults_of(text: str) -> tuple[Fault, ...]:
    return read(text)[1]


def test_scalars_stay_text() -> None:
    root = values(
        "a: 1.10\nb: no\nc: 2027-01-01\nd: 0o17\ne: '~'\nf: ~\ng:\nh: null\ni: ''\nj: 12:30\nk: !!str ~\nl: ! ~\n"
    )
    assert root == {
        "a": "1.10", "b": "no", "c": "2027-01-01", "d": "0o17", "e": "~", "f": None, "g": None, "h": None, "i": "",
        "j": "12:30", "k": "~", "l": "~",
    }  # fmt: skip


def test_every_place_has_its_line() -> None:
    root = values("# one\na:\n  - x\n  - b: 1\n    c:\n      d: 2\ne: {f: 1,\n  g: 2}\n")
    assert place(root, ()) == (2, "")
    assert place(root, ("a",)) == (2, "a")
    assert place(root, ("a", 0)) == (3, "a[0]")
    assert place(root, ("a", 1, "c", "d")) == (6, "a[1].c.d")
    assert place(root, ("e", "g")) == (8, "e.g")


def test_what_is_not_there_takes_its_parents_line() -> None:
    root = values("a:\n  b: x\n  c: []\n")
    assert place(root, ("a", "gone")) == (1, "a.gone")
    assert place(root, ("gone", 3, "x")) == (1, "gone[3].x")
    assert place(root, ("a", "b", 0)) == (2, "a.b")
    assert not has(root, ("a", "gone"))
    assert not has(root, ("a", "b", 0))
    assert not has(root, ("a", "c", 0))
    assert not has(root, ("a", 0))
    assert has(root, ("a", "c"))
    assert value_at(root, ("a", "b")) == "x"
    assert value_at(root, ("a", "b", 0)) is None
    assert value_at(root, ("a", "gone", "x")) is None
    assert fault(root, ("a", "b"), "m") == Fault(2, "a.b", "m")


def test_a_name_that_may_be_a_secret_is_not_shown() -> None:
    root = values("'secret sk-1': x\n")
    assert place(root, ("secret sk-1",)) == (1, "?")


def test_keys_do_not_repeat() -> None:
    root, faults = read("a: 1\nb: {c: 1, c: 2}\na: 3\n'x y': 1\n'x y': 2\n")
    assert root["a"] == "1"
    assert faults == (
        Fault(2, "c", "stands twice; the first is in line 2"),
        Fault(3, "a", "stands twice; the first is in line 1"),
        Fault(5, "?", "stands twice; the first is in line 4"),
    )


def test_anchors_and_merges() -> None:
    root = values("a: &a\n  x: 1\n  y: 2\nb: &b {y: 3, z: 4}\nc: *a\nd:\n  <<: *a\n  y: 5\ne: {<<: [*b, *a]}\n")
    assert root["c"] == {"x": "1", "y": "2"}
    assert root["d"] == {"x": "1", "y": "5"}
    assert root["e"] == {"x": "1", "y": "3", "z": "4"}
    assert place(root, ("d", "x")) == (2, "d.x")
    assert place(root, ("d", "y")) == (8, "d.y")


@pytest.mark.parametrize("text", ["a: {<<: x}", "a: {<<: [x]}", "a: &a {}\nb: {<<: [*a, x]}", "a: {<<: []}"])
def test_what_cannot_be_merged(text: str) -> None:
    (found,) = faults_of(text)
    assert found.message == "takes a mapping, or a list of them"


def test_an_anchor_cannot_stand_in_itself() -> None:
    (found,) = faults_of("a: 1\nb: &b\n  c: *b\n")
    assert found.line == 3
    assert "no anchor" in found.message


def test_depth_is_bounded() -> None:
    (found,) = faults_of("a:\n  " + "[" * 33 + "]" * 33)
    assert found == Fault(2, "", "nested deeper than 32 levels")
    assert not faults_of("a:\n  " + "[" * 31 + "]" * 31)
    (found,) = faults_of("a:\n  " + "[" * 100_000)
    assert found.line == 2


def test_aliases_cannot_multiply_without_bound() -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"
    for level in range(1, 12):
        text += f"a{level}: &a{level} [{', '.join([f'*a{level - 1}'] * 10)}]\n"
    (found,) = faults_of(text)
    assert "more than 500000 values" in found.message


@pytest.mark.parametrize(
    ("text", "line", "part"),
    [
        ("a: 1\nb: [1\nc: 2\n", 3, "not valid YAML"),
        ("a: 1\n%TAG x\n", 2, "not valid YAML"),
        ("a: 1\nb: \x01\n", 2, "not valid YAML"),
        ("a: é\nb: é\x01\n", 2, "not valid YAML"),
        ("a: 1\n---\nb: 2\n", 2, "a second document"),
        ("- a\n", 1, "must be a mapping"),
        ("\ntext\n", 2, "must be a mapping"),
        ("a: !!python/object:os.system {}\n", 1, "tags are not supported"),
        ("a: !!map {}\n", 1, "tags are not supported"),
        ("a: !secret x\n", 1, "tags are not supported"),
        ("{a: 1}: b\n", 1, "a key must be text"),
    ],
)
@pytest.mark.parametrize("loader", ["CSafeLoader", "SafeLoader"])
def test_what_cannot_be_read(monkeypatch: pytest.MonkeyPatch, loader: str, text: str, line: int, part: str) -> None:
    monkeypatch.setattr(source, "_LOADER", getattr(yaml, loader))
    root, faults = read(text)
    assert root == {}
    assert [(found.line, part in found.message) for found in faults] == [(line, True)]


@pytest.mark.parametrize("text", ["", "\n", "# x\n", "---\n", "null\n", "{}\n"])
def test_nothing_is_an_empty_file(text: str) -> None:
    assert values(text) == {}


SCALARS = st.none() | st.text(st.characters(codec="utf-8", categories=["L", "N", "P", "S", "Zs"]), max_size=12)
TREES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text("abcde", min_size=1, max_size=3), inner, max_size=4)
    ),
    max_leaves=20,
)


@settings(max_examples=50)
@given(st.dictionaries(st.text("abcde", min_size=1, max_size=3), TREES, max_size=5))
def test_json_reads_as_itself(tree: dict[str, object]) -> None:
    assert values(json.dumps(tree, ensure_ascii=False)) == tree


@settings(max_examples=50)
@given(st.dictionaries(st.text("abcde", min_size=1, max_size=3), TREES, max_size=5))
def test_both_parsers_give_the_same(tree: dict[str, object]) -> None:
    text = yaml.safe_dump(tree, allow_unicode=True)
    here = values(text)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "_LOADER", yaml.SafeLoader)
        there = values(text)
    assert here == there
    assert lines(here) == lines(there)


def lines(value: Value) -> object:
    """All lines of a tree."""
    if isinstance(value, Block):
        return [value.line, value.lines, [lines(inner) for inner in value.values()]]
    return [value.line, value.lines, [lines(inner) for inner in value]] if isinstance(value, Items) else None
