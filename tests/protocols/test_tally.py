import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.estimate import NO_TEXT, TextCount
from headrace.protocols.tally import Tally, sample

SOME = st.text(st.sampled_from("ab1 .,-\né北。！😀"), max_size=80)


def counted(*pieces: str) -> TextCount:
    tally = Tally()
    for piece in pieces:
        tally.add(piece.encode())
    return tally.count(0)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("", NO_TEXT),
        ("two words", TextCount(ascii_bytes=9, words=2)),
        ("if (x[12] != y3):\n", TextCount(ascii_bytes=18, words=3, marks=5, digits=3)),
        ("a1b", TextCount(ascii_bytes=3, words=2, digits=1)),
        ("... --", TextCount(ascii_bytes=6, marks=2)),
        ("\x7f\x00\t", TextCount(ascii_bytes=3)),
        ("naïve", TextCount(ascii_bytes=4, other_bytes=2, other_chars=1, words=2)),
        ("北。！", TextCount(other_bytes=9, other_chars=3, marks=2)),
        ("😀", TextCount(other_bytes=4, other_chars=1)),
    ],
)
def test_what_is_counted(text: str, count: TextCount) -> None:
    assert counted(text) == count


@given(st.lists(SOME, max_size=6))
def test_how_a_text_was_cut_changes_nothing(pieces: list[str]) -> None:
    assert counted(*pieces) == counted("".join(pieces))


@given(SOME, SOME)
def test_more_text_is_never_less(one: str, two: str) -> None:
    before, after = counted(one), counted(one, two)
    assert all(getattr(after, name) >= getattr(before, name) for name in TextCount.__struct_fields__)


def test_a_frame_is_taken_off_and_no_more() -> None:
    tally = Tally()
    tally.add(b"one two, 3")
    assert tally.count(1, (4, 1, 0, 0), 9) == TextCount(
        events=1, ascii_bytes=6, words=1, marks=1, digits=1, media_tokens=9
    )
    assert tally.count(0, (99, 99, 99, 99)) == NO_TEXT


@pytest.mark.parametrize("size", [1, 32 * 1024, 32 * 1024 + 1, 100_000, 3_000_017])
def test_a_sample_stands_for_the_whole(size: int) -> None:
    unit = "Some words, 12 of them; その他は日本語です。\n".encode()
    text = (unit * (size // len(unit) + 1))[:size]
    part, times = sample(text)
    assert len(part) <= 32 * 1024
    assert abs(len(part) * times - size) <= 0.02 * size
    if times == 1:
        assert part is text
    else:
        tally = Tally()
        tally.add(part, times)
        assert abs(tally.count(0).other_bytes - 30 * size / len(unit)) <= 0.03 * size
