"""Anthropic's token counts, and the one place that makes them the gateway's.

Wire facts (anthropic-python 2.14.0, types/usage.py, message_delta_usage.py, beta/beta_usage.py): counts are running
totals, so a later one replaces an earlier one; `input_tokens` holds neither of the two cache counts; `output_tokens`
holds thinking; what was written to the cache lives for five minutes where `cache_creation` does not say otherwise; the
beta's `iterations` of the types `compaction` and `advisor_message` are in none of the top-level counts; those of
`fallback_message` are in them, and are another model's.
"""

import msgspec

from headrace.model.usage import NO_CALLS, ExtraUsage, Usage
from headrace.protocols.usage_form import MOST_TIER, added, calls_of, usage_of

_EXTRA = {"compaction": "compaction", "advisor_message": "advisor", "fallback_message": "fallback"}
"""What an iteration of a type is that has a row of its own."""
MOST_EXTRA = 8
"""Rows that an entry has room for."""
_MOST_MODEL = 200


class CacheCreation(msgspec.Struct, gc=False):
    """What was written to the prompt cache, by how long it lives."""

    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


class OutputDetails(msgspec.Struct, gc=False):
    """A part of the output tokens."""

    thinking_tokens: int | None = None


class ServerTools(msgspec.Struct, gc=False):
    """What the provider's own tools did: charged by the call."""

    web_search_requests: int | None = None
    web_fetch_requests: int | None = None


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
    server_tool_use: ServerTools | None = None
    service_tier: str | None = None
    speed: str | None = None
    inference_geo: str | None = None

    def overlay(self, newer: "Counts") -> None:
        """Take every member that `newer` says. What it leaves out or says as null stays."""
        for name in self.__struct_fields__:
            value = getattr(newer, name)
            if value is not None:
                setattr(self, name, value)


def usage_from(counts: Counts, model: str) -> Usage:
    """The gateway's form: totals that include their parts; None where nothing was said. `model` is the one that served
    it: a compaction is its own.

    `input_total` = input_tokens + cache read + cache creation. A fallback's tokens are taken out of the totals, since
    they have a row of their own.
    """
    details, tools = counts.output_tokens_details, counts.server_tool_use
    fields = _input(counts) | {"output_total": counts.output_tokens}
    for one in counts.iterations or ():
        if one.type == "fallback_message":
            other = _input(one) | {"output_total": one.output_tokens}
            fields = {name: _less(value, other[name]) for name, value in fields.items()}
    fields["reasoning"] = details.thinking_tokens if details is not None else None
    return usage_of(
        fields,
        [],
        calls=calls_of(web_search=tools.web_search_requests, web_fetch=tools.web_fetch_requests) if tools else NO_CALLS,
        extra=_extra(counts.iterations, model) if counts.iterations else (),
        tier=(counts.service_tier or "")[:MOST_TIER],
        speed=(counts.speed or "")[:MOST_TIER],
        geo=(counts.inference_geo or "")[:MOST_TIER],
    )


def _extra(iterations: list[Iteration], model: str) -> tuple[ExtraUsage, ...]:
    """What stands in no top-level count, by model."""
    return tuple(
        ExtraUsage(
            kind=_EXTRA[one.type],
            model=(one.model or model)[:_MOST_MODEL],
            usage=usage_of(_input(one) | {"output_total": one.output_tokens}, []),
        )
        for one in iterations[:MOST_EXTRA]
        if one.type in _EXTRA
    )


def _less(whole: int | None, part: int | None) -> int | None:
    return whole if whole is None or part is None else whole - part


def _input(counts: Counts | Iteration) -> dict[str, int | None]:
    """The counts of the input, by the names of a usage's fields."""
    read, write = counts.cache_read_input_tokens, counts.cache_creation_input_tokens
    split = counts.cache_creation or CacheCreation()
    write_5m, write_1h = split.ephemeral_5m_input_tokens, split.ephemeral_1h_input_tokens
    if write is None:
        write = added(write_5m, write_1h)
    elif write_5m is None:
        write_5m = max(write - max(write_1h or 0, 0), 0)
    total = counts.input_tokens
    if total is not None:
        total += max(read or 0, 0) + max(write or 0, 0)
    return {
        "input_total": total,
        "cached_input": read,
        "cache_write": write,
        "cache_write_5m": write_5m,
        "cache_write_1h": write_1h,
    }
