"""What is claimed, in which words a denial is told, and which headers say what is left."""

import pytest

from headrace.admission.limits import claims, multiplier, refusal, room_behind, room_headers
from headrace.model.allowance import Denial, Limit, Room, allowances, window_start
from headrace.model.key import Key
from headrace.model.limits import NANO, Budget, Limits, Window
from headrace.model.owner import Owner
from headrace.model.problem import Kind
from headrace.model.wire import Dialect

AT = 1_796_000_000.0  # 2026-11-30T00:53:20Z
MIDNIGHT = "2026-12-01T00:00:00Z"
EVERYTHING = Limits(requests_per_minute=5, tokens_per_minute=100, concurrent=2)
KEY = Key("k", b"d", owner="team", limits=EVERYTHING, budget=Budget(NANO, Window.DAY))
OWNER = Owner("team", EVERYTHING, Budget(2 * NANO, Window.TOTAL))


def test_only_what_limits_anything_is_asked() -> None:
    assert allowances(Key("k", b"d"), None) == ()
    assert allowances(Key("k", b"d"), Owner("team")) == ()
    assert [one.subject for one in allowances(KEY, None)] == ["key:k"]
    assert [one.subject for one in allowances(KEY, OWNER)] == ["key:k", "owner:team"]
    assert [one.subject for one in allowances(Key("k", b"d"), OWNER)] == ["owner:team"]


def test_claims_have_their_windows_from_the_beginning() -> None:
    key, owner = claims(allowances(KEY, OWNER), AT, tokens=7, hold=9)
    assert (key.tokens, key.hold, key.window) == (7, 9, window_start(Window.DAY, AT))
    assert (owner.tokens, owner.hold, owner.window) == (7, 9, 0)
    (unpaid,) = claims(allowances(Key("k", b"d", limits=EVERYTHING), None), AT, tokens=7, hold=9)
    assert (unpaid.budget, unpaid.hold, unpaid.purse) == (None, 0, "")


@pytest.mark.parametrize(
    ("of_key", "of_owner", "both"),
    [(NANO, None, NANO), (3 * NANO // 2, 2 * NANO, 3 * NANO), (1, NANO // 2, 1), (0, 5 * NANO, 0), (NANO, 7, 7)],
)
def test_factors_are_multiplied(of_key: int, of_owner: int | None, both: int) -> None:
    owner = Owner("team", multiplier=of_owner) if of_owner is not None else None
    assert multiplier(Key("k", b"d", multiplier=of_key), owner) == both


@pytest.mark.parametrize(
    ("limit", "subject", "kind", "words"),
    [
        (Limit.REQUESTS, "key:k", Kind.RATE_LIMIT_EXCEEDED, "5 requests per minute of this API key"),
        (Limit.TOKENS, "owner:team", Kind.RATE_LIMIT_EXCEEDED, "100 tokens per minute of the owner of this API key"),
        (Limit.CONCURRENT, "key:k", Kind.CONCURRENCY_LIMIT_EXCEEDED, "2 requests of this API key run already"),
        (Limit.BUDGET, "key:k", Kind.INSUFFICIENT_QUOTA, f"whole again at {MIDNIGHT}"),
        (
            Limit.BUDGET,
            "owner:team",
            Kind.INSUFFICIENT_QUOTA,
            "the owner of this API key is spent, or held",
        ),
        (Limit.UNKNOWN, "key:k", Kind.OVERLOADED, "cannot be checked now"),
    ],
)
def test_a_denial_says_whose_it_is_and_what_to_do(limit: Limit, subject: str, kind: Kind, words: str) -> None:
    asked = claims(allowances(KEY, OWNER), AT, 1, 1)
    problem = refusal(Denial(limit, subject, 12.5), asked)
    assert problem.kind is kind and words in problem.message
    assert problem.retry_after_s == (None if limit is Limit.BUDGET else 12.5)


@pytest.mark.parametrize(("told", "sent"), [(None, 1.0), (0.01, 1.0), (59.5, 59.5), (600.0, 60.0)])
def test_the_wait_is_1_to_60_seconds(told: float | None, sent: float) -> None:
    asked = claims(allowances(KEY, None), AT, 1, 1)
    assert refusal(Denial(Limit.REQUESTS, "key:k", told), asked).retry_after_s == sent


def test_a_budget_may_ask_for_429_which_must_not_be_retried() -> None:
    key = Key("k", b"d", budget=Budget(0, status=429))
    problem = refusal(Denial(Limit.BUDGET, "key:k"), claims(allowances(key, None), AT, 1, 1))
    assert (problem.http_status, problem.should_retry) == (429, False)
    assert "it is 0" in problem.message


def test_headers_in_the_words_of_the_dialect() -> None:
    room = Room(requests_left=3, requests_reset_s=11.2, tokens_left=-4, tokens_reset_s=0.0)
    assert room_headers(Dialect.OPENAI, EVERYTHING, room, AT) == [
        (b"x-ratelimit-limit-requests", b"5"),
        (b"x-ratelimit-remaining-requests", b"3"),
        (b"x-ratelimit-reset-requests", b"12s"),
        (b"x-ratelimit-limit-tokens", b"100"),
        (b"x-ratelimit-remaining-tokens", b"0"),
        (b"x-ratelimit-reset-tokens", b"0s"),
    ]
    assert room_headers(Dialect.ANTHROPIC, EVERYTHING, room, AT)[:3] == [
        (b"anthropic-ratelimit-requests-limit", b"5"),
        (b"anthropic-ratelimit-requests-remaining", b"3"),
        (b"anthropic-ratelimit-requests-reset", b"2026-11-30T00:53:32Z"),
    ]
    assert room_headers(Dialect.OPENAI, Limits(concurrent=1), Room(None, 0.0, None, 0.0), AT) == []


def test_a_budget_that_is_only_held_is_not_called_spent() -> None:
    problem = refusal(Denial(Limit.BUDGET, "key:k"), claims(allowances(KEY, None), AT, 1, 1))
    assert "held by requests that run" in problem.message and MIDNIGHT not in problem.message


def test_a_denial_leaves_no_room_in_what_it_is_for() -> None:
    limits = Limits(requests_per_minute=5, tokens_per_minute=100)
    room = room_behind(Denial(Limit.TOKENS, "key:k", 7.5))
    assert room_headers(Dialect.OPENAI, limits, room, AT) == [
        (b"x-ratelimit-limit-tokens", b"100"),
        (b"x-ratelimit-remaining-tokens", b"0"),
        (b"x-ratelimit-reset-tokens", b"8s"),
    ]
