"""One connection: requests in turn, pipelining, time limits, leaving and lingering."""

import asyncio
import gc
import socket

import pytest

from headrace.listener import http1
from headrace.model.ports import ClientRequest
from headrace.model.request import Reply
from tests.listener.stand import JSON, answer, echo, serving, until


def get(path: str, *fields: str) -> bytes:
    """A request without a body."""
    return "\r\n".join([f"GET {path} HTTP/1.1", "Host: a", *fields, "", ""]).encode()


POST = b"POST /p HTTP/1.1\r\nHost: a\r\n"
OK = Reply(200, [JSON], b"{}")


class Held:
    """A line that begins a stream and leaves it to the test."""

    def __init__(self) -> None:
        self.gone: list[str] = []
        self.arrived: asyncio.Queue[ClientRequest] = asyncio.Queue()
        self.left = asyncio.Event()

    async def stream(self, request: ClientRequest) -> None:
        request.sink.watch(self)
        request.sink.start(200, [], None)
        request.sink.write(b"begin")
        self.arrived.put_nowait(request)

    async def silent(self, request: ClientRequest) -> None:
        request.sink.watch(self)
        self.arrived.put_nowait(request)

    def sink_paused(self) -> None:
        raise AssertionError("not in these tests")

    def sink_resumed(self) -> None:
        raise AssertionError("not in these tests")

    def sink_gone(self) -> None:
        self.gone.append("gone")
        self.left.set()


# ------------------------------------------------------------------------------------------------------- in turn


async def test_requests_in_turn_on_one_connection() -> None:
    async with serving() as stand, await stand.client() as client:
        for number in range(20):
            await client.send(get(f"/{number}"))
            response = await client.response()
            assert response.document["path"] == f"/{number}"
            assert b"connection" not in response.headers
        assert stand.server.open == 1


async def test_connection_close_is_obeyed_and_said() -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(get("/", "Connection: close"))
        assert (await client.response()).headers[b"connection"] == b"close"
        assert await client.is_closed()


async def test_http_1_0_is_closed_after_the_response_even_with_keep_alive() -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(b"GET / HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n")
        response = await client.response()
        assert (response.status, response.headers[b"connection"]) == (200, b"close")
        assert await client.is_closed()


async def test_two_pipelined_requests_are_answered_in_order() -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(get("/1") + get("/2"))
        assert [(await client.response()).document["path"] for _ in range(2)] == ["/1", "/2"]
        await client.send(get("/3"))
        assert (await client.response()).document["path"] == "/3"


async def test_a_kept_request_waits_for_the_response_before_it() -> None:
    held = Held()
    async with serving(held.stream) as stand, await stand.client() as client:
        await client.send(get("/1"))
        first = await held.arrived.get()
        await client.send(get("/2"))
        await asyncio.sleep(0.02)
        assert len(stand.requests) == 1
        first.sink.finish()
        second = await held.arrived.get()
        second.sink.finish()
        assert [(await client.response()).body for _ in range(2)] == [b"begin", b"begin"]


async def test_a_third_request_closes_after_both_responses() -> None:
    held = Held()
    async with serving(held.stream) as stand, await stand.client() as client:
        await client.send(get("/1"), get("/2") + get("/3") + get("/4"))
        await asyncio.sleep(0.02)
        for _ in range(2):
            (await held.arrived.get()).sink.finish()
        assert [(await client.response()).body for _ in range(2)] == [b"begin", b"begin"]
        assert await client.is_closed()
        assert [request.head.path for request in stand.requests] == ["/1", "/2"]


async def test_a_flood_behind_the_kept_request_is_cut() -> None:
    held = Held()
    async with serving(held.stream) as stand, await stand.client() as client:
        await client.send(get("/1"), get("/2"), get("/3"))
        await held.arrived.get()
        with pytest.raises(OSError, match=r"reset|Broken|lost"):
            for _ in range(200):
                await client.send(b"x" * http1.DROP_MAX)
        await held.left.wait()
        assert held.gone == ["gone"]


async def test_a_body_too_large_to_be_kept_closes_after_the_response() -> None:
    held = Held()
    async with serving(held.stream, max_body=10_000_000, bodies=10_000_000) as stand, await stand.client() as client:
        await client.send(get("/1"), POST + b"Content-Length: 900000\r\n\r\n" + b"x" * 900_000)
        await asyncio.sleep(0.02)
        (await held.arrived.get()).sink.finish()
        assert (await client.response()).body == b"begin"
        assert await client.is_closed()
        assert len(stand.requests) == 1


async def test_a_malformed_request_behind_another_is_refused_in_its_turn() -> None:
    held = Held()
    async with serving(held.stream) as stand, await stand.client() as client:
        await client.send(get("/1"), b"GET /2 HTTP/1.1\r\n\r\n")
        await asyncio.sleep(0.02)
        (await held.arrived.get()).sink.finish()
        assert (await client.response()).body == b"begin"
        assert (await client.response()).status == 400
        assert await client.is_closed()
        assert len(stand.refused) == 1


