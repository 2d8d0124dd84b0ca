"""Durations, sizes, numbers and choices as text."""

from enum import Enum
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.config import forms
from headrace.config.forms import Reading

READING = Reading(Path("/etc/headrace"), {})


class Fruit(Enum):
    APPLE = "apple"
    PEAR = "pear"


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("200ms", 0.2), ("10s", 10.0), ("2m", 120.0), ("1h", 3600.0), ("1.5s", 1.5), ("0s", 0.0), ("0.5h", 1800.0)],
)
def test_durations_are_seconds(text: str, seconds: float) -> None:
    assert forms.read_duration(text) == seconds


@pytest.mark.parametrize(
    "text", ["", "s", "10", "10 s", "-1s", "+1s", "1e3s", "1d", "10S", "1h30m", "١s", "1.s", "never"]
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"duration|needs a unit"):
        forms.read_duration(text)


@given(st.integers(min_value=0, max_value=int(forms.MAX_DURATION_S) * 1000))
def test_every_shown_duration_reads_back(ms: int) -> None:
    assert round(forms.read_duration(forms.show_duration(ms / 1000)) * 1000) == ms


@given(st.integers(min_value=1, max_value=2**45))
def test_every_shown_size_reads_back(size: int) -> None:
    assert forms.read_size(forms.show_size(size)) == size


def test_never_is_shown() -> None:
    assert forms.show_duration(None) == "never"
    assert forms.DURATION_OR_NEVER.read("never", READING) is None
    assert forms.DURATION_OR_NEVER.read("3s", READING) == 3.0


@pytest.mark.parametrize(
    ("text", "size"), [("1B", 1), ("64KiB", 65536), ("1MiB", 2**20), ("2GiB", 2**31), ("007KiB", 7 * 1024)]
)
def test_sizes_are_bytes(text: str, size: int) -> None:
    assert forms.read_size(text) == size


@pytest.mark.parametrize("text", ["", "KiB", "64", "64MB", "64m", "64 MiB", "1.5GiB", "-1B", "0B", "64mib"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match=r"size|needs a unit|at least"):
        forms.read_size(text)


def test_whole_numbers_have_a_range() -> None:
    form = forms.whole(-2, 10)
    assert [form.read(text, READING) for text in ("-2", "0", "+3", "10")] == [-2, 0, 3, 10]
    for text in ("-3", "11", "1.0", "", "1_0", "0x1", "ten", " 1"):
        with pytest.raises(ValueError, match="from -2 to 10"):
            form.read(text, READING)


def test_choices_name_what_is_allowed() -> None:
    form = forms.choice(Fruit, "fruit")
    assert form.read("pear", READING) is Fruit.PEAR
    assert form.show(Fruit.PEAR) == "pear"
    with pytest.raises(ValueError, match=r"unknown fruit \(did you mean apple\?\); allowed: apple, pear"):
        form.read("aple", READING)
    with pytest.raises(ValueError, match="unknown fruit; allowed: apple, pear"):
        form.read("xyz", READING)


def test_paths_begin_at_the_files_folder() -> None:
    assert READING.path("a/b") == Path("/etc/headrace/a/b")
    assert READING.path("/a/b") == Path("/a/b")


def test_the_environment_is_in_no_repr() -> None:
    assert "hidden" not in repr(Reading(Path(), {"A": "hidden"}))
