"""Requests as they come off the wire: what is served, what is refused and how; and that the server serves on."""

import asyncio
from contextlib import suppress
from random import Random

import pytest

from headrace.http.head import MAX_FIELDS, MAX_HEAD
from headrace.model.ports import ClientRequest
from tests.listener.stand import Stand, serving, until

GOOD = b"GET /good HTTP/1.1\r\nHost: a\r\n\r\n"
POST = b"POST /p HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"

REFUSED = [
    # framing pairs, smuggling
    (POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    (POST + b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400),
    (POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400),
    (POST + b"Content-Length: 5, 6\r\n\r\nhello", 400),
    (POST + b"Content-Length: +5\r\n\r\nhello", 400),
    (POST + b"Content-Length: -5\r\n\r\nhello", 400),
    (POST + b"Content-Length: 0x5\r\n\r\nhello", 400),
    (POST + b"Content-Length: 5 5\r\n\r\nhello", 400),
    (POST + b"Content-Length: \r\n\r\nhello", 400),
    (POST + b"Content-Length: 99999999999999999999\r\n\r\nhello", 400),
    (POST + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501),
    (POST + b"Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n", 501),
    (POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 501),
    (POST + b"Transfer-Encoding: identity\r\n\r\n", 501),
    (POST + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501),
    (POST + b"Transfer-Encoding:\r\n\r\n0\r\n\r\n", 501),
    (POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400),
    (POST + b"Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 400),
    (POST + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", 501),
    (b"POST /p HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400),
    # lines
    (b"GET /p HTTP/1.1\r\nHost: a\r\nX: a\r\n b\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a\r\n X: a\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\n Host: a\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\nHost: a\n\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a\r\nX: a\x01b\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a\r\nX\xff: a\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a\r\n: a\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a\r\nnothing\r\n\r\n", 400),
    # Host
    (b"GET /p HTTP/1.1\r\n\r\n", 400),
    (b"GET /p HTTP/1.0\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
    (b"GET /p HTTP/1.1\r\nHost: u@a\r\n\r\n", 400),
    # versions
    (b"GET /p HTTP/1.2\r\nHost: a\r\n\r\n", 505),
    (b"GET /p HTTP/2.0\r\nHost: a\r\n\r\n", 505),
    (b"GET /p HTTP/3.0\r\nHost: a\r\n\r\n", 505),
    (b"GET /p HTTP/0.9\r\nHost: a\r\n\r\n", 505),
    (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    (b"GET /p HTTP/1.10\r\nHost: a\r\n\r\n", 400),
    (b"GET /p http/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET /p\r\n\r\n", 400),
    # no HTTP at all
    (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    (b"SSH-2.0-OpenSSH_9.2\r\n", 400),
    (b"\0\0\0\0", 400),
    (b"BREW /p HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"get /p HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    # targets and methods
    (b"CONNECT a:443 HTTP/1.1\r\nHost: a\r\n\r\n", 405),
    (b"TRACE /p HTTP/1.1\r\nHost: a\r\n\r\n", 405),
    (b"GET //evil HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET /v1/../x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET /v1/%2e%2E/x HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET /a\x01 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET /a\0 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET /\xc3\xa4 HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET p HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    (b"GET ftp://a/p HTTP/1.1\r\nHost: a\r\n\r\n", 400),
    # sizes
    (b"GET /p HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * MAX_FIELDS + b"\r\n", 431),
    (b"GET /p HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * (MAX_FIELDS + 1), 431),
    (b"GET /p HTTP/1.1\r\nHost: a\r\nX: " + b"y" * MAX_HEAD, 431),
    (b"GET /" + b"y" * MAX_HEAD, 431),
    # Expect
    (POST + b"Content-Length: 5\r\nExpect: 200-ok\r\n\r\n", 417),
]


@pytest.mark.parametrize(("request_bytes", "status"), REFUSED, ids=lambda value: repr(value)[-60:])
async def test_refuses(request_bytes: bytes, status: int) -> None:
    async with serving() as stand:
        async with await stand.client() as client:
            await client.send(request_bytes)
            response = await client.response()
            assert response.status == status
            assert response.document["kind"] in {"bad_request", "method_not_allowed"}
            assert response.document["message"].endswith(".")
            assert response.headers[b"connection"] == b"close"
            assert await client.is_closed()
        assert not stand.requests
        assert [problem.http_status for _, problem in stand.refused] == [status]
        assert await stand.works()


@pytest.mark.parametrize(
    ("request_bytes", "path"),
    [
        (b"GET /v1/x HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", "/v1/x"),
        (b"GET /v1/x HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n", "/v1/x"),
        (b"GET /../x HTTP/1.1\r\nHost: a\r\nX : a\r\n\r\n", None),
        (b"\x16\x03\x01", None),
    ],
)
async def test_refusal_knows_the_path_where_there_is_one(request_bytes: bytes, path: str | None) -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(request_bytes)
        assert (await client.response()).document["path"] == path


BAD_CHUNKS = [
    b"g\r\nhello\r\n0\r\n\r\n",
    b"-5\r\nhello\r\n0\r\n\r\n",
    b"+5\r\nhello\r\n0\r\n\r\n",
    b"0x5\r\nhello\r\n0\r\n\r\n",
    b"5 \r\nhello\r\n0\r\n\r\n",
    b"\r\nhello\r\n0\r\n\r\n",
    b"5\nhello\n0\n\n",
    b"5\r\nhelloX\r\n0\r\n\r\n",
    b"fffffffffffffffff\r\nhello",
    b'5;a="x\ny"\r\nhello\r\n0\r\n\r\n',
    b"5\r\nhello\r\n0\r\nContent-Length: 5\r\n\r\n",
    b"5\r\nhello\r\n0\r\nTransfer-Encoding: gzip\r\n\r\n",
]


@pytest.mark.parametrize("chunks", BAD_CHUNKS)
async def test_a_bad_chunk_is_told_to_the_line(chunks: bytes) -> None:
    async with serving() as stand:
        async with await stand.client() as client:
            await client.send(CHUNKED, chunks)
            response = await client.response()
            assert (response.status, response.document["kind"]) == (400, "bad_request")
            assert await client.is_closed()
        assert not stand.refused
        assert await stand.works()


async def asked(stand: Stand, *pieces: bytes) -> dict[str, str]:
    """What the echo line saw of a request."""
    async with await stand.client() as client:
        await client.send(*pieces)
        response = await client.response()
        assert response.status == 200
        return response.document


@pytest.mark.parametrize(
    ("request_bytes", "seen"),
    [
        (GOOD, ("GET", "/good", "", "")),
        (b"\r\n\r\n" + GOOD, ("GET", "/good", "", "")),
        (b"GET http://evil.example/p?q=1 HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", "/p", "q=1", "")),
        (b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", ("OPTIONS", "*", "", "")),
        (b"GET /a%2Fb:c?x=%20&y=%zz HTTP/1.1\r\nHost: a\r\n\r\n", ("GET", "/a%2Fb:c", "x=%20&y=%zz", "")),
        (POST + b"Content-Length: 5\r\n\r\nhello", ("POST", "/p", "", "hello")),
        (POST + b"Content-Length: 0\r\n\r\n", ("POST", "/p", "", "")),
        (POST + b"content-LENGTH:   5  \r\n\r\nhello", ("POST", "/p", "", "hello")),
        (CHUNKED + b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n", ("POST", "/p", "", "hello!")),
        (CHUNKED + b"5;a=b;c\r\nhello\r\n0;d\r\nTrailer: x\r\nHost: b\r\n\r\n", ("POST", "/p", "", "hello")),
        (CHUNKED + b"0005\r\nhello\r\n0\r\n\r\n", ("POST", "/p", "", "hello")),
        (CHUNKED.replace(b": chunked", b":  CHUNKED "), ("POST", "/p", "", "")),
        (POST + b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 5\r\n\r\nhello", ("POST", "/p", "", "hello")),
        (CHUNKED.replace(b"\r\n\r\n", b"\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n"), ("POST", "/p", "", "")),
        (POST + b"Upgrade: foo\r\nContent-Length: 5\r\n\r\nhello", ("POST", "/p", "", "hello")),
        (b"GET /ws HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n", ("GET", "/ws", "", "")),
        (b"GET /p HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * (MAX_FIELDS - 1) + b"\r\n", ("GET", "/p", "", "")),
        (b"GET /p HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", ("GET", "/p", "", "")),
    ],
    ids=lambda value: repr(value)[-60:],
)
@pytest.mark.parametrize("apart", [False, True], ids=["at-once", "byte-by-byte"])
async def test_serves(request_bytes: bytes, seen: tuple[str, str, str, str], apart: bool) -> None:
    if (
        request_bytes.endswith(b"chunked\r\n\r\n")
        or b"CHUNKED" in request_bytes
        or b"chunked\r\nUpgrade" in request_bytes
    ):
        request_bytes += b"0\r\n\r\n"
    async with serving() as stand, await stand.client() as client:
        for _ in range(2):  # the second on the same connection: the parser is in step
            if apart:
                for byte in request_bytes:
                    await client.send(bytes([byte]))
                    await asyncio.sleep(0)
            else:
                await client.send(request_bytes)
            document = (await client.response()).document
            assert (document["method"], document["path"], document["query"], document["body"]) == seen


async def test_headers_reach_the_line_in_lower_case_and_trimmed() -> None:
    async with serving() as stand:
        await stand.ask(
            b"GET / HTTP/1.1\r\nHost: a\r\nX-One:  b c \t\r\nX-Two:\r\nx-one: \xff\r\nX-Three: 1", b"2 \r\n\r\n"
        )
        assert stand.requests[0].head.headers == [
            (b"host", b"a"), (b"x-one", b"b c"), (b"x-two", b""), (b"x-one", b"\xff"), (b"x-three", b"12")
        ]  # fmt: skip
        assert stand.requests[0].head.peer == "127.0.0.1"


async def test_a_head_of_just_the_limit_passes_and_one_byte_more_does_not() -> None:
    start = b"GET / HTTP/1.1\r\nHost: a\r\nX: "
    end = b"\r\n\r\n"
    room = MAX_HEAD - len(start) - len(end)
    async with serving() as stand:
        for filler, status in ((b"y" * room, 200), (b"y" * (room + 1), 431)):
            for pieces in ((start + filler + end,), (start, filler, end), (start + filler, end)):
                async with await stand.client() as client:
                    await client.send(*pieces)
                    assert (await client.response()).status == status


async def test_a_head_is_counted_as_it_is_fed() -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\nX: ")
        for _ in range(MAX_HEAD // 4096):
            await client.send(b"y" * 4096)
        assert (await client.response()).status == 431


async def test_a_large_body_in_the_same_read_is_not_counted_as_head() -> None:
    body = b"x" * 90_000
    async with serving() as stand:
        document = await asked(stand, POST + b"Content-Length: 90000\r\n\r\n" + body)
        assert len(document["body"]) == 90_000


@pytest.mark.parametrize("wrapping", [b"5;" + b"x" * 70_000, b"1\r\na\r\n0\r\nX: " + b"y" * 140_000])
async def test_chunk_extensions_and_trailers_are_bounded(wrapping: bytes) -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(CHUNKED, wrapping[:70_000], wrapping[70_000:] or b"y")
        assert (await client.response()).status == 431


async def test_small_chunks_are_not_taken_for_wrapping() -> None:
    async with serving() as stand:
        document = await asked(stand, CHUNKED, b"1\r\nx\r\n" * 40_000 + b"0\r\n\r\n")
        assert len(document["body"]) == 40_000


async def test_after_a_refusal_nothing_is_read_as_a_request() -> None:
    async with serving() as stand:
        raw = await stand.ask(b"GET / HTTP/1.1\r\n\r\n" + GOOD, GOOD)
        assert raw.count(b"HTTP/1.1 ") == 1
        assert not stand.requests


SAMPLES = [
    GOOD,
    POST + b"Content-Length: 5\r\n\r\nhello",
    CHUNKED + b"5;a=b\r\nhello\r\n0\r\nX: y\r\n\r\n",
    POST + b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 5\r\n\r\nhello",
    POST + b"Expect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
]


@pytest.mark.parametrize("seed", range(5))
async def test_mangled_requests_harm_nobody(seed: int) -> None:
    """Requests with bytes changed, doubled or lost, in random packets: an answer or a close, never a fault."""
    random = Random(seed)
    async with serving(body_timeout=0.05, head_timeout=0.05) as stand:

        async def one() -> None:
            data = bytearray(b"".join(random.choices(SAMPLES, k=random.randint(1, 3))))
            for _ in range(random.randint(0, 4)):
                place = random.randrange(len(data))
                data[place : place + random.randint(0, 3)] = random.choice(
                    [b"", b"\r\n", b"\0", b"0", b" ", b"\xff", b":"]
                )
            cut = random.randrange(len(data))
            async with await stand.client() as client:
                with suppress(OSError):
                    await client.send(bytes(data[:cut]), bytes(data[cut:]))
                    await client.read_quiet(0.02)

        await asyncio.gather(*(one() for _ in range(40)))
        assert await stand.works()
        await until(lambda: stand.server.open == 0 and not stand.tasks)
        assert stand.server.bodies == 0


async def test_upgrade_with_a_body_leaves_the_connection_in_step() -> None:
    upgrade = POST + b"Upgrade: h2c\r\nConnection: Upgrade, HTTP2-Settings\r\nContent-Length: 5\r\n\r\n"
    async with serving() as stand, await stand.client() as client:
        await client.send(upgrade + b"he", b"lloGET /next HTTP/1.1\r\nHost: a\r\n\r\n")
        assert (await client.response()).document["body"] == "hello"
        assert (await client.response()).document["path"] == "/next"


async def test_upgrade_with_connection_close_is_obeyed() -> None:
    upgrade = POST + b"Upgrade: h2c\r\nConnection: Upgrade, close\r\nContent-Length: 5\r\n\r\nhello"
    async with serving() as stand, await stand.client() as client:
        await client.send(upgrade)
        response = await client.response()
        assert response.document["body"] == "hello"
        assert response.headers[b"connection"] == b"close"
        assert await client.is_closed()


async def test_parser_is_given_back_while_a_stream_runs() -> None:
    async def line(request: ClientRequest) -> None:
        request.sink.start(200, [], None)
        request.sink.write(b"x")

    async with serving(line) as stand, await stand.client() as client:
        await client.send(GOOD)
        await client.reader.readuntil(b"x\r\n")
        (connection,) = stand.server._edge.clients
        assert connection._parser is None  # type: ignore[attr-defined]
        stand.requests[0].sink.finish()
        await client.reader.readuntil(b"0\r\n\r\n")
        await client.send(GOOD)
        assert await client.reader.readuntil(b"x\r\n")


async def test_a_fault_of_the_handler_is_not_blamed_on_the_client() -> None:
    """Two requests in one read: the first is served from within the parser's callback."""

    raised: list[object] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context["exception"]))
    async with serving() as stand:

        def broken(request: ClientRequest) -> None:
            raise ZeroDivisionError

        stand.server._edge.handler = broken
        async with await stand.client() as client:
            await client.send(GOOD + GOOD)
            assert await client.is_closed()
        assert not stand.refused
    assert raised
