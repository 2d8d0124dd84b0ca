"""Which fields pass, by lists: nothing that tells a secret goes up, nothing that tells of an account comes down."""

import pytest

from headrace.http import rules
from headrace.model.headers import MOST_NAMES, Headers
from headrace.model.request import ReplyHead

UP = [
    b"accept", b"content-type", b"user-agent", b"anthropic-version", b"anthropic-beta", b"openai-beta",
    b"x-stainless-lang", b"x-stainless-retry-count", b"idempotency-key", b"traceparent", b"x-goog-api-client",
]  # fmt: skip
NOT_UP = [
    b"authorization", b"x-api-key", b"x-goog-api-key", b"api-key", b"cookie", b"proxy-authorization",
    b"host", b"content-length", b"content-encoding", b"accept-encoding", b"expect", b"connection", b"keep-alive",
    b"te", b"trailer", b"transfer-encoding", b"upgrade", b"proxy-connection",
    b"forwarded", b"via", b"x-forwarded-for", b"x-forwarded-host", b"x-forwarded-proto", b"x-real-ip", b"cf-ray",
    b"openai-organization", b"openai-project", b"sec-fetch-mode", b"origin", b"x-request-id",
]  # fmt: skip
DOWN = [
    b"content-type", b"content-encoding", b"content-length", b"content-disposition", b"retry-after", b"x-should-retry",
    b"openai-processing-ms", b"openai-version", b"openai-model", b"x-codex-plan-type", b"x-models-etag",
    b"x-reasoning-included", b"server-timing",
]  # fmt: skip
NOT_DOWN = [
    b"set-cookie", b"openai-organization", b"authorization", b"x-api-key", b"x-request-id", b"request-id", b"server",
    b"date", b"alt-svc", b"transfer-encoding", b"connection", b"anthropic-organization-id", b"cf-ray", b"via",
    b"access-control-allow-origin", b"strict-transport-security", b"x-goog-api-key",
]  # fmt: skip
LIMITS = [b"x-ratelimit-remaining-requests", b"anthropic-ratelimit-tokens-reset"]


def head(headers: Headers) -> ReplyHead:
    return ReplyHead(200, headers)


def fields(names: list[bytes]) -> Headers:
    return [(name, b"v") for name in names]


def test_upward() -> None:
    assert rules.upward(head(fields([*NOT_UP[:5], *UP, *NOT_UP[5:]]))) == fields(UP)
    twice = [(b"anthropic-beta", b"a"), (b"x", b""), (b"anthropic-beta", b"b")]
    assert rules.upward(head(twice)) == twice, "order and number stay"


@pytest.mark.parametrize("name", NOT_UP)
def test_not_upward(name: bytes) -> None:
    assert rules.upward(head([(name, b"v")])) == []


def test_what_connection_names_is_hop_by_hop() -> None:
    """RFC 9110 section 7.6.1."""
    headers = [(b"connection", b"close, X-Secret"), (b"x-secret", b"1"), (b"x-other", b"2")]
    assert rules.upward(head(headers)) == [(b"x-other", b"2")]
    down = [(b"connection", b"Retry-After"), (b"retry-after", b"1"), (b"content-type", b"x")]
    assert rules.downward(head(down), expose_limits=True) == [(b"content-type", b"x")]


def test_downward() -> None:
    assert rules.downward(head(fields([*NOT_DOWN, *DOWN, *LIMITS])), expose_limits=False) == fields(DOWN)
    assert rules.downward(head(fields([*NOT_DOWN, *DOWN, *LIMITS])), expose_limits=True) == fields([*DOWN, *LIMITS])


@pytest.mark.parametrize("name", [b"x-request-id", b"request-id", b"x-goog-request-id"])
def test_the_upstreams_request_id(name: bytes) -> None:
    assert rules.upstream_request_id(head([(b"x", b"1"), (name, b"abc")])) == b"abc"
    assert rules.upstream_request_id(head([(b"x", b"1")])) == b""


@pytest.mark.parametrize(
    ("value", "length"), [(b"0", 0), (b"17", 17), (b"-1", None), (b"1a", None), (b"", None), (None, None)]
)
def test_content_length(value: bytes | None, length: int | None) -> None:
    headers = [] if value is None else [(b"content-length", value)]
    assert rules.content_length(head(headers)) == length


def test_stream_head() -> None:
    head = rules.stream_head(
        [(b"content-type", b"text/event-stream"), (b"content-length", b"5"), (b"content-encoding", b"br")]
    )
    assert head == [
        (b"content-type", b"text/event-stream"),
        (b"cache-control", b"no-cache, no-transform"),
        (b"x-accel-buffering", b"no"),
    ]
    assert rules.stream_head([])[0] == (b"content-type", b"text/event-stream; charset=utf-8")


def test_who_a_client_is() -> None:
    headers = [(b"authorization", b"secret"), (b"user-agent", b"x"), (b"x-stainless-lang", b"go"), (b"cookie", b"c")]
    assert rules.identity(head(headers)) == [(b"user-agent", b"x"), (b"x-stainless-lang", b"go")]


def test_verdicts_are_kept_and_bounded() -> None:
    asked: list[bytes] = []

    def decide(name: bytes) -> bool:
        asked.append(name)
        return name.startswith(b"y")

    verdicts = rules.Verdicts(decide)
    assert [verdicts[b"yes"], verdicts[b"no"], verdicts[b"yes"]] == [True, False, True]
    assert asked == [b"yes", b"no"]
    for number in range(2000):
        assert verdicts[b"y%d" % number]
    assert len(verdicts) == MOST_NAMES
    assert not verdicts[b"n" * 65] and b"n" * 65 not in verdicts


def test_connection_says_the_same_however_it_is_sent() -> None:
    """Its usual values need no reading; doubled or together with others they are read."""
    for values in ([b"keep-alive"], [b"close"], [b"Keep-Alive"], [b"keep-alive", b"x"], [b"keep-alive, x"]):
        fields = [*((b"connection", value) for value in values), (b"x", b"1"), (b"y", b"2")]
        named = any(b"x" in value for value in values)
        assert rules.upward(head(fields)) == fields[len(values) + named :]
