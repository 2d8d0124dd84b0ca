import pytest

from headrace.model.usage import Usage
from headrace.protocols.chat_usage import Counts, InputDetails, OutputDetails, usage_from


def test_every_field() -> None:
    counts = Counts(100, 50, 150, InputDetails(60, 8, 3, 4), OutputDetails(40, 2, 1, 5, 6))
    assert usage_from(counts, "flex") == Usage(
        input_total=100,
        cached_input=60,
        cache_write=8,
        audio_input=3,
        image_input=4,
        output_total=50,
        reasoning=40,
        audio_output=2,
        image_output=1,
        accepted_prediction=5,
        rejected_prediction=6,
        tier="flex",
    )


@pytest.mark.parametrize(
    ("counts", "flags"),
    [
        (Counts(10, 5, 15), ()),
        (Counts(10, 5, 16), ("total is not input and output",)),
        (Counts(None, 5, 16), ()),
        (Counts(10, 5, None, InputDetails(11)), ("cached_input exceeds input_total",)),
        (Counts(10, 5, None, InputDetails(6, 5)), ("cached_input and cache_write exceed input_total",)),
        (Counts(10, 5, None, None, OutputDetails(6)), ("reasoning exceeds output_total",)),
        (Counts(-1, 5), ("input_total is negative",)),
    ],
)
def test_what_cannot_be_is_flagged(counts: Counts, flags: tuple[str, ...]) -> None:
    assert usage_from(counts, "").inconsistent == flags


def test_a_newer_report_stands_and_what_it_leaves_out_stays() -> None:
    """Case B028: neither an absent nor a null count erases an earlier one; per field, the details' too."""
    older = Counts(14, 52, 66, InputDetails(4, 1, None, None), OutputDetails(30))
    newer = Counts()
    newer.underlay(older)
    assert newer == older
    newer = Counts(15, None, None, InputDetails(None, 2, 3, None), None)
    newer.underlay(older)
    assert newer == Counts(15, 52, 66, InputDetails(4, 2, 3, None), OutputDetails(30))
