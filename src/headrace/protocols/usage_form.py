"""Makes a usage of what an upstream reported, whatever the protocol: no count is negative, what cannot be is named."""

from typing import Any

from headrace.model.usage import NO_CALLS, Calls, Usage

_IN_INPUT = ("cached_input", "cache_write", "tool_input", "audio_input", "image_input", "video_input", "document_input")
_IN_OUTPUT = ("reasoning", "audio_output", "image_output", "accepted_prediction", "rejected_prediction")
_WHOLES = dict.fromkeys(_IN_INPUT, "input_total") | dict.fromkeys(_IN_OUTPUT, "output_total")
_LIFETIMES = dict.fromkeys(("cache_write_5m", "cache_write_30m", "cache_write_1h", "cache_write_12h")).keys()
"""In this order."""
MOST_COUNT = 2**53
"""More tokens than that are no report; and records hold no integers without bounds."""
MOST_WORD = 40
"""Characters that are kept of a tier, a speed or a place."""


def usage_of(counts: dict[str, int | None], flags: list[str], **rest: Any) -> Usage:
    """A usage of these counts, which are named as its fields are, and of `rest`, its other fields.

    A part that is larger than its whole is kept as it was reported and flagged; but of what was written to a cache no
    more is divided among lifetimes than was written.
    """
    larger: list[str] = []
    for name, value in counts.items():
        if not value:
            continue
        if value < 0:
            counts[name] = 0
            flags.append(f"{name} is negative")
        elif value > MOST_COUNT:
            counts[name] = None
            flags.append(f"{name} is too large to be true")
        elif (whole := _WHOLES.get(name)) is not None and (total := counts.get(whole)) is not None and value > total:
            larger.append(f"{name} exceeds {whole}")
    flags += larger
    read, write = counts.get("cached_input") or 0, counts.get("cache_write") or 0
    total = counts.get("input_total")
    if total is not None and read and write and read + write > total and max(read, write) <= total:
        flags.append("cached_input and cache_write exceed input_total")
    if not _LIFETIMES.isdisjoint(counts):
        _fit(counts, write, flags)
    rest |= counts
    return Usage(**rest, inconsistent=tuple(dict.fromkeys(flags)) if flags else ())


def _fit(counts: dict[str, int | None], left: int, flags: list[str]) -> None:
    """Divide no more among the lifetimes than `left`."""
    for name in _LIFETIMES:
        value = counts.get(name)
        if value is not None and value > left:
            counts[name] = left
            flags.append(f"{name} exceeds cache_write")
        left -= counts.get(name) or 0


def calls_of(**counts: int | None) -> Calls:
    """Calls by these names; one that is 0, negative or too large to be true is none."""
    told = {name: count for name, count in counts.items() if count is not None and 0 < count <= MOST_COUNT}
    return Calls(**told) if told else NO_CALLS


def added(one: int | None, other: int | None) -> int | None:
    """The sum of what is known; None where neither is."""
    return other if one is None else one + (other or 0)
