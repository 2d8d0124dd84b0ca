"""Anthropic's token counts, and the one place that makes them the gateway's.

Wire facts (anthropic-python 2.14.0, types/usage.py, message_delta_usage.py, beta/beta_usage.py): counts are running
totals, so a later one replaces an earlier one; `input_tokens` holds neither of the two cache counts; `output_tokens`
holds thinking; what was written to the cache lives for five minutes where `cache_creation` does not say otherwise.

The beta's `iterations` of the types `compaction` and `advisor_message` are in none of the top-level counts. Where one
of them is a `fallback_message`, the model that was asked declined and another answered: the top-level counts are then
the other's alone, those of a model that declined stand in iterations of the type `message` with its name, and one that
had generated nothing by then is not charged.
"""

from typing import NamedTuple

import msgspec

from headrace.model.usage import NO_CALLS, Calls, ExtraUsage, Usage
from headrace.protocols.usage_form import MOST_MODEL, MOST_TIER, added, calls_of, usage_of

_ROWS = {"compaction": "compaction", "advisor_message": "advisor"}
"""What an iteration is that stands in no top-level count."""
MOST_EXTRA = 8
"""Rows that an entry has room for."""
_NOTHING = {"input_total": 0, "output_total": 0}
_Fields = dict[str, int | None]
"""Counts, by the names of a usage's fields."""


class _Row(NamedTuple):
    """What another model used."""

    kind: str
    model: str
    counts: _Fields


class CacheCreation(msgspec.Struct, gc=False):
    """What was written to the prompt cache, by how long it lives."""

    ephemeral_5m_input_tokens: int | None = None
    ephemeral_1h_input_tokens: int | None = None


_NO_SPLIT = CacheCreation()


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


def fallback_model(iterations: list[Iteration] | None) -> str | None:
    """The model that answered in place of the one that was asked; None where that one answered."""
    served = (one.model or "" for one in reversed(iterations or ()) if one.type == "fallback_message")
    return next(served, None)


def usage_from(counts: Counts, model: str) -> Usage:
    """The gateway's form: totals that include their parts, and a row for each other model; None where nothing was said.

    `model` is the message's own, which a compaction is made by. `input_total` = input_tokens + cache read + cache
    creation.
    """
    fields, flags = _fields(counts), list[str]()
    fields["reasoning"] = details.thinking_tokens if (details := counts.output_tokens_details) is not None else None
    calls = _calls(tools) if (tools := counts.server_tool_use) is not None else NO_CALLS
    tier, speed, geo = _word(counts.service_tier), _word(counts.speed), _word(counts.inference_geo)
    extra: tuple[ExtraUsage, ...] = ()
    if counts.iterations:
        fields, rows = _by_model(fields, counts.iterations, model)
        # Tier and place are the request's; speed is a mode of the model's, which an advisor need not have.
        extra = tuple(
            ExtraUsage(
                kind=row.kind,
                model=row.model[:MOST_MODEL],
                usage=usage_of(row.counts, [], tier=tier, geo=geo, speed=speed if row.kind != "advisor" else ""),
            )
            for row in _few(rows, flags)
        )
    return usage_of(fields, flags, calls=calls, extra=extra, tier=tier, speed=speed, geo=geo)


def _calls(tools: ServerTools) -> Calls:
    return calls_of(web_search=tools.web_search_requests, web_fetch=tools.web_fetch_requests)


def _word(word: str | None) -> str:
    return word[:MOST_TIER] if word else ""


def _by_model(top: _Fields, iterations: list[Iteration], model: str) -> tuple[_Fields, list[_Row]]:
    """The counts of the model that was asked, and of each other one. `top` are the top-level counts."""
    rows = [_Row(_ROWS[one.type], one.model or model, _fields(one)) for one in iterations if one.type in _ROWS]
    served = fallback_model(iterations)
    if served is None:
        return top, rows
    hops: dict[str | None, _Fields] = {}
    for one in iterations:
        if one.type == "fallback_message":
            _add(hops.setdefault(served, {}), one)
        elif one.type == "message":
            _add(hops.setdefault(one.model, {}), one)
    hops[served]["reasoning"] = top["reasoning"]
    hops = {name: hop for name, hop in hops.items() if name == served or hop["output_total"]}
    asked = next((one.model for one in iterations if one.type == "message" and one.model != served), None)
    own = hops.pop(asked, None)
    rows += (_Row("fallback", name or "", hop) for name, hop in hops.items())
    return own or dict(_NOTHING), rows


def _add(hop: _Fields, one: Iteration) -> None:
    for name, count in _fields(one).items():
        hop[name] = added(hop.get(name), count)


def _few(rows: list[_Row], flags: list[str]) -> list[_Row]:
    """No more rows than there is room for: what follows is added to one of the same kind and model."""
    kept = rows[:MOST_EXTRA]
    for row in rows[MOST_EXTRA:]:
        same = next((one for one in kept if one[:2] == row[:2]), None)
        if same is None:
            flags.append("more models than an entry has room for")
            continue
        for name, count in row.counts.items():
            same.counts[name] = added(same.counts.get(name), count)
    return kept


def _fields(counts: Counts | Iteration) -> _Fields:
    """The counts but for reasoning."""
    read, write = counts.cache_read_input_tokens, counts.cache_creation_input_tokens
    split = counts.cache_creation or _NO_SPLIT
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
        "output_total": counts.output_tokens,
    }
