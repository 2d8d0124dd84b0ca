"""Tokens of one exchange in disjoint counters: every token stands in exactly one leaf that a price can name."""

from typing import NamedTuple

import msgspec


class Calls(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the provider did on the way and charges by the call; None where it said nothing."""

    web_search: int | None = None
    web_fetch: int | None = None
    grounding: int | None = None
    image_generation: int | None = None
    code_execution: int | None = None
    file_search: int | None = None


NO_CALLS = Calls()


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Token counts as the upstream reported them; None means that it said nothing, which is not 0.

    `input_total` includes what was read from and written to a prompt cache, and what tools' results took;
    `output_total` includes reasoning. The parts are subsets of the totals; `leaves` has them apart.
    """

    input_total: int | None = None
    cached_input: int | None = None
    cache_write: int | None = None
    """All that was written to a cache; what no lifetime below names has one that was not said."""
    cache_write_5m: int | None = None
    cache_write_30m: int | None = None
    cache_write_1h: int | None = None
    cache_write_12h: int | None = None
    tool_input: int | None = None
    """The part of the input that tools' results took, where the upstream counts it apart."""
    audio_input: int | None = None
    image_input: int | None = None
    video_input: int | None = None
    document_input: int | None = None
    output_total: int | None = None
    reasoning: int | None = None
    audio_output: int | None = None
    image_output: int | None = None
    accepted_prediction: int | None = None
    rejected_prediction: int | None = None
    calls: Calls = NO_CALLS
    extra: tuple["ExtraUsage", ...] = ()
    """What other models used on the way; it stands in no count above."""
    tier: str = ""
    """The service tier that served it, in the upstream's word."""
    speed: str = ""
    geo: str = ""
    inconsistent: tuple[str, ...] = ()
    """What in the report cannot be: a sentence each."""

    @property
    def known(self) -> bool:
        """Whether the upstream reported anything at all."""
        return self.input_total is not None or self.output_total is not None

    def leaves(self) -> "Leaves":
        """The counts apart; what was not said is 0, and no leaf is negative."""
        read, write = self.cached_input or 0, self.cache_write or 0
        uncached = (self.input_total or 0) - read - write
        reasoning = self.reasoning or 0
        visible = (self.output_total or 0) - reasoning
        by_life = (
            self.cache_write_5m or 0,
            self.cache_write_30m or 0,
            self.cache_write_1h or 0,
            self.cache_write_12h or 0,
        )
        unspecified = write - sum(by_life) if write else 0
        # By position, and without `max`: every settlement asks, and this is 0.7 µs and not 1.5.
        return Leaves(
            uncached if uncached > 0 else 0,
            read,
            unspecified if unspecified > 0 else 0,
            *by_life,
            visible if visible > 0 else 0,
            reasoning,
        )


class ExtraUsage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What another model used within the same answer."""

    kind: str
    """compaction, advisor, fallback, image_generation, svg, continuation or steer."""
    model: str
    usage: Usage


class Leaves(NamedTuple):
    """Disjoint counts of tokens: each token of input and output stands in exactly one."""

    uncached: int
    cache_read: int
    cache_write_unspecified: int
    cache_write_5m: int
    cache_write_30m: int
    cache_write_1h: int
    cache_write_12h: int
    visible: int
    reasoning: int


NOTHING = Usage()
"""No report."""
