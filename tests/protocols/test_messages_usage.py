import pytest

from headrace.model.usage import Usage
from headrace.protocols.messages_usage import CacheCreation, Counts, Iteration, OutputDetails, usage_from


def test_nothing_is_nothing() -> None:
    assert usage_from(Counts()) == Usage()


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        # B031: the total includes both cache counts, each once
        (Counts(9, 16, 4, 1), Usage(input_total=14, cached_input=1, cache_write=4, output_total=16)),
        (Counts(9, 16), Usage(input_total=9, output_total=16)),
        (Counts(0, 0, 0, 0), Usage(input_total=0, cached_input=0, cache_write=0, output_total=0)),
        # without input_tokens the total is unknown, whatever the cache says
        (Counts(None, 2, 4, 1), Usage(cached_input=1, cache_write=4, output_total=2)),
        (
            Counts(9, 2, 4, 0, CacheCreation(3, 1)),
            Usage(input_total=13, cached_input=0, cache_write=4, cache_write_1h=1, output_total=2),
        ),
        # the split alone
        (Counts(9, None, None, None, CacheCreation(3, 1)), Usage(input_total=13, cache_write=4, cache_write_1h=1)),
        (Counts(9, None, None, None, CacheCreation(None, 1)), Usage(input_total=10, cache_write=1, cache_write_1h=1)),
        (Counts(9, None, None, None, CacheCreation()), Usage(input_total=9)),
        (Counts(9, 40, output_tokens_details=OutputDetails(30)), Usage(input_total=9, output_total=40, reasoning=30)),
    ],
)
def test_totals_include_their_parts(counts: Counts, usage: Usage) -> None:
    assert usage_from(counts) == usage


def test_what_does_not_fit_is_flagged() -> None:
    usage = usage_from(Counts(-1, -2, 1, 0, CacheCreation(0, 5)))
    assert (usage.input_total, usage.output_total, usage.cache_write, usage.cache_write_1h) == (0, 0, 1, 1)
    assert usage.inconsistent == ("output_total is negative", "cache_write_1h exceeds cache_write")
    assert usage_from(Counts(-5, 1)).inconsistent == ("input_total is negative",)


def test_a_later_report_replaces_what_it_says() -> None:
    counts = Counts(9, 1, 4, 1, CacheCreation(3, 1))
    counts.overlay(Counts(None, 16, 0, None))
    assert counts == Counts(9, 16, 0, 1, CacheCreation(3, 1))


def test_compaction_is_added_and_other_models_are_flagged() -> None:
    counts = Counts(9, 3, 0, 0)
    counts.iterations = [
        Iteration("compaction", None, 100, 20, 5, 7, CacheCreation(4, 1)),
        Iteration("message", None, 9, 3, 0, 0),
        Iteration("advisor_message", "other", 50, 5, 0, 0),
        Iteration("advisor_message", "other", 50, 5, 0, 0),
        Iteration("fallback_message", "third", 50, 5, 0, 0),
    ]
    usage = usage_from(counts)
    assert (usage.input_total, usage.cached_input, usage.cache_write, usage.cache_write_1h) == (121, 7, 5, 1)
    assert usage.output_total == 23
    assert usage.inconsistent == (
        "advisor_message: another model's tokens",
        "fallback_message: another model's tokens",
    )
