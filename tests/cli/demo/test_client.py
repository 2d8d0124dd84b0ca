"""The demo's client against a scripted peer."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

import pytest

from headrace.cli.demo import client
from headrace.cli.demo.client import Answer, Arrival, ClientError, ask
from headrace.model.settings import Address

HEAD = b"HTTP/1.1 200 OK\r\nX-Request-Id: hr_1\r\nTransfer-Encoding: chunked\r\n\r\n"


def framed(data: bytes) -> bytes:
    return f"{len(data):x}\r\n".encode() + data + b"\r\n"


async def exchange(writes: Sequence[bytes], pause_s: float = 0.0) -> tuple[Answer, bytes, list[Arrival]]:
    """What the client makes of these writes, what it sent, and what it called back with."""
    seen = b""
    served = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        seen = await reader.readuntil(b"\r\n\r\n") + await reader.readexactly(4)
        with suppress(OSError):
            for data in writes:
                writer.write(data)
                await writer.drain()
                await asyncio.sleep(pause_s)
            writer.close()
            await writer.wait_closed()
        served.set()

    arrivals: list[Arrival] = []
    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        try:
            answer = await ask(Address(host, port), "/v1/x", {"a": "b"}, b"body", arrivals.append)
        finally:
            await served.wait()
    return answer, seen, arrivals


def test_the_request_is_whole() -> None:
    _, seen, _ = asyncio.run(exchange([HEAD, b"0\r\n\r\n"]))
    head, _, body = seen.partition(b"\r\n\r\n")
    first, *fields = head.split(b"\r\n")
    assert first == b"POST /v1/x HTTP/1.1"
    assert {b"a: b", b"content-length: 4", b"connection: close"} <= set(fields)
    assert body == b"body"


def test_events_come_one_by_one_however_they_are_cut() -> None:
    body = b"data: 1\n\n: ping\n\ndata: 2\r\n\r\nrest"
    chunks = [framed(body[start : start + 4]) for start in range(0, len(body), 4)]
    answer, _, arrivals = asyncio.run(exchange([HEAD, *chunks, b"0\r\n\r\n"]))
    assert (answer.status, answer.headers["x-request-id"]) == (200, "hr_1")
    assert [arrival.data for arrival in answer.arrivals] == [b"data: 1\n\n", b": ping\n\n", b"data: 2\r\n\r\n", b"rest"]
    assert answer.body == body
    assert arrivals == answer.arrivals


def test_arrivals_tell_when() -> None:
    writes = [HEAD, framed(b"data: 1\n\n"), framed(b"data: 2\n\n"), b"0\r\n\r\n"]
    answer, _, _ = asyncio.run(exchange(writes, 0.05))
    first, second = answer.arrivals
    assert 0.0 < first.at_s < second.at_s
    assert second.at_s - first.at_s > 0.03


def test_a_body_with_a_length() -> None:
    answer, _, _ = asyncio.run(exchange([b"HTTP/1.1 404 Not Found\r\nContent-Length: 3\r\n\r\n{ }"]))
    assert (answer.status, answer.body) == (404, b"{ }")


@pytest.mark.parametrize(
    ("writes", "message"),
    [
        ([HEAD, b"5\r\nab"], "closed within"),
        ([HEAD, framed(b"data: 1\n\n")], "closed within"),
        ([b"HTTP/1.1 200 OK\r\n"], "closed within"),
        ([b"a" * 70_000], "head is too long"),
        ([HEAD, b"zz\r\n"], "no HTTP"),
        ([b"SSH-2.0\r\n\r\n"], "no HTTP"),
    ],
)
def test_a_response_that_does_not_end_well_is_an_error(writes: list[bytes], message: str) -> None:
    with pytest.raises(ClientError, match=message):
        asyncio.run(exchange(writes))


def test_a_response_that_does_not_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "TIMEOUT_S", 0.05)
    with pytest.raises(ClientError, match="did not end"):
        asyncio.run(exchange([HEAD], 0.15))


def test_nobody_listens() -> None:
    async def nobody() -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        host, port = server.sockets[0].getsockname()
        server.close()
        await server.wait_closed()
        await ask(Address(host, port), "/", {}, b"", lambda arrival: None)

    with pytest.raises(ClientError, match="connection failed"):
        asyncio.run(nobody())
