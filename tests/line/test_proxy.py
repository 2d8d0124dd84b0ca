"""Channels behind a proxy, through the whole line: the same stream, credentials where they belong, honest failures."""

import base64
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from headrace.simulator.recorded import End as UpstreamEnd
from tests.line.certified import Certified, certified
from tests.line.extended import extended
from tests.line.proxied import ProxyThread
from tests.stand.client import End
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand, until
from tests.stand.upstreams import Upstreams
from tests.stand.wire import CHAT, TEXT, chat, error_in, request, texts
from tests.upstream.proxy import answering, silent

PASSWORD = "pass:word"
BASIC = base64.b64encode(f"user:{PASSWORD}".encode())


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return certified(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def secure(certs: Certified) -> Iterator[Upstreams]:
    with Upstreams(1, certs.server) as one:
        yield one


@pytest.fixture(scope="module")
def proxy() -> Iterator[ProxyThread]:
    with ProxyThread() as one:
        yield one


@pytest.fixture(scope="module")
def behind(
    tmp_path_factory: pytest.TempPathFactory, certs: Certified, secure: Upstreams, proxy: ProxyThread
) -> Iterator[Stand]:
    """Channels by a good proxy (plain, TLS, TLS under a name that the certificate has not), and by bad ones."""
    refusals = {
        "unauthorized": answering(b"HTTP/1.1 407 Proxy Authentication Required\r\nproxy-authenticate: Basic\r\n\r\n"),
        "forbidden": answering(b"HTTP/1.1 403 Forbidden\r\n\r\n"),
        "unreachable": answering(b"HTTP/1.1 502 Bad Gateway\r\ncontent-length: 3\r\n\r\nno\n"),
        "closing": answering(b""),
        "silent": silent,
    }
    with ExitStack() as opened:
        config = CONFIG
        for name, answer in refusals.items():
            bad = opened.enter_context(ProxyThread(answer))
            config = extended(
                name,
                "https://upstream.example/v1",
                config,
                then="ch2",
                proxy=f"'{bad.with_credentials('user:x')}'",
                connect="300ms",
            )
        config = extended("gone", "https://upstream.example/v1", config, proxy="'http://user:x@127.0.0.1:9'")
        config = extended(
            "plain", "http://plain.example:81/v1", config, proxy="env:HEADRACE_TEST_PROXY", allow_http="true"
        )
        port = secure[0].port
        config = extended("tls", f"https://localhost:{port}/v1", config, proxy=f"'{proxy.url}'", ca=f"'{certs.ca}'")
        config = extended("other", "https://other.example/v1", config, proxy=f"'{proxy.url}'", ca=f"'{certs.ca}'")
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("HEADRACE_TEST_PROXY", proxy.with_credentials("user:pass%3Aword"))
            stand = opened.enter_context(Stand(tmp_path_factory.mktemp("behind"), config))
        proxy.seen.leads["plain.example:81"] = ("127.0.0.1", stand.ch1.port)
        proxy.seen.leads["other.example:443"] = ("127.0.0.1", port)
        yield stand


def test_a_plain_upstream(behind: Stand, proxy: ProxyThread) -> None:
    """The tunnel is for http too: the proxy never sees a request or a key."""
    model = behind.model("plain", {"events": CHAT})
    reply = behind.ask(chat(model, usage=True))
    assert reply.body == "".join(CHAT).encode()
    call = behind.calls(model)[0]
    assert call.header("host") == "plain.example:81"
    assert call.credential == "sk-plain"
    assert not [name for name, _ in call.headers if name.lower().startswith("proxy-")]
    head = next(head for head in proxy.seen.heads if b"plain.example" in head)
    assert head.startswith(b"CONNECT plain.example:81 HTTP/1.1\r\n")
    assert b"\r\nProxy-Authorization: Basic " + BASIC + b"\r\n" in head
    assert b"sk-plain" not in head


def test_a_tls_upstream(behind: Stand, proxy: ProxyThread, secure: Upstreams) -> None:
    model = behind.model("tls")
    secure[0].scenario(model, {"events": CHAT, "gap": 0.01})
    for _ in range(3):
        assert texts(behind.ask(chat(model)).body) == TEXT
    heads = [head for head in proxy.seen.heads if b" localhost:" in head]
    assert len(heads) == 1, "the tunnel is kept and used again"
    assert b"authorization" not in heads[0].lower()
    entry = behind.entry(model)
    assert (entry.end, entry.attempts[0].channel) == ("completed", "tls")


def test_an_upstream_of_another_name_is_not_trusted(behind: Stand, secure: Upstreams) -> None:
    """The proxy leads to a server whose certificate is good, for another name."""
    model = behind.model("other")
    reply = behind.ask(chat(model))
    assert (reply.status, error_in(reply.body)["code"]) == (502, "upstream_unreachable")
    assert not secure[0].calls(model)


@pytest.mark.parametrize("name", ["unauthorized", "forbidden", "unreachable", "closing", "silent"])
def test_a_proxy_that_opens_no_tunnel_is_a_channel_that_cannot_be_reached(behind: Stand, name: str) -> None:
    model = behind.model(name, {}, {"events": CHAT})
    assert texts(behind.ask(chat(model)).body) == TEXT
    attempts = behind.entry(model).attempts
    assert [one.channel for one in attempts] == [name, "ch2"]
    assert attempts[0].verdict == "upstream_unreachable"
    assert "upstream.example:443 by the proxy 127.0.0.1:" in attempts[0].detail
    assert "user" not in attempts[0].detail
    assert not attempts[0].maybe_executed


def test_a_client_hears_nothing_of_the_proxy(behind: Stand) -> None:
    reply = behind.ask(chat(behind.model("gone")))
    assert (reply.status, error_in(reply.body)["code"]) == (502, "upstream_unreachable")
    for secret in (b"127.0.0.1", b"407", b"proxy", b"user", b"upstream.example"):
        assert secret not in reply.body


def test_a_tunnel_that_breaks_is_an_upstream_that_breaks(behind: Stand) -> None:
    model = behind.model("plain", {"events": CHAT, "cut": {"after_events": 2, "how": "rst"}})
    reply = behind.ask(chat(model))
    assert error_in(reply.body)["code"] == "upstream_interrupted"
    assert reply.end is End.FRAMED
    assert behind.entry(model).end == "interrupted"


def test_a_client_that_leaves_closes_the_tunnel(behind: Stand) -> None:
    model = behind.model("plain", {"text": "word ", "repeat": 2000, "gap": 0.02})
    with behind.connect() as client:
        client.send(request(chat(model)))
        client.read(until=b"word")
    until(lambda: behind.ch1.calls(model)[0].end is UpstreamEnd.CLIENT_CLOSED, "the upstream's end")
    assert behind.entry(model).end == "client_gone"
