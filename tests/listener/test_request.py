"""A request's body: whole, refused, too slow, or never asked for."""

import asyncio
import gzip
import random
import tracemalloc

import pytest

from headrace.http.coding import decode_body
from headrace.listener import request as request_module
from headrace.model.ports import ClientRequest
from headrace.model.problem import Kind, Problem
from headrace.model.request import Reply
from tests.listener.stand import JSON, SETTINGS, answer, echo, refuse, serving, until

POST = b"POST /p HTTP/1.1\r\nHost: a\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
EXPECT = POST + b"Content-Length: 5\r\nExpect: 100-continue\r\n\r\n"
LIMIT = SETTINGS.max_body


def sized(size: int) -> bytes:
    return POST + b"Content-Length: %d\r\n\r\n" % size


def chunked(*sizes: int) -> bytes:
    return CHUNKED + b"".join(b"%x\r\n%b\r\n" % (size, b"x" * size) for size in sizes) + b"0\r\n\r\n"


@pytest.mark.parametrize("sent", [sized(LIMIT) + b"x" * LIMIT, chunked(LIMIT - 1, 1)])
async def test_a_body_of_just_the_limit_is_taken(sent: bytes) -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(sent)
        assert len((await client.response()).document["body"]) == LIMIT


@pytest.mark.parametrize(
    "sent", [sized(LIMIT + 1), sized(LIMIT + 1) + b"x" * (LIMIT + 1), sized(2**64 - 1), chunked(LIMIT, 1, 5)]
)
async def test_one_byte_more_is_a_413(sent: bytes) -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(sent)
        response = await client.response()
        assert (response.status, response.document["kind"]) == (413, "payload_too_large")
        assert str(LIMIT) in response.document["message"]
        assert stand.server.bodies == 0


async def test_a_known_length_is_refused_before_a_byte_is_read() -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(sized(LIMIT + 1))
        assert (await client.response()).status == 413


async def test_the_worker_wide_budget_is_a_503() -> None:
    """Case B073."""
    kept: list[ClientRequest] = []

    async def line(request: ClientRequest) -> None:
        body = await request.body()
        if isinstance(body, Problem):
            assert body.retry_after_s == 1.0
            answer(request, refuse(request.head, body))
        else:
            kept.append(request)

    async with (
        serving(line, bodies=100) as stand,
        await stand.client() as one,
        await stand.client() as two,
        await stand.client() as three,
    ):
        await one.send(sized(60) + b"x" * 60)
        await asyncio.sleep(0.02)
        assert stand.server.bodies == 60
        await two.send(sized(41))
        response = await two.response()
        assert (response.status, response.document["kind"]) == (503, "overloaded")
        await three.send(chunked(40, 1))
        assert (await three.response()).status == 503
        assert stand.server.bodies == 60
        kept[0].free_body()
        kept[0].free_body()
        assert stand.server.bodies == 0
        answer(kept[0], Reply(200, [JSON], b"{}"))
        await two.close()


async def test_the_budget_is_given_back_when_the_exchange_ends_or_the_client_leaves() -> None:
    async def line(request: ClientRequest) -> None:
        await request.body()
        if request.head.path == "/p":
            answer(request, Reply(200, [JSON], b"{}"))

    async with serving(line) as stand:
        async with await stand.client() as client:
            await client.send(sized(5) + b"hello")
            await client.response()
            assert stand.server.bodies == 0
            await client.send(sized(5).replace(b"/p", b"/q") + b"hello")
            await asyncio.sleep(0.02)
            assert stand.server.bodies == 5
            client.writer.transport.abort()
        await until(lambda: not stand.server.bodies, 1.0)


async def test_continue_is_sent_only_when_the_line_asks() -> None:
    asked = asyncio.Event()

    async def line(request: ClientRequest) -> None:
        await asked.wait()
        await echo(request)

    async with serving(line) as stand, await stand.client() as client:
        await client.send(EXPECT)
        assert await client.read_quiet(0.05) == b""
        asked.set()
        assert (await client.response()).status == 100
        await client.send(b"hello")
        assert (await client.response()).document["body"] == "hello"


async def test_no_continue_for_a_client_that_has_begun_or_speaks_1_0() -> None:
    async with serving() as stand:
        async with await stand.client() as client:
            await client.send(EXPECT + b"he")
            await asyncio.sleep(0.02)
            await client.send(b"llo")
            assert (await client.response()).status == 200
        async with await stand.client() as client:
            await client.send(EXPECT.replace(b"1.1", b"1.0"), b"hello")
            assert (await client.response()).status == 200


@pytest.mark.parametrize("length", [b"0", b"999999999"])
async def test_continue_is_not_sent_for_nothing_or_for_too_much(length: bytes) -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(EXPECT.replace(b"5", length, 1))
        assert (await client.response()).status in {200, 413}


async def test_a_refused_expectation_closes_without_continue() -> None:
    async def line(request: ClientRequest) -> None:
        answer(request, Reply(401, [JSON], b"{}"))

    async with serving(line) as stand, await stand.client() as client:
        await client.send(EXPECT)
        response = await client.response()
        assert (response.status, response.headers[b"connection"]) == (401, b"close")
        assert await client.is_closed()


async def test_a_body_that_stops_coming_is_a_408() -> None:
    async with serving(body_timeout=0.1) as stand, await stand.client() as client:
        await client.send(sized(5), b"he")
        response = await client.response()
        assert (response.status, response.document["kind"]) == (408, "request_timeout")
        assert response.headers[b"connection"] == b"close"
        assert not stand.refused


