from hypothesis import given
from hypothesis import strategies as st

from headrace.model.usage import NO_CALLS, Calls, Usage
from headrace.protocols.usage_form import added, calls_of, usage_of

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


def test_what_is_too_large_to_be_true_is_not_known() -> None:
    usage = usage_of({"input_total": 2**53, "output_total": 2**53 + 1}, [])
    assert (usage.input_total, usage.output_total) == (2**53, None)
    assert usage.inconsistent == ("output_total is too large to be true",)
    assert calls_of(web_search=2**70, web_fetch=0, grounding=-1) is NO_CALLS
    assert calls_of(web_search=2, web_fetch=None) == Calls(web_search=2)


def test_sums_of_what_is_known() -> None:
    assert (added(None, None), added(None, 3), added(3, None), added(3, 4)) == (None, 3, 3, 7)
