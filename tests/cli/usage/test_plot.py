"""Bars in a terminal."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from headrace.cli.usage.plot import EIGHTHS, LEAST_BAR, MOST_NAME, Bar, lines, without_gaps

THREE = [Bar("a", 8, "8"), Bar("bcd", 4, "4"), Bar("e", 0, "0")]


def test_the_longest_takes_all_the_room() -> None:
    assert list(lines(THREE, 24, "utf-8")) == ["a    8  " + "█" * 16, "bcd  4  " + "█" * 8, "e    0"]


def test_parts_of_a_cell() -> None:
    drawn = list(lines([Bar("a", 64, ""), *(Bar("b", number, "") for number in range(1, 8))], 5 + 8, "utf-8"))
    assert [line.split()[-1] for line in drawn[1:]] == list(EIGHTHS[:-1])


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "no such"])
def test_an_encoding_without_blocks(encoding: str) -> None:
    assert list(lines(THREE, 24, encoding)) == ["a    8  " + "#" * 16, "bcd  4  " + "#" * 8, "e    0"]


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_what_is_there_at_all_is_seen(encoding: str) -> None:
    small = list(lines([Bar("a", 10**30, ""), Bar("b", 1, "")], 40, encoding))[1]
    assert len(small.split()) == 2


@given(
    st.lists(st.builds(Bar, st.text(max_size=50), st.integers(0, 10**25), st.from_regex("[0-9]{0,9}", fullmatch=True))),
    st.integers(MOST_NAME + 9 + 4 + LEAST_BAR, 200),
    st.sampled_from(["utf-8", "ascii"]),
)
def test_no_line_is_wider_than_the_terminal(bars: list[Bar], width: int, encoding: str) -> None:
    drawn = list(lines(bars, width, encoding))
    assert len(drawn) == len(bars)
    assert all(cell_len(line) <= width and line.isprintable() for line in drawn)


def test_wide_characters_count_for_two() -> None:
    first, second = lines([Bar("水車", 1, "1"), Bar("ab", 1, "1")], 20, "utf-8")
    assert cell_len(first) == cell_len(second) == 20


def test_a_narrow_terminal_still_has_bars() -> None:
    assert list(lines([Bar("a", 1, "1")], 1, "utf-8")) == ["a  1  " + "█" * LEAST_BAR]


def test_nothing_to_draw() -> None:
    assert list(lines([], 80, "utf-8")) == []
    assert list(lines([Bar("a", 0, "0")], 80, "utf-8")) == ["a  0"]


def test_days_without_use_have_their_place() -> None:
    bars = without_gaps([Bar("2027-02-27", 1, "1"), Bar("2027-03-02", 2, "2")], "0")
    assert [(one.name, one.value, one.shown) for one in bars] == [
        ("2027-02-27", 1, "1"), ("2027-02-28", 0, "0"), ("2027-03-01", 0, "0"), ("2027-03-02", 2, "2"),
    ]  # fmt: skip
