"""What is said to pages of other origins, and what is not."""

import pytest

from headrace.http.cors import is_preflight, preflight, reply_headers
from headrace.model.headers import Headers
from headrace.model.request import RequestHead

APP = b"https://app.example:3000"
ORIGINS = ("https://app.example:3000", "http://localhost:5173")


def head(method: str, *fields: tuple[bytes, bytes]) -> RequestHead:
    """A request's head."""
    return RequestHead(method, "/v1/chat/completions", "", list(fields))


def asked(origin: bytes, headers: bytes = b"authorization, content-type") -> RequestHead:
    """A preflight."""
    return head(
        "OPTIONS",
        (b"origin", origin),
        (b"access-control-request-method", b"POST"),
        (b"access-control-request-headers", headers),
    )


def test_a_preflight_is_an_options_request_that_names_a_method() -> None:
    assert is_preflight(asked(APP))
    assert not is_preflight(head("OPTIONS", (b"origin", APP)))
    assert not is_preflight(head("POST", (b"origin", APP), (b"access-control-request-method", b"POST")))


def test_a_listed_origin_is_permitted() -> None:
    reply = preflight(asked(APP), ORIGINS)
    said = dict(reply.headers)
    assert (reply.status, reply.body) == (204, b"")
    assert said[b"access-control-allow-origin"] == APP
    assert b"POST" in said[b"access-control-allow-methods"]
    assert b"access-control-allow-credentials" not in said


@pytest.mark.parametrize("origin", [b"https://evil.example", b"null", b"https://app.example", b"\xff"])
@pytest.mark.parametrize("origins", [(), ORIGINS])
def test_another_origin_hears_nothing(origin: bytes, origins: tuple[str, ...]) -> None:
    said = dict(preflight(asked(origin), origins).headers)
    assert not [name for name in said if name.startswith(b"access-control-")]
    assert not [name for name, _ in reply_headers(head("POST", (b"origin", origin)), origins) if name != b"vary"]


def test_only_known_headers_are_granted() -> None:
    wanted = b"Authorization, x-api-key, content-type, anthropic-version, openai-beta, x-stainless-lang, cookie, x-evil"
    granted = dict(preflight(asked(APP, wanted), ORIGINS).headers)[b"access-control-allow-headers"]
    assert granted.split(b", ") == [
        b"authorization",
        b"x-api-key",
        b"content-type",
        b"anthropic-version",
        b"openai-beta",
        b"x-stainless-lang",
    ]


def test_a_preflight_without_headers_or_origin() -> None:
    bare = head("OPTIONS", (b"origin", APP), (b"access-control-request-method", b"GET"))
    assert b"access-control-allow-headers" not in dict(preflight(bare, ORIGINS).headers)
    assert dict(preflight(head("OPTIONS"), ORIGINS).headers).keys() == {b"vary"}


def test_replies_name_the_origin_and_what_a_page_may_read() -> None:
    said: Headers = reply_headers(head("POST", (b"origin", APP)), ORIGINS)
    assert (b"access-control-allow-origin", APP) in said
    assert b"x-request-id" in dict(said)[b"access-control-expose-headers"]
    assert b"retry-after" in dict(said)[b"access-control-expose-headers"]
    assert (b"vary", b"origin") in said


def test_a_star_lists_all_and_nothing_lists_none() -> None:
    assert (b"access-control-allow-origin", b"https://any.example") in reply_headers(
        head("POST", (b"origin", b"https://any.example")), ("*",)
    )
    assert reply_headers(head("POST", (b"origin", APP)), ()) == []
    assert reply_headers(head("POST"), ORIGINS) == [(b"vary", b"origin")]


def test_a_key_narrows() -> None:
    request = head("POST", (b"origin", APP))
    assert len(reply_headers(request, ORIGINS, ("https://app.example:3000",))) == 3
    assert reply_headers(request, ORIGINS, ("http://localhost:5173",)) == [(b"vary", b"origin")]
    assert len(reply_headers(request, ("*",), ("*",))) == 3


def test_no_field_is_said_twice() -> None:
    """Browsers refuse a reply that names two origins."""
    for headers in (preflight(asked(APP), ORIGINS).headers, reply_headers(head("POST", (b"origin", APP)), ORIGINS)):
        names = [name for name, _ in headers]
        assert len(names) == len(set(names))
