import pytest

from headrace.model.usage import Calls, ExtraUsage, Usage
from headrace.protocols.messages_usage import CacheCreation, Counts, Iteration, OutputDetails, ServerTools, usage_from


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
            Usage(input_total=9, output_total=40, calls=Calls(web_search=3), tier="priority", speed="fast", geo="us"),
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


def test_a_later_report_replaces_what_it_says() -> None:
    counts = Counts(9, 1, 4, 1, CacheCreation(3, 1))
    counts.overlay(Counts(None, 16, 0, None))
    assert counts == Counts(9, 16, 0, 1, CacheCreation(3, 1))


def test_what_stands_in_no_total_has_rows_of_its_own() -> None:
    counts = Counts(69, 9, 0, 0)
    counts.iterations = [
        Iteration("compaction", None, 100, 20, 5, 7, CacheCreation(4, 1)),
        Iteration("message", None, 9, 3, 0, 0),
        Iteration("advisor_message", "other", 50, 5),
        Iteration("fallback_message", "third", 60, 6),
        Iteration("something_new", "fourth", 70, 7),
    ]
    usage = usage_from(counts, "served")
    assert (usage.input_total, usage.output_total, usage.inconsistent) == (9, 3, ())
    compacted = Usage(
        input_total=112, cached_input=7, cache_write=5, cache_write_5m=4, cache_write_1h=1, output_total=20
    )
    assert usage.extra == (
        ExtraUsage(kind="compaction", model="served", usage=compacted),
        ExtraUsage(kind="advisor", model="other", usage=Usage(input_total=50, output_total=5)),
        ExtraUsage(kind="fallback", model="third", usage=Usage(input_total=60, output_total=6)),
    )


def test_no_more_rows_than_an_entry_holds() -> None:
    counts = Counts(1, 1, iterations=[Iteration("compaction", None, 1, 1)] * 1000)
    assert len(usage_from(counts, "m" * 1000).extra) == 8
