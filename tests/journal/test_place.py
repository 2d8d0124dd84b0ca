"""What counts as an incarnation, and as a segment."""

from pathlib import Path

from headrace.journal.place import Incarnation, incarnations, segment_numbers


def test_where_it_lies(tmp_path: Path) -> None:
    one = Incarnation.of(tmp_path, "abcd2345", 3, "01j")
    assert one.path == tmp_path / "journal" / "abcd2345" / "3" / "01j"
    assert one.segment(12) == one.path / "12.segment"


def test_all_of_a_directory_the_oldest_first(tmp_path: Path) -> None:
    assert incarnations(tmp_path) == [] == incarnations(tmp_path / "absent")
    made = [
        Incarnation.of(tmp_path, "b", 0, "01a"),
        Incarnation.of(tmp_path, "a", 1, "01b"),
        Incarnation.of(tmp_path, "a", 10, "01c"),
    ]
    for one in reversed(made):
        one.path.mkdir(parents=True)
    for odd in ("a/1/.01d", "a/x/01e", "a/²/01f", "format-1"):
        (tmp_path / "journal" / odd).mkdir(parents=True)
    (tmp_path / "journal" / "a" / "1" / "note.txt").write_text("none")
    (tmp_path / "journal" / "format-1" / "1.segment").write_text("none")
    assert incarnations(tmp_path) == made


def test_segments_by_number(tmp_path: Path) -> None:
    for name in ("10.segment", "9.segment", ".11.segment", "x.segment", "3.txt", "²3.segment"):
        (tmp_path / name).touch()
    assert segment_numbers(tmp_path) == [9, 10]
    assert segment_numbers(tmp_path / "absent") == []
