"""Whether anything is limited."""

from headrace.model.limits import NO_LIMITS, Limits


def test_what_is_limited() -> None:
    assert not NO_LIMITS.limited
    assert not Limits(wait=1.0).limited
    assert all(one.limited for one in (Limits(1), Limits(tokens_per_minute=1), Limits(concurrent=1)))
