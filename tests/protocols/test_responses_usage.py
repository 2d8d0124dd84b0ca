import pytest

from headrace.model.usage import NO_CALLS, Calls, ExtraUsage, Usage
from headrace.protocols.responses_usage import (
    CacheWrites,
    Counts,
    Images,
    InputDetails,
    OutputDetails,
    Searches,
    Tool,
    ToolUsage,
    image_model,
    usage_from,
)


def test_every_field() -> None:
    counts = Counts(100, 50, 150, InputDetails(60, 8, CacheWrites(5, 3)), OutputDetails(40))
    assert usage_from(counts, None, {}, "priority", "") == Usage(
        input_total=100,
        cached_input=60,
        cache_write=8,
        cache_write_30m=5,
        cache_write_12h=3,
        output_total=50,
        reasoning=40,
        tier="priority",
    )


def test_a_total_that_is_no_sum_is_flagged() -> None:
    assert usage_from(Counts(10, 5, 16), None, {}, "", "").inconsistent == ("total is not input and output",)


@pytest.mark.parametrize(
    ("tools", "items", "calls"),
    [
        (None, {}, NO_CALLS),
        (None, {"web_search_call": 2, "file_search_call": 1}, Calls(web_search=2, file_search=1)),
        (None, {"code_interpreter_call": 1, "image_generation_call": 3}, Calls(code_execution=1, image_generation=3)),
        (ToolUsage(web_search=Searches(5)), {"web_search_call": 2}, Calls(web_search=5)),
        (ToolUsage(web_search=Searches(None)), {"web_search_call": 2}, Calls(web_search=2)),
        (ToolUsage(web_search=Searches(0)), {"web_search_call": 2}, NO_CALLS),
        (ToolUsage(web_search=Searches(-3)), {"file_search_call": 1}, Calls(file_search=1)),
    ],
)
def test_calls(tools: ToolUsage | None, items: dict[str, int], calls: Calls) -> None:
    """The upstream's own count stands; items are counted where it has none."""
    assert usage_from(Counts(1, 1), tools, items, "", "").calls == calls


def test_images_are_another_model_s_tokens() -> None:
    images = Images(20, 400, 420, InputDetails(image_tokens=15), OutputDetails(image_tokens=390), cached_tokens=6)
    usage = usage_from(Counts(10, 5), ToolUsage(image_gen=images), {}, "", "gpt-image-2")
    assert (usage.input_total, usage.output_total) == (10, 5)
    made = Usage(input_total=20, cached_input=6, image_input=15, output_total=400, image_output=390)
    assert usage.extra == (ExtraUsage(kind="image_generation", model="gpt-image-2", usage=made),)


def test_zeros_for_images_are_no_images() -> None:
    """Where tools have a report, it has zeros for those that were not used."""
    assert usage_from(Counts(10, 5), ToolUsage(image_gen=Images(0, 0, 0)), {}, "", "gpt-image-2").extra == ()


@pytest.mark.parametrize(
    ("tools", "model"),
    [
        ([], ""),
        ([Tool("function"), Tool("image_generation")], ""),
        ([Tool("other", "x"), Tool("image_generation", "gpt-image-2")], "gpt-image-2"),
        ([Tool("image_generation", "m" * 300)], "m" * 200),
    ],
)
def test_the_image_tool_names_its_model(tools: list[Tool], model: str) -> None:
    assert image_model(tools) == model
