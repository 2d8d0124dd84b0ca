"""Whether anything is limited, and how money is told."""

from headrace.model.limits import NANO, NO_LIMITS, Limits, decimal_text


def test_what_is_limited() -> None:
    assert not NO_LIMITS.limited
    assert not Limits(wait=1.0).limited
    assert all(one.limited for one in (Limits(1), Limits(tokens_per_minute=1), Limits(concurrent=1)))


def test_billionths_are_told_to_the_last_digit() -> None:
    told = [decimal_text(nano) for nano in (0, 1, NANO, 1_250_000_000, 100 * NANO, 123_456_789_123_456_789)]
    assert told == ["0", "0.000000001", "1", "1.25", "100", "123456789.123456789"]
