"""Gemini's token counts, and the one place that makes them the gateway's.

Wire facts (google-genai 3.6.1 types.py): every chunk may carry a running total, so a later one replaces
an earlier one, field by field; `promptTokenCount` includes `cachedContentTokenCount`; `candidatesTokenCount` holds no
thoughts; tokens of tool results come on top of the prompt. A count of zero is left out by the server.
"""

import msgspec

from headrace.model.usage import Usage


class ModalityCount(msgspec.Struct, rename="camel", gc=False):
    """A part of a count: TEXT, IMAGE, AUDIO, VIDEO or DOCUMENT."""

    modality: str | None = None
    token_count: int | None = None


class Counts(msgspec.Struct, rename="camel", gc=False):
    """A `usageMetadata` object, or several laid over each other."""

    prompt_token_count: int | None = None
    candidates_token_count: int | None = None
    thoughts_token_count: int | None = None
    cached_content_token_count: int | None = None
    tool_use_prompt_token_count: int | None = None
    total_token_count: int | None = None
    prompt_tokens_details: list[ModalityCount] | None = None
    candidates_tokens_details: list[ModalityCount] | None = None

    @property
    def has_output(self) -> bool:
        """Whether anything is said of the output."""
        return self.candidates_token_count is not None or self.thoughts_token_count is not None

    def underlay(self, older: "Counts") -> None:
        """Take from `older` what is not said here. Once per chunk: written out, it is three times as fast as a loop."""
        if self.prompt_token_count is None:
            self.prompt_token_count = older.prompt_token_count
        if self.candidates_token_count is None:
            self.candidates_token_count = older.candidates_token_count
        if self.thoughts_token_count is None:
            self.thoughts_token_count = older.thoughts_token_count
        if self.cached_content_token_count is None:
            self.cached_content_token_count = older.cached_content_token_count
        if self.tool_use_prompt_token_count is None:
            self.tool_use_prompt_token_count = older.tool_use_prompt_token_count
        if self.total_token_count is None:
            self.total_token_count = older.total_token_count
        if self.prompt_tokens_details is None:
            self.prompt_tokens_details = older.prompt_tokens_details
        if self.candidates_tokens_details is None:
            self.candidates_tokens_details = older.candidates_tokens_details


def usage_from(counts: Counts, blocked: bool = False) -> Usage:
    """The gateway's form; None where nothing was said; negative counts are 0, flagged.

    `input_total` = prompt + toolUsePrompt; `output_total` = candidates + thoughts. `blocked`: the prompt was
    refused, so a missing count of output is 0.
    """
    flags: list[str] = []
    output = _sum(counts.candidates_token_count, counts.thoughts_token_count)
    leaves = {
        "input_total": _plus(counts.prompt_token_count, counts.tool_use_prompt_token_count),
        "cached_input": counts.cached_content_token_count,
        "audio_input": _audio(counts.prompt_tokens_details),
        "output_total": 0 if output is None and blocked else output,
        "reasoning": counts.thoughts_token_count,
        "audio_output": _audio(counts.candidates_tokens_details),
    }
    for name, value in leaves.items():
        if value is not None and value < 0:
            leaves[name] = 0
            flags.append(f"{name} is negative")
    total, known = counts.total_token_count, (leaves["input_total"], leaves["output_total"])
    if total is not None and None not in known and total != sum(filter(None, known)):
        flags.append("total is not input and output")
    if (leaves["cached_input"] or 0) > (leaves["input_total"] or 0):
        flags.append("cached_input exceeds input_total")
    return Usage(**leaves, inconsistent=tuple(flags))


def _audio(details: list[ModalityCount] | None) -> int | None:
    counts = [one.token_count for one in details or () if one.modality == "AUDIO" and one.token_count is not None]
    return sum(counts) if counts else None


def _plus(total: int | None, more: int | None) -> int | None:
    """`total` with what comes on top; unknown stays unknown."""
    return None if total is None else total + max(more or 0, 0)


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
