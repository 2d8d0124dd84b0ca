"""Responses' token counts and calls, and the one place that makes them the gateway's.

Wire facts (openai-python 3.57.0, types/responses/response_usage.py, response.py): the details are parts of the totals;
`cache_write_tokens` are taken for a part of the input that was not read from the cache; `tool_usage` stands beside
`usage`, has zeros for what was not used, and the tokens of images that the answer's tool made are in that alone. Their
model is named by the tool in the response's `tools`. The response's `service_tier` is the tier that served it. Where
`tool_usage` counts no searches, each item of that type is one.
"""

from collections.abc import Mapping

import msgspec

from headrace.model.usage import ExtraUsage, Usage
from headrace.protocols.usage_form import MOST_MODEL, TOTAL, calls_of, is_no_sum, usage_of

CALLS = {
    "web_search_call": "web_search",
    "code_interpreter_call": "code_execution",
    "file_search_call": "file_search",
    "image_generation_call": "image_generation",
}
"""The output items that are calls of the provider's own tools, and what each counts as."""


class CacheWrites(msgspec.Struct, gc=False):
    """What was written to the prompt cache, by how long it lives."""

    ttl_30m_tokens: int | None = None
    ttl_12h_tokens: int | None = None


class InputDetails(msgspec.Struct, gc=False):
    """Parts of the input. Images are told of the image tool's alone."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_tokens_details: CacheWrites | None = None
    image_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """Parts of the output."""

    reasoning_tokens: int | None = None
    image_tokens: int | None = None


class Counts(msgspec.Struct, gc=False):
    """A `usage` object, or several laid over each other."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None


class Searches(msgspec.Struct, gc=False):
    """What the search tool did."""

    num_requests: int | None = None


class Images(Counts, gc=False):
    """What the image tool used; it is a model of its own."""

    cached_tokens: int | None = None


class ToolUsage(msgspec.Struct, gc=False):
    """`response.tool_usage`."""

    image_gen: Images | None = None
    web_search: Searches | None = None


class Tool(msgspec.Struct, gc=False):
    """One of `response.tools`: of the image tool the model."""

    type: str | None = None
    model: str | None = None


def image_model(tools: list[Tool]) -> str:
    """The model that makes the images; empty where none is named."""
    named = (tool.model for tool in tools if tool.type == "image_generation" and tool.model)
    return next(named, "")[:MOST_MODEL]


def usage_from(counts: Counts, tools: ToolUsage | None, items: Mapping[str, int], tier: str, images_by: str) -> Usage:
    """The gateway's form; None where nothing was said.

    `items` counts the output items of the types in CALLS; `images_by` is the model of the image tool.
    """
    fields, flags = _fields(counts)
    calls: dict[str, int | None] = {CALLS[kind]: count for kind, count in items.items()}
    extra: tuple[ExtraUsage, ...] = ()
    if tools is not None:
        searches, images = tools.web_search, tools.image_gen
        if searches is not None and searches.num_requests is not None:
            calls["web_search"] = searches.num_requests
        if images is not None and (images.input_tokens or images.output_tokens):
            extra = (ExtraUsage(kind="image_generation", model=images_by, usage=_image_usage(images)),)
    return usage_of(fields, flags, calls=calls_of(**calls), extra=extra, tier=tier)


def _image_usage(images: Images) -> Usage:
    fields, flags = _fields(images)
    fields["cached_input"] = images.cached_tokens
    return usage_of(fields, flags)


def _fields(counts: Counts) -> tuple[dict[str, int | None], list[str]]:
    """The counts by the names of a usage's fields, and what is wrong with them."""
    into, out = counts.input_tokens_details or InputDetails(), counts.output_tokens_details or OutputDetails()
    writes = into.cache_write_tokens_details or CacheWrites()
    fields = {
        "input_total": counts.input_tokens,
        "cached_input": into.cached_tokens,
        "cache_write": into.cache_write_tokens,
        "cache_write_30m": writes.ttl_30m_tokens,
        "cache_write_12h": writes.ttl_12h_tokens,
        "image_input": into.image_tokens,
        "output_total": counts.output_tokens,
        "reasoning": out.reasoning_tokens,
        "image_output": out.image_tokens,
    }
    return fields, [TOTAL] if is_no_sum(counts.total_tokens, counts.input_tokens, counts.output_tokens) else []
