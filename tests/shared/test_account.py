"""A subject's minute: windows are right over any clock."""

from hypothesis import given
from hypothesis import strategies as st

from headrace.shared.account import Account

EVENTS = st.lists(st.tuples(st.integers(0, 130), st.integers(0, 3), st.integers(0, 9)), max_size=60)


@given(EVENTS)
def test_the_sums_are_those_of_the_last_60_seconds(events: list[tuple[int, int, int]]) -> None:
    account, second = Account(0), 0
    requests: list[int] = []
    tokens: list[tuple[int, int]] = []
    for passed, number, each in events:
        second += passed
        account.advance(second)
        for _ in range(number):
            account.count(each)
            requests.append(second)
            tokens.append((second, each))
        assert account.requests == sum(one > second - 60 for one in requests) == sum(account.request_buckets)
        assert account.tokens == sum(n for one, n in tokens if one > second - 60) == sum(account.token_buckets)


def test_a_second_that_is_not_later_changes_nothing() -> None:
    account = Account(100)
    account.count(5)
    account.advance(100)
    account.advance(90)
    assert (account.second, account.requests, account.tokens) == (100, 1, 5)


def test_what_left_the_minute_is_not_taken_back() -> None:
    account = Account(100)
    account.count(5)
    account.advance(159)
    account.correct(100, -2)
    assert account.tokens == 3
    account.advance(160)
    account.correct(100, -3)
    account.uncount(100)
    assert (account.tokens, account.requests) == (0, 0)
    assert account.idle


def test_room_comes_when_enough_has_left() -> None:
    account = Account(100)
    for second in (100, 110, 110, 120):
        account.advance(second)
        account.count(10)
    assert [account.request_room_in(limit) for limit in (4, 3, 2, 1, 0)] == [40, 50, 50, 60, 60]
    assert account.token_room_in(31) == 40
    assert account.request_second == 120
