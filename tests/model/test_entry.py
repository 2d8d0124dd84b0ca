"""Times of an entry, to 0.1 ms."""

import random

from headrace.model.entry import seconds_since


def test_seconds_are_rounded_as_by_round() -> None:
    assert seconds_since(10.0, 10.0) == 0.0
    assert seconds_since(10.0, 11.25) == 1.25
    chance = random.Random(1)
    for _ in range(10_000):
        began = chance.uniform(0, 1e6)
        at = began + chance.uniform(0, 4000)
        # A half may go either way.
        assert abs(seconds_since(began, at) - (at - began)) <= 0.5001e-4
        assert seconds_since(began, at) == round(seconds_since(began, at), 4)
