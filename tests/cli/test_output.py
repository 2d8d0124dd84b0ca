"""Sections on a terminal and elsewhere."""

import io

import msgspec
import pytest
import typer
from rich.console import Console

from headrace.cli.output import Section, echo_json, fail, is_terminal, plain_lines, printable, show

FACTS = Section("end", (("end", "completed"), ("finish reasons", "stop")))
TABLE = Section("attempts", (("1", "west", ""), ("10", "水車", "note")), ("no", "channel", "notes"))


def shown(*sections: Section, terminal: bool) -> str:
    file = io.StringIO()
    show(sections, Console(file=file, force_terminal=terminal, width=60, color_system=None, highlight=False))
    return file.getvalue()


def test_facts_as_lines() -> None:
    assert list(plain_lines(FACTS)) == ["end", "  end             completed", "  finish reasons  stop"]


def test_a_table_as_lines_in_cells_of_the_terminal() -> None:
    assert list(plain_lines(TABLE)) == ["attempts", "  no  channel  notes", "  1   west", "  10  水車     note"]


def test_numbers_end_at_the_right() -> None:
    table = Section("usage", (("a", "1", "9"), ("b", "1,000", "")), ("key", "in", "out"), numbers=(1, 2))
    assert list(plain_lines(table))[1:] == ["  key     in  out", "  a        1    9", "  b    1,000"]
    lines = shown(table, terminal=True).splitlines()
    assert [line.index(one) + len(one) for line, one in zip(lines[2:], ("1", "1,000"), strict=True)] == [10, 10]


def test_sections_are_apart() -> None:
    assert shown(FACTS, FACTS, terminal=False) == "\n".join([*plain_lines(FACTS), "", *plain_lines(FACTS), ""])


def test_a_terminal_gets_a_drawing_with_the_same_words() -> None:
    text = shown(FACTS, TABLE, terminal=True)
    assert text != shown(FACTS, TABLE, terminal=False)
    assert text.split() == shown(FACTS, TABLE, terminal=False).split()


def test_a_narrow_terminal_folds_and_drops_nothing() -> None:
    long = "x" * 100
    text = shown(Section("end", (("detail", long),)), terminal=True)
    assert max(map(len, text.splitlines())) <= 60
    assert text.count("x") == 100


@pytest.mark.parametrize("terminal", [True, False])
def test_what_clients_say_cannot_steer_the_terminal(terminal: bool) -> None:
    text = shown(Section("t", (("model", "a\x1b[2Jb\r\n[red]c"),)), terminal=terminal)
    assert "a\\x1b[2Jb\\r\\n[red]c" in text


def test_printable_keeps_every_script() -> None:
    assert printable("水車 Всё 🌊 naïve") == "水車 Всё 🌊 naïve"
    assert printable("\x00\x9b\u202e") == "\\x00\\x9b\\u202e"


def test_fail_ends_with_its_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(typer.Exit) as ended:
        fail("no", 2)
    assert ended.value.exit_code == 2
    assert capsys.readouterr() == ("", "no\n")


def test_json_is_whole(capsys: pytest.CaptureFixture[str]) -> None:
    echo_json({"a": [1, "水"]})
    out = capsys.readouterr().out
    assert msgspec.json.decode(out) == {"a": [1, "水"]}
    assert "\n  " in out


def test_a_captured_stdout_is_no_terminal() -> None:
    assert not is_terminal()
