"""Chat Completions' token counts, and the one place that makes them the gateway's.

Wire facts (openai-python 3.57.0, types/completion_usage.py): the details are parts of the totals;
`cache_write_tokens` are taken for a part of the prompt that was not read from the cache; a chunk's `service_tier` is
the tier that served it. Some upstreams send running totals on every chunk, or say null behind a report.
"""

from typing import TypeVar

import msgspec

from headrace.model.usage import Usage
from headrace.protocols.usage_form import usage_of


class InputDetails(msgspec.Struct, gc=False):
    """Parts of the prompt."""

    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    audio_tokens: int | None = None
    image_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """Parts of the completion."""

    reasoning_tokens: int | None = None
    audio_tokens: int | None = None
    image_tokens: int | None = None
    accepted_prediction_tokens: int | None = None
    rejected_prediction_tokens: int | None = None


D = TypeVar("D", InputDetails, OutputDetails)


class Counts(msgspec.Struct, gc=False):
    """A `usage` object, or several laid over each other."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    total_tokens: int | None = None
    prompt_tokens_details: InputDetails | None = None
    completion_tokens_details: OutputDetails | None = None

    def underlay(self, older: "Counts") -> None:
        """Take from `older` what is not said here. Some upstreams report with every chunk: written out, it is fast."""
        if self.prompt_tokens is None:
            self.prompt_tokens = older.prompt_tokens
        if self.completion_tokens is None:
            self.completion_tokens = older.completion_tokens
        if self.total_tokens is None:
            self.total_tokens = older.total_tokens
        self.prompt_tokens_details = _laid_over(self.prompt_tokens_details, older.prompt_tokens_details)
        self.completion_tokens_details = _laid_over(self.completion_tokens_details, older.completion_tokens_details)


def _laid_over(newer: D | None, older: D | None) -> D | None:
    if newer is None or older is None:
        return older if newer is None else newer
    for name in newer.__struct_fields__:
        if getattr(newer, name) is None:
            setattr(newer, name, getattr(older, name))
    return newer


def usage_from(counts: Counts, tier: str) -> Usage:
    """The gateway's form; None where nothing was said."""
    into, out = counts.prompt_tokens_details or InputDetails(), counts.completion_tokens_details or OutputDetails()
    flags: list[str] = []
    known = (counts.prompt_tokens, counts.completion_tokens)
    if counts.total_tokens is not None and None not in known and counts.total_tokens != sum(filter(None, known)):
        flags.append("total is not input and output")
    fields = {
        "input_total": counts.prompt_tokens,
        "cached_input": into.cached_tokens,
        "cache_write": into.cache_write_tokens,
        "audio_input": into.audio_tokens,
        "image_input": into.image_tokens,
        "output_total": counts.completion_tokens,
        "reasoning": out.reasoning_tokens,
        "audio_output": out.audio_tokens,
        "image_output": out.image_tokens,
        "accepted_prediction": out.accepted_prediction_tokens,
        "rejected_prediction": out.rejected_prediction_tokens,
    }
    return usage_of(fields, flags, tier=tier)
