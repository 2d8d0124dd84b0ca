"""What an estimate of tokens is made from: counts over text, and ratios that were fitted to reports of upstreams."""

import msgspec


class TextCount(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Counts over a request's or an answer's text; nothing of the text itself.

    Each is the same however the text came in pieces; but `events`.
    """

    events: int = 0
    """Pieces that it came in, or messages that it has."""
    ascii_bytes: int = 0
    other_bytes: int = 0
    """Bytes of characters that are not ASCII."""
    other_chars: int = 0
    """Those characters."""
    words: int = 0
    """Runs of ASCII letters."""
    marks: int = 0
    """Runs of ASCII punctuation, and each CJK or full-width mark."""
    digits: int = 0
    """ASCII digits."""
    media_tokens: int = 0
    """What inline media count for, by the documented constant of each kind."""

    @property
    def empty(self) -> bool:
        """Whether there is nothing of any kind."""
        return not (self.events or self.ascii_bytes or self.other_bytes or self.media_tokens)


NO_TEXT = TextCount()


class Ratios(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens for each thing counted: tokens = their sum over the counts, plus `fixed`. None is negative, so more text
    never means fewer tokens."""

    fixed: float = 0.0
    event: float = 0.0
    ascii_byte: float = 0.0
    word: float = 0.0
    mark: float = 0.0
    digit: float = 0.0
    other_char: float = 0.0
    """Of a character that is not ASCII, for its first two bytes."""
    wide_byte: float = 0.0
    """For each byte that such a character has beyond two: one in Chinese, Japanese and Korean, two in emoji."""


class Learned(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What completed entries taught of one model. None: too few of them yet; then the constants hold."""

    input: Ratios | None = None
    output: Ratios | None = None
    output_p95: int | None = None
    """95 of 100 answers had no more output tokens (from 20 entries on)."""
    cached_shares: dict[str, float] = {}
    """By a key's name: which part of its input was read from a cache, 0 to 1. A key without one has read nothing."""


def quantities(count: TextCount) -> tuple[float, ...]:
    """What the ratios of `weights` are multiplied with, in their order."""
    return (
        1.0,
        count.events,
        count.ascii_bytes,
        count.words,
        count.marks,
        count.digits,
        count.other_chars,
        max(count.other_bytes - 2 * count.other_chars, 0),
    )


def weights(ratios: Ratios) -> tuple[float, ...]:
    """The ratios in their order; `Ratios` of them is `ratios_from`."""
    values: tuple[float, ...] = msgspec.structs.astuple(ratios)
    return values


def ratios_from(values: tuple[float, ...]) -> Ratios:
    """The other way round."""
    return Ratios(**dict(zip(Ratios.__struct_fields__, values, strict=True)))
