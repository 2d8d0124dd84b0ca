"""Tokens of one exchange in disjoint counters: every token stands in exactly one leaf that a price can name."""

import msgspec


class Usage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Token counts as the upstream reported them; None means that it said nothing, which is not 0.

    `input_total` includes what was read from and written to a prompt cache; `output_total` includes reasoning. The
    parts are subsets of the totals.
    """

    input_total: int | None = None
    cached_input: int | None = None
    cache_write: int | None = None
    cache_write_1h: int | None = None
    """The part of `cache_write` that was written to live for an hour; the rest has the provider's usual life."""
    audio_input: int | None = None
    output_total: int | None = None
    reasoning: int | None = None
    audio_output: int | None = None
    inconsistent: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        """Whether the upstream reported anything at all."""
        return self.input_total is not None or self.output_total is not None


NOTHING = Usage()
"""No report."""
