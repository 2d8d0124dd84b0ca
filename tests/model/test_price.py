"""Which of several prices counts."""

from headrace.model.price import Price, Rates, price_at

ALWAYS, NEW_YEAR, SPRING = (Price(Rates(input=n), since=at) for n, at in ((1, None), (2, 100.0), (3, 200.0)))


def test_the_latest_that_has_begun_counts() -> None:
    prices = (ALWAYS, NEW_YEAR, SPRING)
    assert [price_at(prices, at) for at in (0.0, 99.9, 100.0, 199.9, 200.0, 1e9)] == [
        ALWAYS, ALWAYS, NEW_YEAR, NEW_YEAR, SPRING, SPRING,
    ]  # fmt: skip


def test_before_the_first_there_is_none() -> None:
    assert price_at((NEW_YEAR, SPRING), 99.0) is None
    assert price_at((), 1.0) is None