async def test_what_follows_connection_close_is_no_request() -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(get("/1", "Connection: close") + get("/2"))
        assert (await client.response()).document["path"] == "/1"
        assert await client.is_closed()
        assert not stand.refused


async def test_answers_from_within_the_handler_need_no_task() -> None:
    async with serving() as stand, await stand.client() as client:
        stand.server._edge.handler = lambda request: answer(request, OK)
        await client.send(get("/1") + get("/2") + POST + b"Content-Length: 2\r\n\r\nhi" + get("/3"))
        assert [(await client.response()).status for _ in range(4)] == [200] * 4
        assert stand.server.open == 1


# ---------------------------------------------------------------------------------------------------- time limits


async def test_a_head_that_does_not_come_is_a_408() -> None:
    async with serving(head_timeout=0.1) as stand, await stand.client() as client:
        await client.send(b"GET /slow HTTP/1.1\r\nHo", b"st: a")
        response = await client.response()
        assert (response.status, response.document["kind"]) == (408, "request_timeout")
        assert response.document["path"] == "/slow"
        assert await client.is_closed()
        assert len(stand.refused) == 1


async def test_bytes_do_not_prolong_a_head() -> None:
    async with serving(head_timeout=0.1) as stand, await stand.client() as client:
        for _ in range(30):
            await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n" if not _ else b"x: y\r\n")
            await asyncio.sleep(0.01)
            if client.reader._buffer:  # type: ignore[attr-defined]
                break
        assert (await client.response()).status == 408


async def test_the_head_limit_holds_behind_a_response() -> None:
    async with serving(head_timeout=0.1) as stand, await stand.client() as client:
        await client.send(get("/1") + b"GET /2 HT")
        assert (await client.response()).status == 200
        assert (await client.response()).status == 408


async def test_an_idle_connection_is_closed_silently() -> None:
    async with serving(idle_timeout=0.1) as stand, await stand.client() as client:
        await client.send(get("/"))
        assert (await client.response()).status == 200
        assert await client.is_closed()
        assert not stand.refused


async def test_a_connection_without_a_byte_is_closed_silently() -> None:
    async with serving(idle_timeout=0.1) as stand, await stand.client() as client:
        assert await client.is_closed()


async def test_empty_lines_are_no_request() -> None:
    async with serving(idle_timeout=0.15, head_timeout=0.05) as stand, await stand.client() as client:
        await client.send(b"\r\n", b"\r\n")
        assert await client.is_closed()
        assert not stand.refused


async def test_no_limit_of_the_edge_holds_while_the_line_works() -> None:
    held = Held()
    async with (
        serving(held.stream, head_timeout=0.05, body_timeout=0.05, idle_timeout=0.05) as stand,
        await stand.client() as client,
    ):
        await client.send(get("/"))
        request = await held.arrived.get()
        await asyncio.sleep(0.2)
        request.sink.finish()
        assert (await client.response()).body == b"begin"


# -------------------------------------------------------------------------------------------------------- leaving


async def test_a_client_that_leaves_a_stream_is_gone_at_once() -> None:
    held = Held()
    async with serving(held.stream) as stand:
        client = await stand.client()
        await client.send(get("/"))
        request = await held.arrived.get()
        await client.reader.readuntil(b"begin")
        await client.close()
        async with asyncio.timeout(0.3):
            await held.left.wait()
        assert request.sink.gone
        request.sink.write(b"more")
        request.sink.finish()
        request.sink.abort()
        assert held.gone == ["gone"]


async def test_a_client_that_leaves_before_the_response_is_gone_within_a_second() -> None:
    held = Held()
    async with serving(held.silent) as stand:
        client = await stand.client()
        await client.send(get("/"))
        await held.arrived.get()
        await client.close()
        async with asyncio.timeout(1.0):
            await held.left.wait()
        await until(lambda: not stand.server.open, 0.2)


async def test_a_reset_is_seen_at_once() -> None:
    held = Held()
    async with serving(held.silent) as stand:
        client = await stand.client()
        await client.send(get("/"))
        await held.arrived.get()
        sock = client.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.writer.transport.abort()
        async with asyncio.timeout(0.3):
            await held.left.wait()


async def test_a_half_closed_client_gets_a_quick_answer() -> None:
    async def line(request: ClientRequest) -> None:
        await asyncio.sleep(0.05)
        await echo(request)

    async with serving(line) as stand, await stand.client() as client:
        client.writer.write(get("/"))
        client.writer.write_eof()
        assert (await client.response()).document["path"] == "/"
        assert await client.is_closed()


async def test_a_half_closed_client_gets_both_pipelined_answers() -> None:
    async with serving() as stand, await stand.client() as client:
        client.writer.write(get("/1") + get("/2"))
        client.writer.write_eof()
        assert [(await client.response()).document["path"] for _ in range(2)] == ["/1", "/2"]
        assert await client.is_closed()


