import asyncio
import gc
import random
import socket
import time
from contextlib import suppress

import pytest

from headrace.model.problem import Kind, Problem
from headrace.model.request import ReplyHead
from headrace.model.wire import BodyEnd
from headrace.upstream.connect import Tls
from headrace.upstream.http1 import Connection
from tests.upstream.conftest import Certificates
from tests.upstream.wire import (
    Collector,
    Peer,
    ThreadServer,
    answering,
    channel,
    chunked,
    exchange,
    post,
    reply,
    reset,
    run,
    serving,
    until,
    upstream,
)


def unreachable(outcome: ReplyHead | Problem) -> Problem:
    assert isinstance(outcome, Problem) and outcome.kind is Kind.UPSTREAM_UNREACHABLE, outcome
    return outcome


def test_the_facts_of_a_good_attempt() -> None:
    async def main() -> None:
        async with serving(answering(reply(b"ok"))) as server, upstream() as stage:
            before = time.monotonic()
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            assert not attempt.uploaded and attempt.connected_at is None and attempt.head_at is None
            _, body, end = await exchange(attempt)
            assert (body, end) == (b"ok", BodyEnd.FRAMED)
            times = [attempt.started_at, attempt.connected_at, attempt.uploaded_at, attempt.head_at]
            assert all(at is not None for at in times)
            assert [before, *times] == sorted([before, *times])  # type: ignore[type-var]
            assert not (attempt.reused or attempt.replayed or attempt.maybe_executed)

    run(main())


def test_nobody_listens() -> None:
    async def main() -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            async with upstream() as stage:
                attempt = stage.attempt(channel(free.getsockname()[1]), post(b"{}"))
                problem = unreachable(await attempt.reply())
                assert problem.detail.endswith("Connection refused") and not attempt.maybe_executed
                attempt.close()

    run(main())


def test_a_request_that_cannot_be_sent() -> None:
    async def main() -> None:
        async with upstream() as stage:
            request = post(b"{}")
            request.headers.append((b"x", b"1\r\nevil: 1"))
            outcome = await stage.attempt(channel(1), request).reply()
            assert isinstance(outcome, Problem) and outcome.kind is Kind.INTERNAL

    run(main())


def test_a_closed_stage_takes_nothing() -> None:
    async def main() -> None:
        async with serving(answering(reply(b"ok"))) as server, upstream() as stage:
            held = stage.attempt(channel(server.port), post(b"{}"))
            await held.reply()
            held.attach(Collector())
            stage.pool.close()
            unreachable(await stage.attempt(channel(server.port), post(b"{}")).reply())
            held.close()
            assert stage.pool.idle_connections == 0

    run(main())


# -------------------------------------------------------------------------------------- connections that died (B079)


def serve_and_close_on_demand(server: ThreadServer, sock: socket.socket) -> None:
    """U1: it answers one request and closes the connection at the moment that the test chooses."""
    if server.count_request(sock):
        sock.sendall(reply(b"ok"))
        server.close_now.wait(5)


