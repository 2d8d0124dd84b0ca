import pytest

from headrace.model.usage import Calls, ExtraUsage, Usage
from headrace.protocols.messages_usage import (
    CacheCreation,
    Counts,
    Iteration,
    OutputDetails,
    ServerTools,
    fallback_model,
    usage_from,
)


def test_nothing_is_nothing() -> None:
    assert usage_from(Counts(), "m") == Usage()


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        # B031: the total includes both cache counts, each once; what says no lifetime lives for five minutes
        (
            Counts(9, 16, 4, 1),
            Usage(input_total=14, cached_input=1, cache_write=4, cache_write_5m=4, output_total=16),
        ),
        # B032: as some backends say it, at the end alone
        (
            Counts(4522, 5, 4511, 0),
            Usage(input_total=9033, cached_input=0, cache_write=4511, cache_write_5m=4511, output_total=5),
        ),
        (Counts(9, 16), Usage(input_total=9, output_total=16)),
        (Counts(0, 0, 0, 0), Usage(input_total=0, cached_input=0, cache_write=0, cache_write_5m=0, output_total=0)),
        # without input_tokens the total is unknown, whatever the cache says
        (Counts(None, 2, 4, 1), Usage(cached_input=1, cache_write=4, cache_write_5m=4, output_total=2)),
        (
            Counts(9, 2, 4, 0, CacheCreation(3, 1)),
            Usage(input_total=13, cached_input=0, cache_write=4, cache_write_5m=3, cache_write_1h=1, output_total=2),
        ),
        # the split alone
        (
            Counts(9, None, None, None, CacheCreation(3, 1)),
            Usage(input_total=13, cache_write=4, cache_write_5m=3, cache_write_1h=1),
        ),
        (Counts(9, None, None, None, CacheCreation(None, 1)), Usage(input_total=10, cache_write=1, cache_write_1h=1)),
        (Counts(9, None, None, None, CacheCreation()), Usage(input_total=9)),
        (Counts(9, 40, output_tokens_details=OutputDetails(30)), Usage(input_total=9, output_total=40, reasoning=30)),
        (
            Counts(9, 40, server_tool_use=ServerTools(3, 0), service_tier="priority", speed="fast", inference_geo="us"),
            Usage(
                input_total=9,
                output_total=40,
                calls=Calls(web_search=3),
                tier="priority",
                speed="fast",
                geo="us",
            ),
        ),
    ],
)
def test_totals_include_their_parts(counts: Counts, usage: Usage) -> None:
    assert usage_from(counts, "m") == usage


def test_what_does_not_fit_is_flagged() -> None:
    usage = usage_from(Counts(-1, -2, 1, 0, CacheCreation(0, 5)), "m")
    assert (usage.input_total, usage.output_total, usage.cache_write, usage.cache_write_1h) == (0, 0, 1, 1)
    assert usage.inconsistent == (
        "output_total is negative", "cache_write exceeds input_total", "cache_write_1h exceeds cache_write"
    )  # fmt: skip
    assert usage_from(Counts(-5, 1), "m").inconsistent == ("input_total is negative",)


def test_words_are_bounded() -> None:
    usage = usage_from(Counts(9, 1, service_tier="t" * 99, speed="s" * 99, inference_geo="g" * 99), "m")
    assert (usage.tier, usage.speed, usage.geo) == ("t" * 40, "s" * 40, "g" * 40)


def test_what_stands_in_no_total_has_rows_of_its_own() -> None:
    counts = Counts(9, 3, 0, 0, service_tier="priority", speed="fast", inference_geo="us")
    counts.iterations = [
        Iteration("compaction", None, 100, 20, 5, 7, CacheCreation(4, 1)),
        Iteration("message", None, 9, 3, 0, 0),
        Iteration("advisor_message", "other", 50, 5),
        Iteration("something_new", "fourth", 70, 7),
    ]
    usage = usage_from(counts, "served")
    assert (usage.input_total, usage.output_total, usage.inconsistent) == (9, 3, ())
    compacted = Usage(
        input_total=112, cached_input=7, cache_write=5, cache_write_5m=4, cache_write_1h=1, output_total=20,
        tier="priority", speed="fast", geo="us",
    )  # fmt: skip
    advised = Usage(input_total=50, output_total=5, tier="priority", geo="us")
    assert usage.extra == (
        ExtraUsage(kind="compaction", model="served", usage=compacted),
        ExtraUsage(kind="advisor", model="other", usage=advised),
    )


