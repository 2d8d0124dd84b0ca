import asyncio
import socket
from collections.abc import Callable
from contextlib import nullcontext
from itertools import pairwise
from time import monotonic

import pytest

from headrace.model.problem import Kind, Problem
from headrace.model.request import ReplyHead
from headrace.model.wire import BodyEnd
from headrace.upstream.connect import Tls
from headrace.upstream.http1 import EARLY_LIMIT
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
    run,
    serving,
    until,
    upstream,
)

OK = b"HTTP/1.1 200 OK\r\n"
GOOD = [
    # wire, status, body, end, whether the connection may serve again
    (chunked(b"hello", b"yo"), 200, b"helloyo", BodyEnd.FRAMED, True),
    (chunked(b"a", end=b"0\r\nX-Trailer: t\r\nY: z\r\n\r\n"), 200, b"a", BodyEnd.FRAMED, True),
    (chunked(b"a").replace(b"1\r\n", b"1;ext=v\r\n", 1), 200, b"a", BodyEnd.FRAMED, True),
    (reply(b"body"), 200, b"body", BodyEnd.FRAMED, True),
    (reply(b"", status=b"500 No"), 500, b"", BodyEnd.FRAMED, True),
    (reply(b"x", b"connection: close"), 200, b"x", BodyEnd.FRAMED, False),
    (reply(b"x", b"connection: keep-alive, X-Foo", b"x-foo: 1"), 200, b"x", BodyEnd.FRAMED, True),
    (b"HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\nx", 200, b"x", BodyEnd.FRAMED, False),
    (b"HTTP/1.1 204 No\r\n\r\n", 204, b"", BodyEnd.FRAMED, True),
    (b"HTTP/1.1 304 No\r\ncontent-length: 5\r\n\r\n", 304, b"", BodyEnd.FRAMED, True),
    (b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 Hints\r\nlink: x\r\n\r\n" + reply(b"z"), 200, b"z", BodyEnd.FRAMED, True),
    (OK + b"transfer-encoding: Chunked \r\n\r\n1\r\na\r\n0\r\n\r\n", 200, b"a", BodyEnd.FRAMED, True),
    (OK + b"transfer-encoding: chunked\r\n" * 2 + b"\r\n1\r\na\r\n0\r\n\r\n", 200, b"a", BodyEnd.FRAMED, True),
    (reply(b"x", b"upgrade: h2c", b"connection: upgrade", status=b"426 Up"), 426, b"x", BodyEnd.FRAMED, True),
]  # fmt: skip


@pytest.mark.parametrize(("wire", "status", "body", "end", "again"), GOOD)
@pytest.mark.parametrize("one_byte", [False, True])
def test_replies_are_read(wire: bytes, status: int, body: bytes, end: BodyEnd, again: bool, one_byte: bool) -> None:
    async def main() -> None:
        async with serving(answering(wire, one_byte=one_byte)) as server, upstream() as stage:
            for number in range(2):
                attempt = stage.attempt(channel(server.port), post(b"{}"))
                head, got, how = await exchange(attempt)
                assert isinstance(head, ReplyHead)
                assert (head.status, got, how) == (status, body, end)
                assert attempt.reused is (again and number == 1)
                assert attempt.uploaded and not attempt.replayed and not attempt.maybe_executed
            assert server.connections == (1 if again else 2)

    run(main())


@pytest.mark.parametrize(
    ("wire", "body", "end"),
    [
        (OK + b"\r\nrest of it", b"rest of it", BodyEnd.CLOSED),
        (b"HTTP/1.0 200 OK\r\ncontent-type: text/event-stream\r\n\r\ndata: x\n\n", b"data: x\n\n", BodyEnd.CLOSED),
        (OK + b"content-length: 10\r\n\r\nshort", b"short", BodyEnd.CUT),
        (chunked(b"part", end=b""), b"part", BodyEnd.CUT),
        (chunked(b"part", end=b"5\r\nab"), b"partab", BodyEnd.CUT),
        (chunked(b"part", end=b"0\r\n"), b"part", BodyEnd.CUT),
        (chunked(b"part", end=b"zz\r\n"), b"part", BodyEnd.CUT),
    ],
)
def test_closing_ends_a_body_by_its_framing(wire: bytes, body: bytes, end: BodyEnd) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.write(wire)
        await peer.writer.drain()

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            head, got, how = await exchange(stage.attempt(channel(server.port), post(b"{}")))
            assert isinstance(head, ReplyHead) and (got, how) == (body, end)
            assert stage.pool.idle_connections == 0

    run(main())


def test_a_reset_cuts_a_body_without_framing() -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.write(OK + b"\r\nsome")
        await asyncio.sleep(0.02)
        peer.reset()

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            _, got, how = await exchange(stage.attempt(channel(server.port), post(b"{}")))
            assert (got, how) == (b"some", BodyEnd.CUT)

    run(main())


@pytest.mark.parametrize(
    "wire",
    [
        b"SSH-2.0-OpenSSH\r\n",
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\nupgrade: x\r\nconnection: upgrade\r\n\r\n",
        OK + b"content-length: 5\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"content-length: 5\r\ncontent-length: 5\r\n\r\nhello",
        OK + b"transfer-encoding: gzip\r\n\r\nx",
        OK + b"transfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
        OK + b"x: 1\r\n" * 201 + b"\r\n",
        OK + b"x: " + b"a" * 65_540 + b"\r\n\r\n",
        OK + b"x: " + b"a" * 70_000,
        OK + b"x" * 70_000,
        OK + b" folded: x\r\n\r\n",
        b"HTTP/1.1 100 Go\r\n\r\n" * 4000,
        b"\x16\x03\x01\x02\x00\x01\x00",
    ],
)
def test_what_is_not_http_is_a_bad_reply(wire: bytes) -> None:
    async def main() -> None:
        async with serving(answering(wire)) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            problem, _, _ = await exchange(attempt)
            assert isinstance(problem, Problem) and problem.kind is Kind.UPSTREAM_BAD_REPLY
            assert attempt.maybe_executed
            await until(lambda: stage.pool.open_connections == 0)

    run(main())


def test_head_has_no_body() -> None:
    async def main() -> None:
        async with serving(answering(OK + b"content-length: 9\r\n\r\n")) as server, upstream() as stage:
            head, body, end = await exchange(stage.attempt(channel(server.port), post(method="HEAD")))
            assert isinstance(head, ReplyHead) and (body, end) == (b"", BodyEnd.FRAMED)
            assert stage.pool.idle_connections == 0

    run(main())


@pytest.mark.parametrize("surplus", [b"HTTP/1.1 200 OK\r\n", b"x", b"\r\n", b"0\r\n\r\n"])
@pytest.mark.parametrize("first", [chunked(b"mine"), reply(b"mine"), b"HTTP/1.1 204 No\r\n\r\n"])
@pytest.mark.parametrize("later", [False, True])
def test_surplus_bytes_never_reach_another_request(surplus: bytes, first: bytes, later: bool) -> None:
    """B064. (A blank line behind a counted body passes: the parser skips it, and it is nobody's.)"""
    if surplus == b"\r\n" and not later and b"content-length" in first:
        return

    async def serve(peer: Peer) -> None:
        while await peer.request() is not None:
            peer.write(first if later else first + surplus)
            if later:
                await asyncio.sleep(0.01)
                peer.write(surplus)

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            for number in range(3):
                attempt = stage.attempt(channel(server.port), post(b"{}"))
                head, body, end = await exchange(attempt)
                assert isinstance(head, ReplyHead) and end is BodyEnd.FRAMED
                assert body == (b"" if head.status == 204 else b"mine")
                assert not attempt.reused
                for _ in range(200):  # the surplus may be on its way still
                    if not stage.pool.idle_connections:
                        break
                    await asyncio.sleep(0.01)
                assert stage.pool.idle_connections == 0
                assert server.connections == number + 1

    run(main())


def test_surplus_before_the_attempt_lets_go() -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.write(reply(b"mine"))
        await asyncio.sleep(0.01)
        peer.write(b"HTTP/1.1 200")
        await peer.request()

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            await attempt.reply()
            collector = Collector()
            attempt.attach(collector)
            await asyncio.sleep(0.03)
            assert (collector.data, collector.ends) == (b"mine", [BodyEnd.FRAMED])
            attempt.close()
            assert stage.pool.idle_connections == 0

    run(main())


def test_a_body_that_came_before_attach_is_kept() -> None:
    async def main() -> None:
        async with serving(answering(chunked(b"a", b"b"))) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            await attempt.reply()
            await asyncio.sleep(0.02)
            collector = Collector()
            attempt.attach(collector)
            assert (collector.pieces, collector.ends) == ([b"a", b"b"], [BodyEnd.FRAMED])
            attempt.close()
            attempt.close()
            assert stage.pool.idle_connections == 1

    run(main())


def test_a_large_body_before_attach_pauses_the_upstream() -> None:
    body = bytes(8 * 1024 * 1024)

    async def main() -> None:
        async with serving(answering(reply(body))) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            await attempt.reply()
            await asyncio.sleep(0.05)
            collector = Collector()
            attempt.attach(collector)
            assert EARLY_LIMIT <= len(collector.data) < 3 * EARLY_LIMIT
            await asyncio.wait_for(collector.over.wait(), 5)
            assert collector.data == body
            attempt.close()

    run(main())


def test_each_event_is_pushed_in_the_call_that_brought_it() -> None:
    """Neither tasks nor futures lie between the socket and the receiver."""

    async def main() -> None:
        gate = asyncio.Event()

        async def serve(peer: Peer) -> None:
            await peer.request()
            peer.write(chunked(end=b""))
            await gate.wait()
            for number in range(3):
                peer.write(b"1\r\n%d\r\n" % number)
                await asyncio.sleep(0.005)
            peer.write(b"0\r\n\r\n")

        class Counting(Collector):
            def body(self, data: bytes) -> None:
                super().body(data)
                assert len(asyncio.all_tasks()) == tasks

        async with serving(serve) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            await attempt.reply()
            collector = Counting()
            attempt.attach(collector)
            tasks = len(asyncio.all_tasks())
            gate.set()
            await until(lambda: bool(collector.ends))
            assert collector.pieces == [b"0", b"1", b"2"]
            attempt.close()

    run(main())


def test_pause_and_resume() -> None:
    body = bytes(range(256)) * 32 * 1024

    async def main() -> None:
        async with serving(answering(reply(body))) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            await attempt.reply()
            collector = Collector()
            attempt.pause()
            attempt.attach(collector)
            attempt.pause()
            before = len(collector.data)
            await asyncio.sleep(0.03)
            assert len(collector.data) == before < len(body)
            attempt.resume()
            await asyncio.wait_for(collector.over.wait(), 5)
            assert collector.data == body
            attempt.close()
            assert stage.pool.idle_connections == 1

    run(main())


@pytest.mark.parametrize("tls", [None, *Tls], ids=str)
@pytest.mark.parametrize("frame", [reply, chunked], ids=["length", "one chunk"])
def test_a_fast_upstream_leaves_the_loop_to_others(
    certificates: Certificates, frame: Callable[[bytes], bytes], tls: Tls | None
) -> None:
    """Case B075: all that has come already is not read in one turn of the loop, but about a buffer's size at a time."""
    body = bytes(range(256)) * 64 * 1024

    def serve(server: ThreadServer, sock: socket.socket) -> None:
        with certificates.server.wrap_socket(sock, server_side=True) if tls else nullcontext(sock) as speaking:
            if server.count_request(speaking):
                speaking.sendall(frame(body))
                speaking.recv(1)

    async def main() -> None:
        secured: dict[str, object] = {"scheme": "https", "host": "localhost", "ca": certificates.ca} if tls else {}
        async with upstream(tls or Tls.LOOP) as stage:
            attempt = stage.attempt(channel(server.port, **secured), post(b"{}"))
            await attempt.reply()
            collector = Collector()
            attempt.attach(collector)
            seen = [len(collector.data)]
            while not collector.over.is_set():
                await asyncio.sleep(0)
                seen.append(len(collector.data))
            assert collector.data == body
            assert max(later - one for one, later in pairwise(seen)) <= 300_000
            attempt.close()

    with ThreadServer(serve) as server:
        run(main())


def test_a_receiver_may_let_go_inside_a_push() -> None:
    async def main() -> None:
        async with serving(answering(chunked(b"a", b"b", b"c"))) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))

            class Leaving(Collector):
                def body(self, data: bytes) -> None:
                    super().body(data)
                    attempt.close()

            early = Leaving()
            await attempt.reply()
            attempt.attach(early)
            await asyncio.sleep(0.01)
            assert (early.pieces, early.ends) == ([b"a"], [])

    run(main())


