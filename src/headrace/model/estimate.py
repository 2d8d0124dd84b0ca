"""What an estimate of tokens is made from: counts over text, and ratios that were fitted to reports of upstreams."""

import msgspec


class TextCount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts over a request's or an answer's text; nothing of the text itself."""

    events: int = 0
    """Pieces that it came in, or messages that it has."""
    ascii_bytes: int = 0
    other_bytes: int = 0
    """Bytes of characters that are not ASCII."""
    words: int = 0
    """Runs of characters without white space, as `str.split` sees them, where they are counted."""
    media_tokens: int = 0
    """What inline media count for, by the documented constant of each kind."""


NO_TEXT = TextCount()


class Ratios(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens for each event, byte and word; tokens = the sum over the counts, plus `fixed`."""

    fixed: float = 0.0
    event: float = 0.0
    ascii_byte: float = 0.0
    other_byte: float = 0.0
    word: float = 0.0


class Learned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What completed entries taught of one model. None: too few of them yet; then the constants hold."""

    input: Ratios | None = None
    output: Ratios | None = None
    output_p95: int | None = None
    """95 of 100 answers had no more output tokens (from 20 entries on)."""
