"""Responses' token counts and calls, and the one place that makes them the gateway's.

Wire facts (openai-python 3.57.0, types/responses/response_usage.py, response.py): the details are parts of the totals;
`cache_write_tokens` are taken for a part of the input that was not read from the cache; `tool_usage` stands beside
`usage`, and the tokens of images that the answer's tool made are in that alone; the response's `service_tier` is the
tier that served it. Where `tool_usage` counts no searches, each item of that type is one.
"""

from collections.abc import Mapping

import msgspec

from headrace.model.usage import Calls, ExtraUsage, Usage
from headrace.protocols.usage_form import calls_of, usage_of

CALLS = {
    "web_search_call": "web_search",
    "code_interpreter_call": "code_execution",
    "file_search_call": "file_search",
    "image_generation_call": "image_generation",
}
"""The output items that are calls of the provider's own tools, and what each counts as."""
_MOST_MODEL = 200


class CacheWrites(msgspec.Struct, gc=False):
    """What was written to the prompt cache, by how long it lives."""

    ttl_30m_tokens: int | None = None
    ttl_12h_tokens: int | None = None


class InputDetails(msgspec.Struct, gc=False):
    """Parts of the input."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    cache_write_tokens_details: CacheWrites | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """A part of the output."""

    reasoning_tokens: int | None = None


class Counts(msgspec.Struct, gc=False):
    """A `usage` object, or several laid over each other."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    total_tokens: int | None = None
    input_tokens_details: InputDetails | None = None
    output_tokens_details: OutputDetails | None = None

    def overlay(self, newer: "Counts") -> None:
        """Take every member that `newer` says. What it leaves out or says as null stays."""
        for name in self.__struct_fields__:
            if (value := getattr(newer, name)) is not None:
                setattr(self, name, value)


class Searches(msgspec.Struct, gc=False):
    """What the search tool did."""

    num_requests: int | None = None


class Images(Counts, gc=False):
    """What the image tool used; it is a model of its own."""

    model: str | None = None


class ToolUsage(msgspec.Struct, gc=False):
    """`response.tool_usage`."""

    image_gen: Images | None = None
    web_search: Searches | None = None


def usage_from(counts: Counts, tools: ToolUsage | None, items: Mapping[str, int], tier: str) -> Usage:
    """The gateway's form; None where nothing was said. `items` counts the output items of the types in CALLS."""
    return usage_of(
        *_fields(counts), calls=_calls(tools, items), extra=_images(tools) if tools is not None else (), tier=tier
    )


def _fields(counts: Counts) -> tuple[dict[str, int | None], list[str]]:
    """The counts by the names of a usage's fields, and what is wrong with them."""
    into, out = counts.input_tokens_details or InputDetails(), counts.output_tokens_details or OutputDetails()
    writes = into.cache_write_tokens_details or CacheWrites()
    flags: list[str] = []
    known = (counts.input_tokens, counts.output_tokens)
    if counts.total_tokens is not None and None not in known and counts.total_tokens != sum(filter(None, known)):
        flags.append("total is not input and output")
    fields = {
        "input_total": counts.input_tokens,
        "cached_input": into.cached_tokens,
        "cache_write": into.cache_write_tokens,
        "cache_write_30m": writes.ttl_30m_tokens,
        "cache_write_12h": writes.ttl_12h_tokens,
        "output_total": counts.output_tokens,
        "reasoning": out.reasoning_tokens,
    }
    return fields, flags


def _calls(tools: ToolUsage | None, items: Mapping[str, int]) -> Calls:
    counts: dict[str, int | None] = {CALLS[kind]: count for kind, count in items.items() if kind in CALLS}
    if tools is not None and tools.web_search is not None and tools.web_search.num_requests is not None:
        counts["web_search"] = tools.web_search.num_requests
    return calls_of(**counts)


def _images(tools: ToolUsage) -> tuple[ExtraUsage, ...]:
    images = tools.image_gen
    if images is None or not (images.input_tokens or images.output_tokens):
        return ()
    usage = usage_of(*_fields(images))
    return (ExtraUsage(kind="image_generation", model=(images.model or "")[:_MOST_MODEL], usage=usage),)