def blind(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let every idle connection pass for alive, as it is where the FIN is still under way."""
    probe = Connection.probe
    monkeypatch.setattr(Connection, "probe", lambda self: probe(self) or not self.closed)


def test_a_connection_that_the_kernel_knows_to_be_dead_is_not_used() -> None:
    async def main() -> None:
        async with upstream() as stage:
            for number in range(100):
                attempt = stage.attempt(channel(server.port), post(b"{}"))
                _, body, _ = await exchange(attempt)
                assert body == b"ok" and server.counted == number + 1
                assert not attempt.reused and not attempt.replayed
                server.close_idle()  # the loop has had no turn since: only the kernel knows

    with ThreadServer(serve_and_close_on_demand) as server:
        run(main())


def test_u1_closes_while_the_request_is_on_its_way(monkeypatch: pytest.MonkeyPatch) -> None:
    blind(monkeypatch)

    async def main() -> None:
        async with upstream() as stage:
            await exchange(stage.attempt(channel(server.port), post(b"{}")))
            for number in range(100):
                server.close_idle()
                attempt = stage.attempt(channel(server.port), post(b"{}"))
                _, body, _ = await exchange(attempt, at_once=True)
                assert body == b"ok" and attempt.replayed and not attempt.maybe_executed
                assert server.counted == server.connections == number + 2

    with ThreadServer(serve_and_close_on_demand) as server:
        run(main())


@pytest.mark.parametrize(("tls", "notified"), [(Tls.AIOFASTNET, False), (Tls.AIOFASTNET, True), (Tls.LOOP, True)])
def test_u1_under_tls(certificates: Certificates, monkeypatch: pytest.MonkeyPatch, tls: Tls, notified: bool) -> None:
    """With close_notify before the FIN, and without: then uvloop's own TLS tells too late, when the socket is gone."""
    blind(monkeypatch)

    def serve(server: ThreadServer, sock: socket.socket) -> None:
        with certificates.server.wrap_socket(sock, server_side=True, suppress_ragged_eofs=True) as secured:
            serve_and_close_on_demand(server, secured)
            if notified:
                secured.settimeout(0)
                with suppress(OSError):
                    secured.unwrap()  # writes close_notify, and does not wait for the answer

    async def main() -> None:
        async with upstream(tls) as stage:
            here = channel(server.port, scheme="https", host="localhost", ca=certificates.ca)
            await exchange(stage.attempt(here, post(b"{}")))
            for number in range(20):
                server.close_idle()
                attempt = stage.attempt(here, post(b"{}"))
                _, body, _ = await exchange(attempt, at_once=True)
                assert body == b"ok" and attempt.replayed and not attempt.maybe_executed
                assert server.counted == server.connections == number + 2

    with ThreadServer(serve) as server:
        run(main())


def test_a_large_request_is_replayed_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """A write meets the RST before the EOF is read: EPIPE, which only follows a FIN."""
    blind(monkeypatch)
    body = bytes(1_000_000)

    def serve(server: ThreadServer, sock: socket.socket) -> None:
        received = 0
        while received < len(body):
            data = sock.recv(1 << 20)
            if not data:
                return
            received += len(data.rpartition(b"\r\n\r\n")[2])
        server.counted += 1
        sock.sendall(reply(b"ok"))
        server.close_now.wait(5)

    async def main() -> None:
        async with upstream() as stage:
            await exchange(stage.attempt(channel(server.port), post(body)))
            for number in range(20):
                server.close_idle()
                attempt = stage.attempt(channel(server.port), post(body))
                _, got, _ = await exchange(attempt, at_once=True)
                assert got == b"ok" and attempt.replayed and server.counted == number + 2

    with ThreadServer(serve) as server:
        run(main())


def test_u1_in_a_true_race() -> None:
    """Closed at any moment around the reuse: nothing is executed twice, and what failed says that it may have run."""

    def serve(server: ThreadServer, sock: socket.socket) -> None:
        try:
            while server.count_request(sock):
                sock.sendall(reply(b"ok"))
                sock.settimeout(random.uniform(0.00005, 0.0006))
        except TimeoutError:
            pass

    async def main() -> None:
        good = 0
        async with upstream() as stage:
            for _ in range(300):
                attempt = stage.attempt(channel(server.port), post(b"{}"))
                before = server.counted
                outcome, body, _ = await exchange(attempt)
                if isinstance(outcome, ReplyHead):
                    assert body == b"ok" and server.counted == before + 1
                    good += 1
                else:
                    unreachable(outcome)
                    assert attempt.maybe_executed and server.counted <= before + 1
            assert good >= 270

    with ThreadServer(serve) as server:
        run(main())


@pytest.mark.parametrize("gracefully", [False, True])
@pytest.mark.parametrize("reused", [False, True])
def test_u2_reads_the_request_and_goes(gracefully: bool, reused: bool) -> None:
    """It may have been executed: never again on the same credential, and the entry says so."""

    def serve(server: ThreadServer, sock: socket.socket) -> None:
        if reused and server.count_request(sock):
            sock.sendall(reply(b"ok"))
        if server.count_request(sock) and not gracefully:
            reset(sock)

    async def main() -> None:
        async with upstream() as stage:
            if reused:
                await exchange(stage.attempt(channel(server.port), post(b"{}")))
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            unreachable(await attempt.reply())
            assert attempt.reused is reused and attempt.maybe_executed and not attempt.replayed
            assert server.counted == 1 + reused and server.connections == 1
            attempt.close()

    with ThreadServer(serve) as server:
        run(main())


def test_a_reply_that_began_is_never_asked_for_again() -> None:
    def serve(server: ThreadServer, sock: socket.socket) -> None:
        while server.count_request(sock):
            sock.sendall(reply(b"ok") if server.counted == 1 else b"HTTP/1.1 200 OK\r\ncont")
            if server.counted == 2:
                return

    async def main() -> None:
        async with upstream() as stage:
            await exchange(stage.attempt(channel(server.port), post(b"{}")))
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            unreachable(await attempt.reply())
            assert attempt.reused and not attempt.replayed and attempt.maybe_executed

    with ThreadServer(serve) as server:
        run(main())


def test_a_replay_happens_once(monkeypatch: pytest.MonkeyPatch) -> None:
    blind(monkeypatch)

    def serve(server: ThreadServer, sock: socket.socket) -> None:
        if server.connections == 1:
            serve_and_close_on_demand(server, sock)

    async def main() -> None:
        async with upstream() as stage:
            await exchange(stage.attempt(channel(server.port), post(b"{}")))
            server.close_idle()
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            unreachable(await attempt.reply())
            assert attempt.replayed and server.connections == 2

    with ThreadServer(serve) as server:
        run(main())


def test_a_replay_that_cannot_connect_was_executed_nowhere(monkeypatch: pytest.MonkeyPatch) -> None:
    blind(monkeypatch)

    async def main() -> None:
        async with upstream() as stage:
            await exchange(stage.attempt(channel(server.port), post(b"{}")))
            server.close_idle()
            server.__exit__()
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            unreachable(await attempt.reply())
            assert attempt.replayed and not attempt.maybe_executed

    server = ThreadServer(serve_and_close_on_demand)
    run(main())


# --------------------------------------------------------------------------------------------- giving up, everywhere


async def silent(peer: Peer) -> None:
    """It takes requests and says nothing."""
    while await peer.request() is not None:
        pass


def stages_of_waiting(certificates: Certificates, port: int) -> dict[str, object]:
    return {"scheme": "https", "host": "localhost", "ca": certificates.ca, "connections": 1}


@pytest.mark.parametrize("tls", list(Tls))
def test_cancelled_at_every_await(certificates: Certificates, tls: Tls) -> None:
    """From the look-up of the name to the wait for the head: the connection is closed and its place is free."""

    async def main() -> None:
        async with serving(silent, certificates.server) as server, upstream(tls) as stage:
            options = stages_of_waiting(certificates, server.port)
            for turns in range(40):
                attempt = stage.attempt(channel(server.port, **options), post(b"{}"))
                waiting = asyncio.ensure_future(attempt.reply())
                for _ in range(turns):
                    await asyncio.sleep(0)
                if turns > 30:
                    await asyncio.sleep(0.002 * (turns - 30))
                waiting.cancel()
                with suppress(asyncio.CancelledError):
                    await waiting
                assert waiting.cancelled()
                await until(lambda: stage.pool.open_connections == 0)
                await asyncio.sleep(0.002)
                assert stage.pool.idle_connections == 0
                assert all(not gate.in_use for gate in stage.pool._gates.values())
            await until(lambda: server.open == 0)

    run(main())


@pytest.mark.parametrize("tls", list(Tls))
def test_failed_by_a_timer_at_every_await(certificates: Certificates, tls: Tls) -> None:
    async def main() -> None:
        late = Problem(Kind.UPSTREAM_TIMEOUT, "too late")
        async with serving(silent, certificates.server) as server, upstream(tls) as stage:
            options = stages_of_waiting(certificates, server.port)
            for turns in range(1, 40):
                attempt = stage.attempt(channel(server.port, **options), post(b"{}"))
                waiting = asyncio.ensure_future(attempt.reply())
                for _ in range(turns):
                    await asyncio.sleep(0)
                if turns > 30:
                    await asyncio.sleep(0.002 * (turns - 30))
                if turns == 39:  # the last one is sent, however long its handshake takes
                    await until(lambda: attempt.connected_at is not None)  # noqa: B023  # over before the next turn
                sent = attempt.connected_at is not None
                attempt.fail(late)
                assert await waiting is late
                assert attempt.maybe_executed is sent
                await until(lambda: stage.pool.open_connections == 0)
                await asyncio.sleep(0.002)
                assert all(not gate.in_use for gate in stage.pool._gates.values())
            assert sent

    run(main())


def test_failing_after_the_head_does_nothing() -> None:
    async def main() -> None:
        async with serving(answering(reply(b"ok"))) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            attempt.fail(Problem(Kind.UPSTREAM_TIMEOUT, "before it began"))
            await attempt.reply()
            attempt.fail(Problem(Kind.UPSTREAM_TIMEOUT, "too late"))
            collector = Collector()
            attempt.attach(collector)
            await asyncio.wait_for(collector.over.wait(), 5)
            assert collector.data == b"ok"
            attempt.close()
            attempt.pause()
            attempt.resume()
            attempt.attach(Collector())
            assert stage.pool.idle_connections == 1

    run(main())


def test_closing_in_the_middle_of_a_body_closes_the_connection() -> None:
    gone: list[float] = []

    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.write(chunked(b"a", end=b""))
        await peer.request()
        gone.append(time.monotonic())

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            await attempt.reply()
            collector = Collector()
            attempt.attach(collector)
            attempt.close()
            at = time.monotonic()
            await until(lambda: bool(gone))
            assert gone[0] - at < 1 and not collector.ends
            await until(lambda: stage.pool.open_connections == 0)

    run(main())


def test_a_finished_attempt_leaves_no_cycle() -> None:
    async def main() -> None:
        cut = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok"
        async with serving(answering(reply(b"ok"), cut)) as server, upstream() as stage:
            for _ in range(2):
                await exchange(stage.attempt(channel(server.port), post(b"{}")))
            await asyncio.sleep(0.01)
            gc.collect()
            gc.set_debug(gc.DEBUG_SAVEALL)
            try:
                for _ in range(4):
                    await exchange(stage.attempt(channel(server.port), post(b"{}")))
                await asyncio.sleep(0.01)
                gc.collect()
                ours = [each for each in gc.garbage if type(each).__module__.startswith("headrace.upstream")]
            finally:
                gc.set_debug(0)
                gc.garbage.clear()
            assert not ours

    run(main())


# ----------------------------------------------------------------------------- many at once, one another's neighbours


def test_no_body_reaches_another_request() -> None:
    """B064: 300 streams at once over kept connections, each with its own mark, half of them left at a random byte."""

    async def serve(peer: Peer) -> None:
        while (got := await peer.request()) is not None:
            mark = got[1]
            peer.write(chunked(end=b""))
            for _ in range(5):
                peer.write(b"%x\r\n%s\r\n" % (len(mark), mark))
                await asyncio.sleep(0)
            peer.write(b"0\r\n\r\n" + (b"surplus" if mark.endswith(b"7") else b""))

    async def one(stage: object, port: int, number: int) -> None:
        mark = b"<%08d>" % number
        attempt = stage.attempt(channel(port), post(mark))  # type: ignore[attr-defined]
        assert isinstance(await attempt.reply(), ReplyHead)
        collector = Collector()
        attempt.attach(collector)
        if number % 2:
            for _ in range(random.randrange(4)):
                await asyncio.sleep(0)
        else:
            await collector.over.wait()
            assert collector.data == mark * 5
        assert (mark * 5).startswith(collector.data)
        attempt.close()

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            for round_ in range(2):
                await asyncio.gather(*(one(stage, server.port, round_ * 1000 + number) for number in range(300)))
            assert server.connections < 600

    run(main())


def test_error_answers_that_nobody_reads_do_not_use_up_the_channel() -> None:
    """B078: pool of 10; 50 requests get a 429 with a slow 1 MB body and let go; then a normal one goes at once."""

    async def serve(peer: Peer) -> None:
        while (got := await peer.request()) is not None:
            if got[1] == b"{}":
                peer.write(reply(b"ok"))
                continue
            peer.write(b"HTTP/1.1 429 Slow\r\ncontent-length: 1000000\r\n\r\n")
            for _ in range(100):
                peer.write(bytes(10_000))
                await peer.writer.drain()
                await asyncio.sleep(0.02)

    most: list[int] = []

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            narrow = channel(server.port, connections=10)

            async def refused(number: int) -> None:
                attempt = stage.attempt(narrow, post(b"[]"))
                head = await attempt.reply()
                assert isinstance(head, ReplyHead) and head.status == 429
                most.append(stage.pool.open_connections)
                if number % 2:
                    attempt.attach(Collector())
                    await asyncio.sleep(0.005)
                attempt.close()

            await asyncio.gather(*map(refused, range(50)))
            begun = time.monotonic()
            _, body, _ = await exchange(stage.attempt(narrow, post(b"{}")))
            assert body == b"ok" and time.monotonic() - begun < 1
            assert max(most) <= 10

    run(main())
