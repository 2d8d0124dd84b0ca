"""Gemini's token counts, and the one place that makes them the gateway's.

Wire facts (google-genai 3.6.1 types.py): every chunk may carry a running total, so a later one replaces
an earlier one, field by field; `promptTokenCount` includes `cachedContentTokenCount`; `candidatesTokenCount` holds no
thoughts; tokens of tool results come on top of the prompt. A count of zero is left out by the server.
"""

from itertools import chain

import msgspec

from headrace.model.usage import NO_CALLS, Calls, Usage
from headrace.protocols.usage_form import MOST_TIER, TOTAL, added, is_no_sum, usage_of


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
    tool_use_prompt_tokens_details: list[ModalityCount] | None = None
    traffic_type: str | None = None
    service_tier: str | None = None

    @property
    def has_output(self) -> bool:
        """Whether anything is said of the output."""
        return self.candidates_token_count is not None or self.thoughts_token_count is not None

    def underlay(self, older: "Counts") -> None:  # noqa: C901  one rule, written out for each member
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
        if self.tool_use_prompt_tokens_details is None:
            self.tool_use_prompt_tokens_details = older.tool_use_prompt_tokens_details
        if self.traffic_type is None:
            self.traffic_type = older.traffic_type
        if self.service_tier is None:
            self.service_tier = older.service_tier


def usage_from(counts: Counts, *, silent: bool = False, grounded: bool = False) -> Usage:
    """The gateway's form; None where nothing was said.

    `input_total` = prompt + toolUsePrompt; `output_total` = candidates + thoughts. `silent`: nothing was generated
    (a refused prompt, embeddings), so a missing count of output is 0. `grounded`: the answer rests on a search, which
    is charged by the call.
    """
    into = _by_modality(counts.prompt_tokens_details, counts.tool_use_prompt_tokens_details)
    out = _by_modality(counts.candidates_tokens_details)
    output = added(counts.candidates_token_count, counts.thoughts_token_count)
    fields = {
        "input_total": _plus(counts.prompt_token_count, counts.tool_use_prompt_token_count),
        "cached_input": counts.cached_content_token_count,
        "tool_input": counts.tool_use_prompt_token_count,
        "audio_input": into.get("AUDIO"),
        "image_input": into.get("IMAGE"),
        "video_input": into.get("VIDEO"),
        "document_input": into.get("DOCUMENT"),
        "output_total": 0 if output is None and silent else output,
        "reasoning": counts.thoughts_token_count,
        "audio_output": out.get("AUDIO"),
        "image_output": out.get("IMAGE"),
    }
    flags = [TOTAL] if is_no_sum(counts.total_token_count, fields["input_total"], fields["output_total"]) else []
    tier = (counts.service_tier or counts.traffic_type or "")[:MOST_TIER]
    return usage_of(fields, flags, tier=tier, calls=Calls(grounding=1) if grounded else NO_CALLS)


def _by_modality(*details: list[ModalityCount] | None) -> dict[str, int]:
    """The counts by modality; one that is told twice counts twice."""
    found: dict[str, int] = {}
    for one in chain.from_iterable(filter(None, details)):
        if one.modality is not None and one.token_count is not None:
            found[one.modality] = found.get(one.modality, 0) + one.token_count
    return found


def _plus(total: int | None, more: int | None) -> int | None:
    """`total` with what comes on top; unknown stays unknown."""
    return None if total is None else total + max(more or 0, 0)
