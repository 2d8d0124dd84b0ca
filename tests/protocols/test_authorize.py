"""Exactly one credential goes up, in the channel's form; none of the client's does."""

from dataclasses import replace

import pytest

from headrace.model.channel import Auth, AuthForm, BaseUrl, Channel, Credential
from headrace.model.headers import Headers
from headrace.model.request import RequestHead, UpstreamRequest
from headrace.model.wire import WireProtocol
from headrace.protocols.authorize import authorize, outgoing, presentation

SECRET = Credential("main", "sk up&stream")
CHANNEL = Channel("a", BaseUrl("https", "a.example", 443, ""), frozenset(WireProtocol), (SECRET,))
CLIENT: Headers = [
    (b"authorization", b"Bearer client"),
    (b"x-api-key", b"client"),
    (b"x-goog-api-key", b"client"),
    (b"api-key", b"client"),
    (b"cookie", b"client"),
    (b"accept-encoding", b"gzip"),
    (b"user-agent", b"x"),
]


def client(headers: Headers) -> RequestHead:
    return RequestHead("POST", "/p", "", headers)


@pytest.mark.parametrize(
    ("auth", "protocol", "expected"),
    [
        (Auth(), WireProtocol.CHAT, ([(b"authorization", b"Bearer sk up&stream")], "")),
        (Auth(), WireProtocol.EMBEDDINGS, ([(b"authorization", b"Bearer sk up&stream")], "")),
        (Auth(), WireProtocol.MESSAGES, ([(b"x-api-key", b"sk up&stream")], "")),
        (Auth(), WireProtocol.GEMINI, ([(b"x-goog-api-key", b"sk up&stream")], "")),
        (Auth(AuthForm.BEARER), WireProtocol.MESSAGES, ([(b"authorization", b"Bearer sk up&stream")], "")),
        (Auth(AuthForm.HEADER, "Api-Key"), WireProtocol.CHAT, ([(b"api-key", b"sk up&stream")], "")),
        (Auth(AuthForm.QUERY, "k y"), WireProtocol.CHAT, ([], "k%20y=sk%20up%26stream")),
    ],
)
def test_the_channels_form(auth: Auth, protocol: WireProtocol, expected: tuple[Headers, str]) -> None:
    channel = replace(CHANNEL, auth=auth)
    assert authorize(channel, SECRET, protocol) == expected
    request = outgoing(
        UpstreamRequest("POST", "/p", "", [], ()), client(CLIENT), presentation(channel, SECRET, protocol)
    )
    assert not any(b"client" in value for _, value in request.headers)
    carriers = [value for _, value in request.headers if b"sk up&stream" in value]
    assert len(carriers) + request.query.count("sk%20up%26stream") == 1


def test_what_goes_up() -> None:
    channel = replace(CHANNEL, headers=(("X-Own", "é"),), query=(("api-version", "1"),))
    request = UpstreamRequest("POST", "/p", "beta=true&api-version=0", [(b"x-protocol", b"1")], (b"{}",))
    fields = client([(b"user-agent", b"x"), (b"authorization", b"Bearer c")])
    sent = outgoing(request, fields, presentation(channel, SECRET, WireProtocol.CHAT))
    assert sent.headers == [
        (b"user-agent", b"x"),
        (b"x-protocol", b"1"),
        (b"x-own", "é".encode()),
        (b"accept-encoding", b"identity"),
        (b"authorization", b"Bearer sk up&stream"),
    ]
    assert sent.query == "beta=true&api-version=1", "the channel's own field replaces the client's"
    assert (sent.method, sent.path, sent.body) == ("POST", "/p", (b"{}",))


def test_no_query_of_its_own() -> None:
    request = UpstreamRequest("POST", "/p", "beta=true", [], ())
    assert outgoing(request, client([]), presentation(CHANNEL, SECRET, WireProtocol.CHAT)).query == "beta=true"


def test_the_clients_field_gives_way_to_the_credentials() -> None:
    """Also one that would go up otherwise, and one without a value."""
    channel = replace(CHANNEL, auth=Auth(AuthForm.HEADER, "X-Gate"))
    request = UpstreamRequest("POST", "/p", "", [], ())
    made = presentation(channel, SECRET, WireProtocol.CHAT)
    sent = outgoing(request, client([(b"x-gate", b"client"), (b"x-gate", b""), (b"x-other", b"1")]), made)
    assert [field for field in sent.headers if field[0].startswith(b"x-")] == [
        (b"x-other", b"1"),
        (b"x-gate", b"sk up&stream"),
    ]


def test_a_presentation_does_not_show_its_secret() -> None:
    assert "sk up" not in repr(presentation(CHANNEL, SECRET, WireProtocol.CHAT))


def test_the_clients_field_gives_way_to_the_channels_of_that_name() -> None:
    """But for anthropic-beta, a list: what the channel switches on comes behind the client's."""
    channel = replace(CHANNEL, headers=(("Anthropic-Version", "own"), ("anthropic-beta", "c"), ("user-agent", "gw")))
    fields: Headers = [
        (b"anthropic-version", b"client"), (b"anthropic-beta", b"a"), (b"user-agent", b"x"), (b"anthropic-beta", b"b")
    ]  # fmt: skip
    made = presentation(channel, SECRET, WireProtocol.MESSAGES)
    request = UpstreamRequest("POST", "/p", "", [], ())
    assert outgoing(request, client(fields), made).headers == [
        (b"anthropic-version", b"own"),
        (b"user-agent", b"gw"),
        (b"accept-encoding", b"identity"),
        (b"x-api-key", b"sk up&stream"),
        (b"anthropic-beta", b"a,b,c"),
    ]
    assert (b"anthropic-beta", b"c") in outgoing(request, client([]), made).headers
