from hypothesis import given
from hypothesis import strategies as st

from headrace.model.estimate import NO_TEXT, TextCount
from headrace.protocols.features import Features


def test_nothing() -> None:
    assert Features().counted() == NO_TEXT


@given(st.lists(st.text(max_size=300), max_size=8), st.integers(1, 4))
def test_one_by_one_and_in_runs_are_the_same(pieces: list[str], together: int) -> None:
    single, runs, looked_at = Features(), Features(), Features()
    for piece in pieces:
        for features in (single, looked_at):
            features.events += 1
            features.text(piece)
        looked_at.counted()
    for at in range(0, len(pieces), together):
        runs.run(pieces[at : at + together])
    assert single.counted() == runs.counted() == looked_at.counted()


def test_text_does_not_pile_up() -> None:
    features = Features()
    for _ in range(10_000):
        features.run(["word "] * 32)
    assert len(features._waiting) < 1_000
    assert features.counted() == TextCount(events=320_000, ascii_bytes=1_600_000, words=320_000)


def test_half_a_surrogate_pair_counts_as_three_bytes() -> None:
    features = Features()
    features.text("\ud83d")
    assert features.counted().other_bytes == 3


def test_a_huge_piece_is_sampled() -> None:
    features = Features()
    features.run(["word " * 1_000_000])
    count = features.counted()
    assert abs(count.ascii_bytes - 5_000_000) < 50_000
    assert abs(count.words - 1_000_000) < 20_000
