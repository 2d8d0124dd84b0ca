"""Whose request it is: every place where a key may stand, and what happens when two do."""

from dataclasses import replace

import pytest

from headrace.admission.authenticate import authenticate, authenticate_for_usage, credentials
from headrace.model.headers import Headers
from headrace.model.key import Former, Key, KeyDigest, KeyState, digest_key, key_digest
from headrace.model.problem import Kind, Problem
from headrace.model.request import RequestHead

UNDER = digest_key(b"s" * 32)
DIGEST = KeyDigest(UNDER)
KEY = Key("dev", key_digest(UNDER, b"sk-1"))
NOW = 1_764_000_000.0


class Keys:
    """A catalogue of one key; says what it was asked."""

    def __init__(self, key: Key = KEY, keys_are_known: bool = True) -> None:
        self.key = key
        self.keys_are_known = keys_are_known
        self.asked: list[bytes] = []

    def find_key(self, digest: bytes) -> Key | None:
        """By digest."""
        self.asked.append(digest)
        return self.key if digest == self.key.digest else None


def head(headers: Headers, query: str = "") -> RequestHead:
    return RequestHead("POST", "/v1/chat/completions", query, headers)


X, G, B = (b"x-api-key", b"sk-1"), (b"x-goog-api-key", b"sk-1"), (b"authorization", b"Bearer sk-1")
OTHER = [(b"x-api-key", b"sk-2"), (b"x-goog-api-key", b"sk-2"), (b"authorization", b"Bearer sk-2")]


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([X], ""),
        ([G], ""),
        ([B], ""),
        ([], "key=sk-1"),
        ([], "alt=sse&key=sk-1&x=y"),
        ([], "key=sk%2D1"),
        ([X, G, B], "key=sk-1"),
        ([B, X], ""),
        ([X, X], ""),
        ([(b"authorization", b"bearer  sk-1 ")], ""),
        ([(b"authorization", b"BEARER sk-1")], ""),
        ([(b"x-api-key", b" sk-1\t")], ""),
        ([(b"authorization", b"Basic eDp5"), X], ""),
        ([(b"authorization", b"Bearer "), X], ""),
        ([(b"x-api-key", b""), B], ""),
        ([B], "key="),
        ([B], "monkey=sk-2&keys=sk-3"),
        ([B, (b"cookie", b"key=sk-2"), (b"proxy-authorization", b"Bearer sk-2")], ""),
    ],
)
def test_a_key_is_found(headers: Headers, query: str) -> None:
    keys = Keys()
    assert authenticate(head(headers, query), keys, DIGEST, NOW) is KEY
    assert keys.asked == [KEY.digest], "only the digest is looked up"


@pytest.mark.parametrize("first", [X, G, B, None])
@pytest.mark.parametrize("second", [*OTHER, None])
def test_two_that_differ(first: tuple[bytes, bytes] | None, second: tuple[bytes, bytes] | None) -> None:
    """401, whatever the order, and nobody is asked which one is right."""
    query = "key=sk-1" if first is None else "key=sk-2" if second is None else ""
    found = [one for one in (first, second) if one is not None]
    if not found:
        query = "key=sk-1&key=sk-2"
    for headers in (found, found[::-1]):
        keys = Keys()
        problem = authenticate(head(headers, query), keys, DIGEST, NOW)
        assert isinstance(problem, Problem)
        assert (problem.kind, problem.http_status, keys.asked) == (Kind.INVALID_API_KEY, 401, [])
        assert "two different" in problem.message


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ([], ""),
        ([(b"authorization", b"Basic eDp5")], ""),
        ([(b"authorization", b"Bearer")], ""),
        ([(b"authorization", b"")], ""),
        ([(b"x-api-key", b"  ")], "key="),
        ([(b"cookie", b"sk-1"), (b"api-key", b"sk-1")], "token=sk-1"),
    ],
)
def test_no_key(headers: Headers, query: str) -> None:
    problem = authenticate(head(headers, query), Keys(), DIGEST, NOW)
    assert isinstance(problem, Problem) and (problem.kind, problem.http_status) == (Kind.MISSING_API_KEY, 401)


@pytest.mark.parametrize("secret", [b"sk-2", b"sk-1x", b"SK-1", b"\xff\x00", KEY.digest, b"' OR 1=1 --"])
def test_an_unknown_key(secret: bytes) -> None:
    problem = authenticate(head([(b"x-api-key", secret)]), Keys(), DIGEST, NOW)
    assert isinstance(problem, Problem) and (problem.kind, problem.http_status) == (Kind.INVALID_API_KEY, 401)
    assert secret.decode("latin-1") not in problem.message + problem.detail