def test_a_receiver_may_let_go_inside_a_later_push() -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.write(chunked(end=b""))
        await asyncio.sleep(0.02)
        peer.write(b"1\r\na\r\n1\r\nb\r\n0\r\n\r\n")
        await peer.request()

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))

            class Leaving(Collector):
                def body(self, data: bytes) -> None:
                    super().body(data)
                    attempt.close()

            late = Leaving()
            await attempt.reply()
            attempt.attach(late)
            await until(lambda: stage.pool.open_connections == 0)
            assert (late.pieces, late.ends) == ([b"a"], [])
            assert stage.pool.idle_connections == 0

    run(main())


def test_a_receiver_that_fails_gets_a_cut_and_the_loop_hears_of_it() -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.write(chunked(end=b""))
        await asyncio.sleep(0.02)
        peer.write(b"1\r\na\r\n1\r\nb\r\n")
        await peer.request()

    async def main() -> None:
        heard: list[object] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, context: heard.append(context.get("exception")))

        class Broken(Collector):
            def body(self, data: bytes) -> None:
                raise LookupError("a bug")

        async with serving(serve) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(b"{}"))
            await attempt.reply()
            broken = Broken()
            attempt.attach(broken)
            await until(lambda: bool(broken.ends))
            assert broken.ends == [BodyEnd.CUT]
            attempt.close()
            await until(lambda: bool(heard))
            assert isinstance(heard[0], LookupError)

    run(main())