@pytest.mark.parametrize("sent", [b"", b"GET / HT", POST + b"Content-Length: 5\r\n\r\nhe"])
async def test_fin_in_the_middle_of_a_request_closes(sent: bytes) -> None:
    async with serving() as stand, await stand.client() as client:
        client.writer.write(sent)
        await asyncio.sleep(0.02)
        client.writer.write_eof()
        assert await client.is_closed(0.3)


# ------------------------------------------------------------------------------------------------------ lingering


async def unread(request: ClientRequest) -> None:
    """Refuses without reading the body."""
    answer(request, Reply(401, [JSON], b"{}"))


async def test_an_answer_without_reading_the_body_reaches_a_client_that_sends_on() -> None:
    async with serving(unread, max_body=8_000_000) as stand, await stand.client() as client:
        await client.send(POST + b"Content-Length: 4000000\r\n\r\n")
        response = await client.response()
        assert (response.status, response.headers[b"connection"]) == (401, b"close")
        await client.send(b"x" * 2_000_000, b"x" * 2_000_000)  # no reset meets it
        assert await client.is_closed(0.2)
        await client.close()
        await until(lambda: not stand.server.open, 0.3)


async def test_lingering_ends_without_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "LINGER_S", 0.1)
    async with serving(unread, idle_timeout=0.2) as stand, await stand.client() as client:
        await client.send(POST + b"Content-Length: 50000\r\n\r\n")
        assert (await client.response()).status == 401
        await until(lambda: not stand.server.open, 0.5)


async def test_lingering_ends_for_a_client_that_drips(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "LINGER_S", 0.1)
    monkeypatch.setattr(http1, "LINGER_MAX_S", 0.2)
    async with serving(unread, idle_timeout=0.2) as stand, await stand.client() as client:
        await client.send(POST + b"Content-Length: 50000\r\n\r\n")
        with pytest.raises(OSError, match=r"reset|Broken|lost"):
            async with asyncio.timeout(0.6):
                while True:
                    await client.send(b"x")
                    await asyncio.sleep(0.02)


async def test_lingering_is_bounded_in_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http1, "DROP_MAX", 100_000)
    async with serving(unread) as stand, await stand.client() as client:
        await client.send(POST + b"Content-Length: 999999999\r\n\r\n")
        with pytest.raises(OSError, match=r"reset|Broken|lost"):
            for _ in range(200):
                await client.send(b"x" * 500_000)


async def test_a_small_body_in_the_same_read_keeps_the_connection() -> None:
    async with serving(unread) as stand, await stand.client() as client:
        for _ in range(2):
            await client.send(POST + b"Content-Length: 5\r\n\r\nhello")
            response = await client.response()
            assert response.status == 401
            assert b"connection" not in response.headers


async def test_a_client_that_takes_nothing_of_the_last_response_is_cut() -> None:
    async def line(request: ClientRequest) -> None:
        request.sink.start(200, [], 20_000_000)
        request.sink.write(b"x" * 20_000_000)
        request.sink.finish()

    async with serving(line, idle_timeout=0.1) as stand, await stand.client() as client:
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await client.send(get("/", "Connection: close"))
        await asyncio.sleep(0.05)
        assert stand.server.open == 1
        await until(lambda: not stand.server.open, 1.5)


async def test_a_slow_client_gets_the_last_response_whole() -> None:
    size = 12_000_000

    async def line(request: ClientRequest) -> None:
        request.sink.start(200, [], size)
        request.sink.write(b"x" * size)
        request.sink.finish()

    async with serving(line, idle_timeout=0.1) as stand, await stand.client() as client:
        await client.send(get("/", "Connection: close"))
        await client.reader.readuntil(b"\r\n\r\n")
        for _ in range(8):
            await client.reader.readexactly(size // 8)
            await asyncio.sleep(0.05)
        assert await client.is_closed()


# ---------------------------------------------------------------------------------------------------------- memory


async def test_a_finished_connection_leaves_no_cycle() -> None:
    async with serving() as stand:

        async def round_trip() -> None:
            async with await stand.client() as client:
                await client.send(get("/1"), POST + b"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n")
                assert [(await client.response()).status for _ in range(2)] == [200, 200]
            async with await stand.client() as client:
                await client.send(b"GET / HTTP/1.1\r\n\r\n")
                assert (await client.response()).status == 400

        await round_trip()
        stand.requests.clear()
        stand.refused.clear()
        await asyncio.sleep(0.02)
        gc.collect()
        gc.disable()
        gc.set_debug(gc.DEBUG_SAVEALL)
        try:
            await round_trip()
            stand.requests.clear()
            stand.refused.clear()
            await asyncio.sleep(0.02)
            gc.collect()
            ours = [item for item in gc.garbage if type(item).__module__.startswith(("headrace", "httptools"))]
        finally:
            gc.set_debug(0)
            gc.garbage.clear()
            gc.enable()
        assert not ours
