"""Exactly one credential goes up, in the channel's form; none of the client's does."""

from dataclasses import replace

import pytest

from headrace.model.channel import Auth, AuthForm, BaseUrl, Channel, Credential
from headrace.model.headers import Headers
from headrace.model.request import UpstreamRequest
from headrace.model.wire import WireProtocol
from headrace.protocols.authorize import authorize, outgoing

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
    request = outgoing(UpstreamRequest("POST", "/p", "", [], ()), CLIENT, channel, SECRET, protocol)
    assert not any(b"client" in value for _, value in request.headers)
    carriers = [value for _, value in request.headers if b"sk up&stream" in value]
    assert len(carriers) + request.query.count("sk%20up%26stream") == 1


def test_what_goes_up() -> None:
    channel = replace(CHANNEL, headers=(("X-Own", "é"),), query=(("api-version", "1"),))
    request = UpstreamRequest("POST", "/p", "beta=true&api-version=0", [(b"x-protocol", b"1")], (b"{}",))
    sent = outgoing(
        request, [(b"user-agent", b"x"), (b"authorization", b"Bearer c")], channel, SECRET, WireProtocol.CHAT
    )
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
    assert outgoing(request, [], CHANNEL, SECRET, WireProtocol.CHAT).query == "beta=true"