# --------------------------------------------------------------------------------------------------------------- upload


def test_large_uploads_go_up_whole_in_order_and_by_the_kernels_pace() -> None:
    parts = (b"start", memoryview(bytes(range(256)) * 20_000), b"", b"middle", memoryview(b"z" * 3_000_000))
    whole = b"".join(parts)

    async def serve(peer: Peer) -> None:
        await asyncio.sleep(0.05)
        while (got := await peer.request()) is not None:
            bodies.append(got[1])
            peer.write(reply(b"ok"))

    bodies: list[bytes] = []

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            for _ in range(2):
                attempt = stage.attempt(channel(server.port), post(*parts))
                waiting = asyncio.ensure_future(exchange(attempt))
                await asyncio.sleep(0.02)
                early = attempt.uploaded
                _, body, end = await waiting
                assert body == b"ok" and end is BodyEnd.FRAMED
                assert attempt.uploaded_at is not None and attempt.head_at is not None
                assert attempt.started_at <= attempt.uploaded_at <= attempt.head_at <= monotonic()
                assert not (early and not bodies), "it cannot be uploaded while the upstream reads nothing"
            assert bodies == [whole, whole]
            assert server.connections == 1

    run(main())


@pytest.mark.parametrize("close", [False, True])
def test_an_early_refusal_of_a_large_upload_is_delivered(close: bool) -> None:
    refusal = reply(b'{"error":{}}', status=b"413 Too Large")

    async def serve(peer: Peer) -> None:
        await peer.reader.readuntil(b"\r\n\r\n")
        peer.write(refusal)
        if close:
            return
        # It keeps the connection and takes no more: an upload that went on would hang here for ever.
        await asyncio.sleep(5)

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            for _ in range(10):
                attempt = stage.attempt(channel(server.port), post(bytes(30_000_000)))
                head, body, end = await exchange(attempt)
                assert isinstance(head, ReplyHead) and head.status == 413
                assert (body, end) == (b'{"error":{}}', BodyEnd.FRAMED)
                assert not attempt.uploaded
                assert stage.pool.idle_connections == 0

    run(main())


def test_a_reply_that_succeeds_early_lets_the_upload_go_on() -> None:
    body = bytes(10_000_000)

    async def serve(peer: Peer) -> None:
        head = await peer.reader.readuntil(b"\r\n\r\n")
        peer.write(chunked(b"begun", end=b""))
        received.append(len(await peer.reader.readexactly(len(body))))
        peer.write(b"0\r\n\r\n")
        assert b"content-length: 10000000" in head
        await peer.request()

    received: list[int] = []

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            attempt = stage.attempt(channel(server.port), post(body))
            _, got, end = await exchange(attempt)
            assert (got, end, received) == (b"begun", BodyEnd.FRAMED, [len(body)])
            assert attempt.uploaded and stage.pool.idle_connections == 1

    run(main())
