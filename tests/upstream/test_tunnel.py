"""Connections by a proxy: what it is asked, what it may answer, and who is trusted behind it."""

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from headrace.model.channel import Channel, Proxy
from headrace.model.problem import Kind, Problem
from headrace.model.request import ReplyHead
from headrace.upstream import connect as connect_module
from headrace.upstream.connect import Tls
from tests.upstream.conftest import Certificates
from tests.upstream.proxy import Answer, Connections, answering, proxying, silent
from tests.upstream.wire import answering as serve_answering
from tests.upstream.wire import channel, chunked, exchange, post, reply, run, serving, until, upstream

OK = serve_answering(reply(b"ok"))
CREDENTIALS = "Basic dXNlcjpwYXNz"


def by(proxy: Connections, port: int, **changes: Any) -> Channel:
    """A channel to an upstream at `port` by `proxy`."""
    authorization = changes.pop("authorization", "")
    return channel(port, proxy=Proxy("127.0.0.1", proxy.port, authorization), **changes)


def detail(outcome: ReplyHead | Problem) -> str:
    assert isinstance(outcome, Problem) and outcome.kind is Kind.UPSTREAM_UNREACHABLE, outcome
    assert CREDENTIALS not in outcome.detail
    return outcome.detail


def test_the_proxy_is_asked_for_a_tunnel_and_sees_no_more() -> None:
    async def main() -> None:
        async with serving(OK) as server, proxying() as proxy, upstream() as stage:
            there = by(proxy, 81, host="upstream.example", authorization=CREDENTIALS)
            proxy.leads["upstream.example:81"] = ("127.0.0.1", server.port)
            _, body, _ = await exchange(stage.attempt(there, post(b"{}")))
            assert body == b"ok"
            assert proxy.heads == [
                b"CONNECT upstream.example:81 HTTP/1.1\r\nHost: upstream.example:81\r\n"
                b"Proxy-Authorization: " + CREDENTIALS.encode() + b"\r\n\r\n"
            ]

    run(main())


def test_without_credentials_none_are_sent() -> None:
    async def main() -> None:
        async with serving(OK) as server, proxying() as proxy, upstream() as stage:
            await exchange(stage.attempt(by(proxy, server.port), post(b"{}")))
            assert b"authorization" not in proxy.heads[0].lower()

    run(main())


@pytest.mark.parametrize("tls", Tls)
def test_tls_in_the_tunnel_is_the_upstreams(certificates: Certificates, tls: Tls) -> None:
    body = [b"a" * 1000, b"b" * 100_000, b"c"]

    async def main() -> None:
        serve = serve_answering(chunked(*body))
        async with serving(serve, certificates.server) as server, proxying() as proxy, upstream(tls) as stage:
            proxy.leads["localhost:443"] = ("127.0.0.1", server.port)
            there = by(proxy, 443, scheme="https", host="localhost", ca=certificates.ca)
            for _ in range(2):
                _, data, _ = await exchange(stage.attempt(there, post(b"{}" * 100_000)))
                assert data == b"".join(body)
            assert len(proxy.heads) == 1, "the tunnel is kept and used again"

    run(main())


@pytest.mark.parametrize("tls", Tls)
def test_another_upstream_in_the_tunnel_is_found_out(certificates: Certificates, tls: Tls) -> None:
    """The proxy leads to a server whose certificate is good, for another name."""

    async def main() -> None:
        async with serving(OK, certificates.server) as server, proxying() as proxy, upstream(tls) as stage:
            proxy.leads["api.example:443"] = ("127.0.0.1", server.port)
            there = by(proxy, 443, scheme="https", host="api.example", ca=certificates.ca)
            said = detail(await stage.attempt(there, post(b"{}")).reply())
            assert "TLS" in said and "api.example:443 by the proxy 127.0.0.1:" in said

    run(main())


