"""Chat Completions' token counts, and the one place that makes them the gateway's.

Wire facts (openai-python 3.57.0, types/completion_usage.py): the details are parts of the totals;
`cache_write_tokens` are taken for a part of the prompt that was not read from the cache; a chunk's `service_tier` is
the tier that served it. Some upstreams send running totals on every chunk, or say null behind a report.
"""

import msgspec

from headrace.model.usage import Usage
from headrace.protocols.usage_form import TOTAL, is_no_sum, laid_over, usage_of


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
        into, out = self.prompt_tokens_details, self.completion_tokens_details
        self.prompt_tokens_details = (
            laid_over(into, older.prompt_tokens_details) if into is not None else older.prompt_tokens_details
        )
        self.completion_tokens_details = (
            laid_over(out, older.completion_tokens_details) if out is not None else older.completion_tokens_details
        )


def usage_from(counts: Counts, tier: str) -> Usage:
    """The gateway's form; None where nothing was said."""
    into, out = counts.prompt_tokens_details or InputDetails(), counts.completion_tokens_details or OutputDetails()
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
    flags = [TOTAL] if is_no_sum(counts.total_tokens, counts.prompt_tokens, counts.completion_tokens) else []
    return usage_of(fields, flags, tier=tier)
