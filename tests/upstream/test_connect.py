import asyncio
import socket
import ssl
import time
from typing import Any

import pytest

from headrace.model.problem import Kind, Problem
from headrace.model.request import ReplyHead
from headrace.model.wire import BodyEnd
from headrace.upstream import connect as connect_module
from headrace.upstream.connect import Tls
from tests.upstream.conftest import Certificates
from tests.upstream.wire import Peer, answering, channel, chunked, exchange, post, reply, run, serving, until, upstream

OK = answering(reply(b"ok"))


def detail(outcome: ReplyHead | Problem) -> str:
    assert isinstance(outcome, Problem) and outcome.kind is Kind.UPSTREAM_UNREACHABLE, outcome
    return outcome.detail


def resolver(monkeypatch: pytest.MonkeyPatch, *addresses: str) -> list[str]:
    """Let every name lead to `addresses`; the names that were asked for."""
    asked: list[str] = []

    async def getaddrinfo(host: str, port: int, **_: Any) -> list[Any]:
        asked.append(host)
        await asyncio.sleep(0)
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in addresses
        ]

    class Loop:
        def __getattr__(self, name: str) -> Any:
            return getaddrinfo if name == "getaddrinfo" else getattr(asyncio.get_running_loop(), name)

    class Asyncio:
        def __getattr__(self, name: str) -> Any:
            return Loop if name == "get_running_loop" else getattr(asyncio, name)

    monkeypatch.setattr(connect_module, "asyncio", Asyncio())
    return asked


# ------------------------------------------------------------------------------------------------------------ addresses


@pytest.mark.parametrize("address", ["169.254.169.254", "::ffff:169.254.169.254", "fd00:ec2::254", "100.100.100.200"])
def test_metadata_addresses_are_refused_behind_any_name(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    asked = resolver(monkeypatch, address)

    async def main() -> None:
        async with upstream() as stage:
            attempt = stage.attempt(channel(80, host="innocent.example"), post(b"{}"))
            assert "refused" in detail(await attempt.reply())
            assert asked == ["innocent.example"]
            attempt = stage.attempt(channel(80, host=address), post(b"{}"))
            assert "refused" in detail(await attempt.reply())

    run(main())


def test_a_name_that_turns_bad_later_is_refused_then(monkeypatch: pytest.MonkeyPatch) -> None:
    """DNS rebinding: the check is made on the address that is connected to, at every connect."""
    monkeypatch.setattr(connect_module, "RESOLVED_FOR_S", 0.0)

    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            here = channel(server.port, host="rebinding.example", idle=0.0)
            resolver(monkeypatch, "127.0.0.1")
            _, body, _ = await exchange(stage.attempt(here, post(b"{}")))
            assert body == b"ok"
            monkeypatch.undo()
            monkeypatch.setattr(connect_module, "RESOLVED_FOR_S", 0.0)
            resolver(monkeypatch, "169.254.169.254")
            assert "refused" in detail(await stage.attempt(here, post(b"{}")).reply())

    run(main())


def test_addresses_are_tried_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, "169.254.169.254", "::1", "127.0.0.2", "127.0.0.1")

    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            _, body, _ = await exchange(stage.attempt(channel(server.port, host="many.example"), post(b"{}")))
            assert body == b"ok" and server.connections == 1

    run(main())


def test_a_silent_address_leaves_time_for_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, "127.0.0.2", "127.0.0.1")

    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            with full_listener("127.0.0.2", server.port):
                slow = channel(server.port, host="half.example", connect=0.4)
                begun = time.monotonic()
                _, body, _ = await exchange(stage.attempt(slow, post(b"{}")))
                assert body == b"ok" and 0.15 < time.monotonic() - begun < 0.4

    run(main())