REFUSALS: dict[str, tuple[Answer, str]] = {
    "407": (answering(b"HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n"), "407 Proxy Auth"),
    "403": (answering(b"HTTP/1.1 403 Forbidden\r\n\r\n<html>"), "the proxy refused: it answered CONNECT with 403 Forb"),
    "502": (answering(b"HTTP/1.0 502 Bad Gateway\n\n"), "with 502 Bad Gateway"),
    "a phrase that is none": (answering(b"HTTP/1.1 500\r\n\r\n"), "with 500"),
    "a phrase to break lines with": (answering(b"HTTP/1.1 500 a\x1b[31m\xff" + b"x" * 500 + b"\r\n\r\n"), "500 a[31mx"),
    "a redirection": (answering(b"HTTP/1.1 302 Found\r\nlocation: http://evil/\r\n\r\n"), "with 302 Found"),
    "no HTTP": (answering(b"SSH-2.0-x\r\n\r\n"), "does not speak HTTP"),
    "too much": (answering(b"HTTP/1.1 200 OK\r\nx: " + b"y" * 40_000 + b"\r\n\r\n"), "too large"),
    "interim for ever": (answering(b"HTTP/1.1 103 x\r\n\r\n" * 4000), "the proxy closed the connection"),
    "a byte too many": (answering(b"HTTP/1.1 200 OK\r\n\r\nx", tunnel=True), "more than its answer"),
    "nothing": (answering(b""), "the proxy closed the connection before it answered"),
    "half a head": (answering(b"HTTP/1.1 200 OK\r\n"), "the proxy closed the connection before it answered"),
    "silence": (silent, "no connection within 0.2 s"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_a_proxy_that_opens_no_tunnel(name: str) -> None:
    answer, says = REFUSALS[name]

    async def main() -> None:
        async with proxying(answer) as proxy, upstream() as stage:
            there = by(proxy, 80, host="upstream.example", connect=0.2, authorization=CREDENTIALS)
            said = detail(await stage.attempt(there, post(b"{}")).reply())
            assert said.startswith(f"upstream.example:80 by the proxy 127.0.0.1:{proxy.port}: ")
            assert says in said and len(said) < 300
            assert said.isprintable()
            assert stage.pool.open_connections == 0

    run(main())


def test_an_interim_answer_is_passed_over() -> None:
    async def main() -> None:
        answer = answering(b"HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\nHTTP/1.1 200\r\nvia: p\r\n\r\n", tunnel=True)
        async with serving(OK) as server, proxying(answer) as proxy, upstream() as stage:
            _, body, _ = await exchange(stage.attempt(by(proxy, server.port), post(b"{}")))
            assert body == b"ok"

    run(main())


def test_a_proxy_that_is_not_there() -> None:
    async def main() -> None:
        async with upstream() as stage:
            there = channel(80, host="upstream.example", proxy=Proxy("127.0.0.1", 9))
            said = detail(await stage.attempt(there, post(b"{}")).reply())
            assert said == "upstream.example:80 by the proxy 127.0.0.1:9: Connection refused"

    run(main())


def test_connections_by_different_proxies_do_not_mix() -> None:
    async def main() -> None:
        async with serving(OK) as server, proxying() as one, proxying() as two, upstream() as stage:
            direct = channel(server.port)
            for there in (by(one, server.port), by(two, server.port), direct) * 2:
                await exchange(stage.attempt(there, post(b"{}")))
            assert (len(one.heads), len(two.heads), server.connections) == (1, 1, 3)
            other = replace(direct, proxy=Proxy("127.0.0.1", one.port, CREDENTIALS))
            await exchange(stage.attempt(other, post(b"{}")))
            assert (len(one.heads), server.connections) == (2, 4), "credentials of one channel serve no other"

    run(main())


@pytest.mark.parametrize("host", ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254"])
def test_forbidden_addresses(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    """The proxy's own is checked as an upstream's would be; so is an upstream's that needs no resolving."""

    async def main() -> None:
        async with proxying() as proxy, upstream() as stage:
            for there in (channel(80, host="a.example", proxy=Proxy(host, 80)), by(proxy, 80, host=host)):
                assert "refused" in detail(await stage.attempt(there, post(b"{}")).reply())
            assert not proxy.heads

    run(main())


def test_the_upstreams_name_is_not_resolved_here(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    resolve = connect_module.Connector._resolve

    async def counting(self: connect_module.Connector, host: str, port: int) -> Any:
        asked.append(host)
        return await resolve(self, host, port)

    monkeypatch.setattr(connect_module.Connector, "_resolve", counting)

    async def main() -> None:
        async with serving(OK) as server, proxying() as proxy, upstream() as stage:
            proxy.leads["upstream.example:80"] = ("127.0.0.1", server.port)
            there = channel(80, host="upstream.example", proxy=Proxy("localhost", proxy.port))
            _, body, _ = await exchange(stage.attempt(there, post(b"{}")))
            assert body == b"ok"
            assert asked == ["localhost"]

    run(main())


def test_giving_up_while_the_proxy_is_asked_leaves_nothing() -> None:
    async def main() -> None:
        async with proxying(silent) as proxy, upstream() as stage:
            attempt = stage.attempt(by(proxy, 80, host="a.example"), post(b"{}"))
            waiting = asyncio.ensure_future(attempt.reply())
            await until(lambda: bool(proxy.heads))
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert stage.pool.open_connections == 0

    run(main())
