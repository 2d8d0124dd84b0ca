import pytest

from headrace.model.usage import Calls, Usage
from headrace.protocols.gemini_usage import Counts, ModalityCount, usage_from


def test_totals_include_their_parts() -> None:
    counts = Counts(10, 3, 30, 4, 5, 48, [ModalityCount("AUDIO", 6), ModalityCount("TEXT", 4)])
    counts.traffic_type = "PROVISIONED_THROUGHPUT"
    assert usage_from(counts, grounded=True) == Usage(
        input_total=15,
        cached_input=4,
        tool_input=5,
        audio_input=6,
        output_total=33,
        reasoning=30,
        calls=Calls(grounding=1),
        tier="PROVISIONED_THROUGHPUT",
    )


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (Counts(), Usage()),
        (Counts(prompt_token_count=4, total_token_count=4), Usage(input_total=4)),
        (Counts(tool_use_prompt_token_count=4), Usage(tool_input=4)),
        (Counts(thoughts_token_count=4), Usage(output_total=4, reasoning=4)),
        (Counts(candidates_token_count=0), Usage(output_total=0)),
        (
            Counts(candidates_tokens_details=[ModalityCount("AUDIO", 2), ModalityCount("AUDIO")]),
            Usage(audio_output=2),
        ),
    ],
)
def test_unknown_stays_unknown(counts: Counts, usage: Usage) -> None:
    assert usage_from(counts) == usage


def test_what_generated_nothing_has_no_output() -> None:
    assert usage_from(Counts(prompt_token_count=4), silent=True).output_total == 0
    assert usage_from(Counts(thoughts_token_count=4), silent=True).output_total == 4


def test_results_of_tools_count_among_the_kinds_of_input() -> None:
    counts = Counts(prompt_token_count=9, tool_use_prompt_token_count=5)
    counts.prompt_tokens_details = [ModalityCount("IMAGE", 4), ModalityCount("VIDEO", 1)]
    counts.tool_use_prompt_tokens_details = [ModalityCount("IMAGE", 3), ModalityCount("DOCUMENT", 2)]
    assert usage_from(counts) == Usage(
        input_total=14, tool_input=5, image_input=7, video_input=1, document_input=2
    )  # fmt: skip


def test_the_tier_is_told_in_either_way() -> None:
    assert usage_from(Counts(traffic_type="ON_DEMAND", service_tier="flex")).tier == "flex"
    assert usage_from(Counts(traffic_type="T" * 100)).tier == "T" * 40


def test_what_cannot_be_is_flagged() -> None:
    usage = usage_from(Counts(-1, 3, cached_content_token_count=4, total_token_count=99))
    assert (usage.input_total, usage.output_total) == (0, 3)
    assert usage.inconsistent == (
        "total is not input and output", "input_total is negative", "cached_input exceeds input_total"
    )  # fmt: skip


def test_a_newer_report_stands_and_what_it_leaves_out_stays() -> None:
    whole = Counts(1, 2, 3, 4, 5, 6, [ModalityCount()], [], [ModalityCount()], "a", "b")
    newer = Counts()
    newer.underlay(whole)
    assert newer == whole
    newer = Counts(11, 12, 13, 14, 15, 16, [], [ModalityCount()], [], "c", "d")
    newer.underlay(whole)
    assert newer == Counts(11, 12, 13, 14, 15, 16, [], [ModalityCount()], [], "c", "d")