async def test_the_body_limit_is_between_bytes() -> None:
    async with serving(body_timeout=0.15) as stand, await stand.client() as client:
        await client.send(sized(8))
        for _ in range(8):
            await asyncio.sleep(0.04)
            await client.send(b"x")
        assert (await client.response()).document["body"] == "x" * 8


async def test_a_body_that_nobody_asks_for_is_not_read_without_end() -> None:
    asked = asyncio.Event()

    async def line(request: ClientRequest) -> None:
        await asked.wait()
        await echo(request)

    size = 20_000_000
    async with serving(line, max_body=size, bodies=size) as stand, await stand.client() as client:
        sending = asyncio.ensure_future(client.send(sized(size) + b"x" * size))
        await asyncio.sleep(0.1)
        assert 0 < stand.server.bodies < request_module.AHEAD + 400_000
        asked.set()
        await sending
        assert len((await client.response()).document["body"]) == size


async def test_a_client_that_leaves_its_body_unfinished() -> None:
    found: list[bytes | Problem] = []

    async def line(request: ClientRequest) -> None:
        found.append(await request.body())
        found.append(await request.body())
        assert request.sink.gone

    async with serving(line) as stand:
        client = await stand.client()
        await client.send(sized(5) + b"he")
        await asyncio.sleep(0.02)
        await client.close()
        await until(lambda: len(found) == 2, 0.5)
        assert all(isinstance(item, Problem) and item.kind is Kind.BAD_REQUEST for item in found)


async def test_a_line_that_gives_up_waiting_harms_nobody() -> None:
    async def line(request: ClientRequest) -> None:
        try:
            async with asyncio.timeout(0.05):
                await request.body()
        except TimeoutError:
            answer(request, Reply(503, [JSON], b"{}"))

    async with serving(line) as stand, await stand.client() as client:
        await client.send(sized(5), b"he")
        assert (await client.response()).status == 503
        await client.send(b"llo")
        assert await client.is_closed(0.2)


async def test_facts_of_the_request() -> None:
    async with serving() as stand, await stand.client() as client:
        await client.send(sized(5) + b"hello")
        await client.response()
        await client.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
        await client.response()
        one, two = stand.requests
        assert (one.head.has_body, two.head.has_body) == (True, False)
        assert one.began < two.began


async def test_decoded_bytes_are_charged_until_they_are_freed() -> None:
    found: list[bytes | Problem] = []
    kept: list[ClientRequest] = []

    async def line(request: ClientRequest) -> None:
        body = await request.body()
        assert isinstance(body, bytes)
        loop = asyncio.get_running_loop()
        found.append(await loop.run_in_executor(None, decode_body, body, b"gzip", 3_000_000, request.charge))
        kept.append(request)

    bomb = gzip.compress(b"x" * 3_000_000)
    async with (
        serving(line, bodies=5_000_000) as stand,
        await stand.client() as one,
        await stand.client() as two,
        await stand.client() as three,
    ):
        await one.send(sized(len(bomb)) + bomb)
        await until(lambda: len(found) == 1)
        assert found[0] == b"x" * 3_000_000
        assert stand.server.bodies == 3_000_000, "and the encoded bytes are gone"
        await two.send(sized(len(bomb)) + bomb)
        await until(lambda: len(found) == 2)
        problem = found[1]
        assert isinstance(problem, Problem)
        assert (problem.kind, problem.retry_after_s) == (Kind.OVERLOADED, 1.0)
        assert stand.server.bodies == 3_000_000 + len(bomb)
        kept[1].free_body()
        assert stand.server.bodies == 3_000_000
        late = kept[1].charge(5)
        assert late is not None and stand.server.bodies == 3_000_000, "a thread that is still at work leaves nothing"
        kept[0].free_body()
        assert stand.server.bodies == 0
        await three.send(sized(len(bomb)) + bomb)
        await until(lambda: len(found) == 3)
        assert found[2] == found[0]
        for request in kept:
            answer(request, Reply(200, [JSON], b"{}"))
            assert request.charge(5) is not None


async def test_a_body_of_tiny_chunks_costs_about_what_is_charged() -> None:
    asked = asyncio.Event()
    count = 100_000
    found: list[bytes | Problem] = []

    async def line(request: ClientRequest) -> None:
        await asked.wait()
        found.append(await request.body())
        answer(request, Reply(200, [JSON], b"{}"))

    async with serving(line, max_body=1_000_000, bodies=1_000_000) as stand, await stand.client() as client:
        await client.send(CHUNKED)
        await asyncio.sleep(0.02)
        piece = b"2\r\nab\r\n" * 1000
        tracemalloc.start()
        try:
            for _ in range(count // 1000):
                await client.send(piece)
                await asyncio.sleep(0)
            await until(lambda: stand.server.bodies == 2 * count, 5.0)
            assert tracemalloc.get_traced_memory()[0] < 2 * stand.server.bodies + 100_000
        finally:
            tracemalloc.stop()
        asked.set()
        await client.send(b"0\r\n\r\n")
        assert (await client.response()).status == 200
        assert found == [b"ab" * count]


async def test_chunks_of_any_sizes_stay_in_order() -> None:
    rng = random.Random(3)
    sizes = [rng.choice([1, 2, 700, request_module.SMALL - 1, request_module.SMALL, 5000]) for _ in range(600)]
    content = rng.randbytes(sum(sizes))
    sent, at = [CHUNKED], 0
    for size in sizes:
        sent.append(b"%x\r\n%b\r\n" % (size, content[at : at + size]))
        at += size
    async with serving(max_body=10_000_000, bodies=10_000_000) as stand, await stand.client() as client:
        await client.send(b"".join(sent) + b"0\r\n\r\n")
        assert (await client.response()).document["body"].encode("latin-1") == content