DECLINED = Iteration("message", "asked", 30, 4, 2, 5)
SERVED = Iteration("fallback_message", "other", 40, 6, 0, 8)
SERVED_EARLIER = Iteration("message", "other", 7, 1, 0, 0)


def row(total: int, output: int, reasoning: int | None = None, cached: int = 8) -> ExtraUsage:
    usage = Usage(
        input_total=total,
        cached_input=cached,
        cache_write=0,
        cache_write_5m=0,
        output_total=output,
        reasoning=reasoning,
    )
    return ExtraUsage(kind="fallback", model="other", usage=usage)


@pytest.mark.parametrize(
    ("iterations", "own", "extra"),
    [
        # what was generated before the hand-over is the asked model's, and the rest the other's
        ([DECLINED, SERVED], (37, 4), (row(48, 6, 3),)),
        # a model that declines before it generates anything is not charged
        ([Iteration("message", "asked", 30, 0, 0, 0), SERVED], (0, 0), (row(48, 6, 3),)),
        # the model was the other one from the start
        ([SERVED], (0, 0), (row(48, 6, 3),)),
        # of the model that served, earlier rounds with tools too
        ([DECLINED, SERVED_EARLIER, SERVED], (37, 4), (row(55, 7, 3),)),
        # an older server names no model where it is the one that was asked
        ([Iteration("message", None, 30, 4, 2, 5), SERVED], (37, 4), (row(48, 6, 3),)),
    ],
)
def test_a_fallback_is_told_apart(
    iterations: list[Iteration], own: tuple[int, int], extra: tuple[ExtraUsage, ...]
) -> None:
    """The top-level counts are those of the model that answered, or sums: they are not needed."""
    for top in (Counts(40, 6, 0, 8), Counts(77, 11, 2, 13)):
        top.output_tokens_details = OutputDetails(3)
        top.iterations = iterations
        usage = usage_from(top, "asked")
        assert (usage.input_total, usage.output_total, usage.reasoning) == (*own, None)
        assert (usage.extra, usage.inconsistent) == (extra, ())


def test_each_of_several_models_that_declined_has_a_row() -> None:
    second = Iteration("message", "second", 20, 2, 0, 0)
    usage = usage_from(Counts(40, 6, 0, 8, iterations=[DECLINED, second, SERVED]), "asked")
    assert (usage.input_total, usage.output_total) == (37, 4)
    assert [(one.model, one.usage.output_total) for one in usage.extra] == [("second", 2), ("other", 6)]
    assert fallback_model([DECLINED, second, SERVED]) == "other"
    assert fallback_model([DECLINED, second]) is None
    assert fallback_model(None) is None


def test_no_more_rows_than_an_entry_holds() -> None:
    """What follows is added to the row of the same kind and model, so that nothing of it is lost."""
    counts = Counts(1, 1, iterations=[Iteration("compaction", None, 2, 1)] * 1000)
    usage = usage_from(counts, "m" * 1000)
    assert len(usage.extra) == 8 and {len(one.model) for one in usage.extra} == {200}
    assert sum(one.usage.input_total or 0 for one in usage.extra) == 2000
    assert usage.inconsistent == ()


def test_models_for_which_there_is_no_room_are_flagged() -> None:
    counts = Counts(1, 1, iterations=[Iteration("advisor_message", f"m{number}", 1, 1) for number in range(9)])
    usage = usage_from(counts, "m")
    assert (len(usage.extra), usage.inconsistent) == (8, ("more models than an entry has room for",))