@pytest.mark.parametrize(
    ("key", "kind", "status"),
    [
        (replace(KEY, state=KeyState.DISABLED), Kind.KEY_DISABLED, 403),
        (replace(KEY, state=KeyState.DISABLED, expires=NOW - 1), Kind.KEY_DISABLED, 403),
        (replace(KEY, expires=NOW), Kind.EXPIRED_API_KEY, 401),
        (replace(KEY, expires=NOW - 0.001), Kind.EXPIRED_API_KEY, 401),
    ],
)
def test_a_key_that_does_not_work(key: Key, kind: Kind, status: int) -> None:
    problem = authenticate(head([X]), Keys(key), DIGEST, NOW)
    assert isinstance(problem, Problem) and (problem.kind, problem.http_status) == (kind, status)


def test_a_key_that_cannot_be_checked_is_no_reason_to_drop_it() -> None:
    """Case B116: 503 with a Retry-After, and a known key works all the same."""
    away = Keys(keys_are_known=False)
    problem = authenticate(head([(b"x-api-key", b"sk-of-the-database")]), away, DIGEST, NOW)
    assert isinstance(problem, Problem) and (problem.http_status, problem.retry_after_s) == (503, 5.0)
    assert authenticate(head([X]), away, DIGEST, NOW) is KEY


def test_a_key_that_works_for_a_while() -> None:
    key = replace(KEY, expires=NOW + 0.001)
    assert authenticate(head([X]), Keys(key), DIGEST, NOW) is key


def test_the_order_of_precedence() -> None:
    headers = [B, (b"x-api-key", b"a"), (b"x-goog-api-key", b"b")]
    assert credentials(head(headers, "key=q")) == [b"a", b"b", b"sk-1", b"q"]


@pytest.mark.parametrize("size", [0, 1, 50, 64, 65, 1000])
def test_the_digest_is_an_hmac(size: int) -> None:
    secret = b"k" * size
    assert DIGEST(secret) == DIGEST(secret) == key_digest(UNDER, secret)


# ------------------------------------------------------------------------------------------------ from which address


def answer(peer: str, told: str = "", proxies: tuple[str, ...] = (), **changes: object) -> Key | Problem:
    headers: Headers = [X] + ([(b"x-forwarded-for", told.encode())] if told else [])
    key = replace(KEY, ips=("192.0.2.0/24", "2001:db8::/32"), **changes)  # type: ignore[arg-type]
    return authenticate(RequestHead("POST", "/v1/x", "", headers, peer=peer), Keys(key), DIGEST, NOW, proxies)


@pytest.mark.parametrize("peer", ["192.0.2.9", "::ffff:192.0.2.9", "2001:db8::9"])
def test_a_key_may_be_used_from_its_networks(peer: str) -> None:
    assert isinstance(answer(peer), Key)


@pytest.mark.parametrize("peer", ["192.0.3.9", "::1", ""])
def test_a_key_may_not_be_used_from_elsewhere(peer: str) -> None:
    found = answer(peer, told="192.0.2.9")
    assert isinstance(found, Problem)
    assert found.kind is Kind.KEY_DISABLED
    assert "address" in found.message


def test_behind_a_trusted_proxy_the_clients_address_counts() -> None:
    assert isinstance(answer("10.0.0.1", "192.0.2.9", ("10.0.0.0/8",)), Key)
    assert isinstance(answer("", "192.0.2.9", ("unix",)), Key)
    assert isinstance(answer("10.0.0.1", "192.0.2.9, 198.51.100.1", ("10.0.0.0/8",)), Problem)
    assert isinstance(answer("192.0.2.1", "198.51.100.1", ("192.0.2.1/32",)), Problem)


def test_a_disabled_key_says_nothing_of_addresses() -> None:
    found = answer("::1", state=KeyState.DISABLED)
    assert isinstance(found, Problem)
    assert "switched off" in found.message


def test_an_expired_key_may_ask_how_it_stands_but_no_replaced_secret() -> None:
    expired = replace(KEY, expires=NOW - 1)
    asked = head([X])
    assert isinstance(authenticate(asked, Keys(expired), DIGEST, NOW), Problem)
    assert authenticate_for_usage(asked, Keys(expired), DIGEST, NOW) == expired
    for until, found in ((NOW + 1, True), (NOW, False)):
        former = replace(KEY, digest=b"new").by_former(Former(KEY.digest, until))
        told = authenticate_for_usage(asked, Keys(former), DIGEST, NOW)
        assert isinstance(told, Key) is found
    assert isinstance(told, Problem) and told.kind is Kind.EXPIRED_API_KEY
