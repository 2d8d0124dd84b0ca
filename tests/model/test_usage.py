"""The leaves of a usage: every token in one of them, none of them negative."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.usage import NOTHING, Calls, ExtraUsage, Leaves, Usage

tokens = st.integers(0, 2**40)
maybe = st.none() | tokens
any_usage = st.builds(
    Usage, input_total=maybe, cached_input=maybe, cache_write=maybe, cache_write_5m=maybe, cache_write_30m=maybe,
    cache_write_1h=maybe, cache_write_12h=maybe, output_total=maybe, reasoning=maybe,
)  # fmt: skip


@given(leaves=st.builds(Leaves, *[tokens] * len(Leaves._fields)))
def test_totals_that_are_made_of_leaves_have_these_leaves(leaves: Leaves) -> None:
    usage = Usage(
        input_total=sum(leaves[:7]),
        cached_input=leaves.cache_read,
        cache_write=sum(leaves[2:7]),
        cache_write_5m=leaves.cache_write_5m,
        cache_write_30m=leaves.cache_write_30m,
        cache_write_1h=leaves.cache_write_1h,
        cache_write_12h=leaves.cache_write_12h,
        output_total=leaves.visible + leaves.reasoning,
        reasoning=leaves.reasoning,
    )
    assert usage.leaves() == leaves


@given(any_usage)
def test_no_leaf_is_negative_and_none_exceeds_what_was_reported(usage: Usage) -> None:
    leaves = usage.leaves()
    assert min(leaves) >= 0
    assert leaves.uncached <= (usage.input_total or 0)
    assert leaves.visible <= (usage.output_total or 0)
    assert leaves.cache_write_unspecified <= (usage.cache_write or 0)


def test_what_was_not_said_is_in_no_leaf() -> None:
    assert NOTHING.leaves() == Leaves(0, 0, 0, 0, 0, 0, 0, 0, 0)
    assert not NOTHING.known
    assert not Usage(tier="flex", calls=Calls(grounding=1)).known
    assert Usage(input_total=0).known and Usage(output_total=0).known


def test_a_cache_that_was_written_for_no_said_time() -> None:
    usage = Usage(input_total=100, cached_input=40, cache_write=30, cache_write_1h=10, output_total=7, reasoning=2)
    assert usage.leaves() == Leaves(30, 40, 20, 0, 0, 10, 0, 5, 2)


def test_other_models_stand_in_no_leaf() -> None:
    extra = (ExtraUsage(kind="advisor", model="m", usage=Usage(input_total=9, output_total=9)),)
    assert Usage(input_total=1, output_total=2, extra=extra).leaves() == Usage(input_total=1, output_total=2).leaves()


@given(any_usage)
def test_a_journal_gives_it_back(usage: Usage) -> None:
    """Null and 0 stay two things."""
    calls = Calls(web_search=0, file_search=3)
    whole = msgspec.structs.replace(usage, calls=calls, extra=(ExtraUsage(kind="svg", model="m", usage=usage),))
    for made in (usage, whole):
        assert msgspec.json.decode(msgspec.json.encode(made), type=Usage) == made