class full_listener:  # noqa: N801 - used like a function
    """An address that takes no more connections: SYNs go unanswered."""

    def __init__(self, host: str, port: int) -> None:
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind((host, port))
        self.listener.listen(0)
        self.fillers: list[socket.socket] = []

    def __enter__(self) -> "full_listener":
        for _ in range(4):
            filler = socket.socket()
            filler.setblocking(False)
            filler.connect_ex(self.listener.getsockname())
            self.fillers.append(filler)
        time.sleep(0.01)
        return self

    def __exit__(self, *_: object) -> None:
        for each in (*self.fillers, self.listener):
            each.close()


def test_a_connect_ends_in_time() -> None:
    async def main() -> None:
        async with upstream() as stage:
            with full_listener("127.0.0.3", 0) as listener:
                port = listener.listener.getsockname()[1]
                attempt = stage.attempt(channel(port, host="127.0.0.3", connect=0.05), post(b"{}"))
                begun = time.monotonic()
                assert "no connection within 0.05 s" in detail(await attempt.reply())
                assert time.monotonic() - begun < 0.5
                assert not attempt.maybe_executed

    run(main())


def test_one_look_up_serves_many_and_is_kept_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = resolver(monkeypatch, "127.0.0.1")

    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            here = channel(server.port, host="busy.example")
            quitter = asyncio.ensure_future(stage.attempt(here, post(b"{}")).reply())
            others = [asyncio.ensure_future(exchange(stage.attempt(here, post(b"{}")))) for _ in range(5)]
            await asyncio.sleep(0)
            quitter.cancel()
            for _, body, _ in await asyncio.gather(*others):
                assert body == b"ok"
            assert asked == ["busy.example"]

    run(main())


def test_a_name_that_does_not_exist() -> None:
    async def main() -> None:
        async with upstream() as stage:
            attempt = stage.attempt(channel(80, host="nowhere.invalid"), post(b"{}"))
            assert "nowhere.invalid:80: name resolution: " in detail(await attempt.reply())
            attempt = stage.attempt(channel(80, host="a" * 70 + ".invalid"), post(b"{}"))
            detail(await attempt.reply())

    run(main())


def test_localhost_is_a_name_like_any() -> None:
    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            _, body, _ = await exchange(stage.attempt(channel(server.port, host="localhost"), post(b"{}")))
            assert body == b"ok"

    run(main())


# ------------------------------------------------------------------------------------------------------------------ TLS


def secure(port: int, certificates: Certificates, **changes: Any) -> Any:
    return channel(port, **{"scheme": "https", "host": "localhost", "ca": certificates.ca, **changes})


@pytest.mark.parametrize("tls", list(Tls))
def test_tls_carries_and_keeps_connections(certificates: Certificates, tls: Tls) -> None:
    large = bytes(range(256)) * 8192

    async def serve(peer: Peer) -> None:
        while (got := await peer.request()) is not None:
            peer.write(chunked(b"a", got[1][:100_000], b"b") if got[1] != b"{}" else reply(b"ok"))

    async def main() -> None:
        async with serving(serve, certificates.server) as server, upstream(tls) as stage:
            here = secure(server.port, certificates)
            for number in range(4):
                attempt = stage.attempt(here, post(large if number % 2 else b"{}"))
                _, body, end = await exchange(attempt)
                assert body == (b"a" + large[:100_000] + b"b" if number % 2 else b"ok")
                assert end is BodyEnd.FRAMED and attempt.uploaded and attempt.reused is (number > 0)
            assert server.connections == 1

    run(main())


@pytest.mark.parametrize("tls", list(Tls))
@pytest.mark.parametrize(("host", "trusted"), [("127.0.0.2", True), ("localhost", False)])
def test_certificates_are_verified(certificates: Certificates, tls: Tls, host: str, trusted: bool) -> None:
    async def main() -> None:
        async with serving(OK, certificates.server) as server, upstream(tls) as stage:
            here = secure(server.port, certificates, host=host, **({} if trusted else {"ca": ""}))
            if host == "127.0.0.2":
                here = secure(server.port, certificates, host="127.0.0.1")
                _, body, _ = await exchange(stage.attempt(here, post(b"{}")))
                assert body == b"ok", "a certificate for an address is good for it"
                return
            attempt = stage.attempt(here, post(b"{}"))
            assert "TLS: " in detail(await attempt.reply()) and not attempt.maybe_executed

    run(main())


