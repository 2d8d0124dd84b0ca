"""Makes a usage of what an upstream reported, whatever the protocol: no count is negative, what cannot be is named."""

from typing import Any, TypeVar

import msgspec

from headrace.model.usage import NO_CALLS, Calls, Usage

_INPUT, _OUTPUT = "input_total", "output_total"
_WHOLES = {
    "cached_input": _INPUT, "cache_write": _INPUT, "tool_input": _INPUT, "audio_input": _INPUT, "image_input": _INPUT,
    "video_input": _INPUT, "document_input": _INPUT, "reasoning": _OUTPUT, "audio_output": _OUTPUT,
    "image_output": _OUTPUT, "accepted_prediction": _OUTPUT, "rejected_prediction": _OUTPUT,
}  # fmt: skip
"""Of each part what it is a part of."""
_LIFETIMES = ("cache_write_5m", "cache_write_30m", "cache_write_1h", "cache_write_12h")
MOST_COUNT = 2**53
"""More tokens than that are no report; and records hold no integers without bounds."""
MOST_TIER = 40
"""Characters that are kept of a tier, a speed or a place."""
MOST_MODEL = 200
"""The same of the name of another model."""
TOTAL = "total is not input and output"

S = TypeVar("S", bound=msgspec.Struct)


def laid_over(newer: S, older: S | None) -> S:
    """`newer`, and what it leaves out or says as null from `older`, down through the structs that both have.

    Lists are taken whole: a newer one stands for the older.
    """
    if older is None:
        return newer
    for name in newer.__struct_fields__:
        said, before = getattr(newer, name), getattr(older, name)
        if said is None:
            setattr(newer, name, before)
        elif before is not None and isinstance(said, msgspec.Struct):
            laid_over(said, before)
    return newer


def usage_of(counts: dict[str, int | None], flags: list[str], **rest: Any) -> Usage:
    """A usage of these counts, which are named as its fields are, and of `rest`, its other fields.

    A part that is larger than its whole is kept as it was reported and flagged; but of what was written to a cache no
    more is divided among lifetimes than was written.
    """
    # Every settlement asks, so what is not there or 0 is passed over: one loop over few.
    told = {name: count for name, count in counts.items() if count}
    for name, count in told.items():
        if count < 0:
            counts[name] = told[name] = 0
            flags.append(f"{name} is negative")
        elif count > MOST_COUNT:
            counts[name], told[name] = None, 0
            flags.append(f"{name} is too large to be true")
    for name, count in told.items():
        whole = counts.get(_WHOLES.get(name, name))
        if whole is not None and count > whole:
            flags.append(f"{name} exceeds {_WHOLES[name]}")
    read, write, total = told.get("cached_input", 0), told.get("cache_write", 0), counts.get(_INPUT)
    if read and write and total is not None and read + write > total >= max(read, write):
        flags.append("cached_input and cache_write exceed input_total")
    if not told.keys().isdisjoint(_LIFETIMES):
        _fit(counts, write, flags)
    if flags:
        rest["inconsistent"] = tuple(dict.fromkeys(flags))
    rest |= {name: count for name, count in counts.items() if count is not None}
    return Usage(**rest)


def calls_of(**counts: int | None) -> Calls:
    """Calls by these names; one that is 0, negative or too large to be true is none."""
    told = {name: count for name, count in counts.items() if count is not None and 0 < count <= MOST_COUNT}
    return Calls(**told) if told else NO_CALLS


def is_no_sum(total: int | None, into: int | None, out: int | None) -> bool:
    """Whether a reported total cannot be that of these two; one that is not known makes no claim."""
    return total is not None and into is not None and out is not None and total != max(into, 0) + max(out, 0)


def _fit(counts: dict[str, int | None], left: int, flags: list[str]) -> None:
    """Divide no more among the lifetimes than `left`."""
    for name in _LIFETIMES:
        value = counts.get(name)
        if value is not None and value > left:
            counts[name] = left
            flags.append(f"{name} exceeds cache_write")
        left -= counts.get(name) or 0


def added(one: int | None, other: int | None) -> int | None:
    """The sum of what is known; None where neither is."""
    return other if one is None else one + (other or 0)
