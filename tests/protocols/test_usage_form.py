import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.usage import NO_CALLS, Calls, Usage
from headrace.protocols.usage_form import added, calls_of, is_no_sum, laid_over, usage_of

NAMES = (
    "input_total", "cached_input", "cache_write", "cache_write_5m", "cache_write_30m", "cache_write_1h",
    "cache_write_12h", "tool_input", "audio_input", "image_input", "video_input", "document_input", "output_total",
    "reasoning", "audio_output", "image_output", "accepted_prediction", "rejected_prediction",
)  # fmt: skip
counts = st.dictionaries(st.sampled_from(NAMES), st.none() | st.integers(-5, 2**40))


@given(counts)
def test_no_count_is_negative_and_no_token_stands_in_two_leaves(reported: dict[str, int | None]) -> None:
    """Where nothing is flagged the leaves of each side are its total; with a flag they are never less than it."""
    usage = usage_of(dict(reported), [])
    leaves = usage.leaves()
    assert min(leaves) >= 0
    assert all((getattr(usage, name) or 0) >= 0 for name in NAMES)
    into, out = sum(leaves[:7]), sum(leaves[7:])
    if usage.input_total is not None and not usage.inconsistent:
        assert into == usage.input_total
    if usage.output_total is not None and not usage.inconsistent:
        assert out == usage.output_total
    assert into >= (usage.input_total or 0) and out >= (usage.output_total or 0)


@given(counts)
def test_what_was_not_said_stays_unknown(reported: dict[str, int | None]) -> None:
    usage = usage_of(dict(reported), [])
    assert all(getattr(usage, name) is None for name in NAMES if reported.get(name) is None)


def test_flags_name_each_fault_once() -> None:
    usage = usage_of({"input_total": 5, "cached_input": 6, "output_total": -1}, ["as before", "as before"])
    assert usage == Usage(
        input_total=5,
        cached_input=6,
        output_total=0,
        inconsistent=("as before", "output_total is negative", "cached_input exceeds input_total"),
    )


class Part(msgspec.Struct):
    a: int | None = None
    b: int | None = None


class Report(msgspec.Struct):
    count: int | None = None
    part: Part | None = None
    items: list[int] | None = None


def test_a_newer_report_stands_and_what_it_leaves_out_stays() -> None:
    """Down through its parts; 0 is said, null is not; a list is one thing."""
    older = Report(1, Part(2, 3), [4, 5])
    assert laid_over(Report(), older) == older
    assert laid_over(Report(0, Part(None, 0), []), older) == Report(0, Part(2, 0), [])
    assert laid_over(Report(7, Part(1)), Report(None, None, [6])) == Report(7, Part(1), [6])
    assert laid_over(Report(7), None) == Report(7)


@given(st.lists(st.builds(Report, *[st.none() | st.integers(0, 9)], st.none() | st.builds(Part)), min_size=1))
def test_the_last_that_was_said_stands(reports: list[Report]) -> None:
    said = [one.count for one in reports if one.count is not None]
    kept: Report | None = None
    for one in reports:
        kept = laid_over(one, kept)
    assert kept is not None and kept.count == (said[-1] if said else None)


def test_a_total_makes_a_claim_only_where_all_is_known() -> None:
    assert is_no_sum(4, 1, 2)
    assert not is_no_sum(3, 1, 2)
    assert not is_no_sum(2, -1, 2)
    assert not any((is_no_sum(None, 1, 2), is_no_sum(9, None, 2), is_no_sum(9, 1, None)))


def test_what_is_too_large_to_be_true_is_not_known() -> None:
    usage = usage_of({"input_total": 2**53, "output_total": 2**53 + 1}, [])
    assert (usage.input_total, usage.output_total) == (2**53, None)
    assert usage.inconsistent == ("output_total is too large to be true",)
    assert calls_of(web_search=2**70, web_fetch=0, grounding=-1) is NO_CALLS
    assert calls_of(web_search=2, web_fetch=None) == Calls(web_search=2)


def test_sums_of_what_is_known() -> None:
    assert (added(None, None), added(None, 3), added(3, None), added(3, 4)) == (None, 3, 3, 7)
