"""Anthropic's token counts, and the one place that makes them the gateway's.

Wire facts (anthropic-python 2.14.0, types/usage.py, message_delta_usage.py, beta/beta_usage.py): counts are running
totals, so a later one replaces an earlier one; `input_tokens` holds neither of the two cache counts; `output_tokens`
holds thinking; the beta's `iterations` of type `compaction` are in none of the top-level counts.
"""

import msgspec

from headrace.model.usage import Usage


class CacheCreation(msgspec.Struct, gc=False):
    """What was written to the prompt cache, by how long it lives."""

    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """A part of the output tokens."""

    thinking_tokens: int | None = None


class Iteration(msgspec.Struct, gc=False):
    """One sampling of several in a turn (beta); its type is message, compaction, advisor_message, fallback_message."""

    type: str | None = None
    model: str | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None


class Counts(msgspec.Struct, gc=False):
    """A `usage` object, or several laid over each other."""

    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation: CacheCreation | None = None
    output_tokens_details: OutputDetails | None = None
    iterations: list[Iteration] | None = None

    def overlay(self, newer: "Counts") -> None:
        """Take every member that `newer` says. What it leaves out or says as null stays."""
        for name in self.__struct_fields__:
            value = getattr(newer, name)
            if value is not None:
                setattr(self, name, value)


def usage_from(counts: Counts) -> Usage:
    """The gateway's form: totals that include their parts; None where nothing was said; negative counts are 0, flagged.

    `input_total` = input_tokens + cache read + cache creation. Compaction is added, since it is billed at the same
    model's price and stands in no total. What another model used (advisor, fallback) is flagged, not added.
    """
    flags: list[str] = []
    total, read, write, write_1h = _input(counts)
    output = counts.output_tokens
    for iteration in counts.iterations or ():
        if iteration.type == "compaction":
            more = _input(iteration)
            total, read, write, write_1h = map(_sum, (total, read, write, write_1h), more)
            output = _sum(output, iteration.output_tokens)
        elif iteration.type in ("advisor_message", "fallback_message"):
            flags.append(f"{iteration.type}: another model's tokens")
    details = counts.output_tokens_details
    leaves = {
        "input_total": total,
        "cached_input": read,
        "cache_write": write,
        "cache_write_1h": write_1h,
        "output_total": output,
        "reasoning": details.thinking_tokens if details is not None else None,
    }
    for name, value in leaves.items():
        if value is not None and value < 0:
            leaves[name] = 0
            flags.append(f"{name} is negative")
    if write_1h is not None and write is not None and write_1h > write:
        leaves["cache_write_1h"] = leaves["cache_write"]
        flags.append("cache_write_1h exceeds cache_write")
    return Usage(**leaves, inconsistent=tuple(dict.fromkeys(flags)))


def _input(counts: Counts | Iteration) -> tuple[int | None, int | None, int | None, int | None]:
    """(input total, read from cache, written to cache, of it for an hour)."""
    read, write = counts.cache_read_input_tokens, counts.cache_creation_input_tokens
    split = counts.cache_creation or CacheCreation()
    write_1h = split.ephemeral_1h_input_tokens
    if write is None:
        write = _sum(split.ephemeral_5m_input_tokens, write_1h)
    total = counts.input_tokens
    if total is not None:
        total += max(read or 0, 0) + max(write or 0, 0)
    return total, read, write, write_1h


def _sum(one: int | None, other: int | None) -> int | None:
    return other if one is None else one + (other or 0)