@pytest.mark.parametrize("tls", list(Tls))
def test_a_certificate_for_another_name(certificates: Certificates, tls: Tls, monkeypatch: pytest.MonkeyPatch) -> None:
    resolver(monkeypatch, "127.0.0.1")

    async def main() -> None:
        async with serving(OK, certificates.server) as server, upstream(tls) as stage:
            here = secure(server.port, certificates, host="other.example")
            assert "other.example" in detail(await stage.attempt(here, post(b"{}")).reply())

    run(main())


@pytest.mark.parametrize("tls", list(Tls))
def test_a_server_that_speaks_no_tls_or_leaves(certificates: Certificates, tls: Tls) -> None:
    async def leave(peer: Peer) -> None:
        await peer.reader.read(10)

    async def babble(peer: Peer) -> None:
        peer.write(b"HTTP/1.1 400 You speak TLS to a plain port\r\n\r\n" * 10)
        await peer.reader.read(10)

    async def main() -> None:
        for serve in (leave, babble):
            async with serving(serve) as server, upstream(tls) as stage:
                detail(await stage.attempt(secure(server.port, certificates), post(b"{}")).reply())

    run(main())


@pytest.mark.parametrize("tls", list(Tls))
def test_a_tls_handshake_ends_in_time(certificates: Certificates, tls: Tls) -> None:
    async def silent(peer: Peer) -> None:
        await peer.reader.read()

    async def main() -> None:
        async with serving(silent) as server, upstream(tls) as stage:
            here = secure(server.port, certificates, connect=0.05)
            assert "no connection within" in detail(await stage.attempt(here, post(b"{}")).reply())
            await until(lambda: server.open == 0)

    run(main())


def test_a_missing_ca_file_is_a_problem_too(certificates: Certificates) -> None:
    async def main() -> None:
        async with upstream() as stage:
            here = secure(1, certificates, ca="/nowhere/ca.pem")
            assert "No such file" in detail(await stage.attempt(here, post(b"{}")).reply())

    run(main())


@pytest.mark.parametrize("tls", list(Tls))
def test_a_body_without_framing_under_tls(certificates: Certificates, tls: Tls) -> None:
    """close_notify ends it; a bare FIN may be anyone's."""
    head = b"HTTP/1.1 200 OK\r\n\r\n"

    async def notify(peer: Peer) -> None:
        await peer.request()
        peer.write(head + b"body")

    async def cut(peer: Peer) -> None:
        await peer.request()
        peer.write(head + b"body")
        await peer.writer.drain()
        await asyncio.sleep(0.02)
        peer.writer.transport.abort()

    async def main() -> None:
        for serve, expected in ((notify, BodyEnd.CLOSED), (cut, BodyEnd.CUT)):
            async with serving(serve, certificates.server) as server, upstream(tls) as stage:
                _, body, end = await exchange(stage.attempt(secure(server.port, certificates), post(b"{}")))
                assert (body, end) == (b"body", expected)

    run(main())


@pytest.mark.parametrize("tls", list(Tls))
def test_tls_connections_that_died_are_replaced(certificates: Certificates, tls: Tls) -> None:
    async def once(peer: Peer) -> None:
        await peer.request()
        peer.write(reply(b"ok"))

    async def main() -> None:
        async with serving(once, certificates.server) as server, upstream(tls) as stage:
            for number in range(20):
                _, body, _ = await exchange(stage.attempt(secure(server.port, certificates), post(b"{}")))
                assert body == b"ok"
                if number % 2:
                    await asyncio.sleep(0.002)
            assert server.connections == 20

    run(main())


def test_tls_is_1_2_at_least(certificates: Certificates) -> None:
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    assert connect_module.Connector()._context(certificates.ca).minimum_version is ssl.TLSVersion.TLSv1_2
    assert connect_module.Connector()._context("").verify_mode is ssl.CERT_REQUIRED
    assert old.verify_mode is ssl.CERT_NONE
