import asyncio
from dataclasses import replace

import pytest

from headrace.model.problem import Kind, Problem
from headrace.upstream import pool as pool_module
from headrace.upstream.attempt import Attempt
from tests.upstream.wire import (
    Collector,
    Peer,
    answering,
    channel,
    exchange,
    post,
    reply,
    run,
    serving,
    until,
    upstream,
)

OK = answering(reply(b"ok"))


async def begin(attempt: Attempt) -> None:
    await asyncio.wait_for(attempt.reply(), 5)
    collector = Collector()
    attempt.attach(collector)
    await asyncio.wait_for(collector.over.wait(), 5)


def test_last_in_first_out() -> None:
    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            here = channel(server.port)
            several = [stage.attempt(here, post(b"{}")) for _ in range(3)]
            await asyncio.gather(*map(begin, several))
            for attempt in several:
                attempt.close()
            assert stage.pool.idle_connections == stage.pool.open_connections == server.connections == 3
            for _ in range(5):
                await exchange(stage.attempt(here, post(b"{}")))
            idle = next(iter(stage.pool._idle.values()))
            assert [connection.served for connection in idle] == [1, 1, 6]

    run(main())


def test_origins_do_not_mix() -> None:
    async def main() -> None:
        async with serving(OK) as one, serving(OK) as two, upstream() as stage:
            await exchange(stage.attempt(channel(one.port), post(b"{}")))
            await exchange(stage.attempt(channel(two.port), post(b"{}")))
            await exchange(stage.attempt(replace(channel(one.port), name="other"), post(b"{}")))
            assert (one.connections, two.connections) == (1, 1)
            await exchange(stage.attempt(channel(one.port, ca="other"), post(b"{}")))
            assert one.connections == 2

    run(main())


def test_idle_connections_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool_module, "SWEEP_S", 0.02)

    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            await exchange(stage.attempt(channel(server.port, idle=0.05), post(b"{}")))
            await exchange(stage.attempt(channel(server.port, idle=0.05, host="localhost"), post(b"{}")))
            assert stage.pool.idle_connections == 2
            await until(lambda: stage.pool.open_connections == 0)
            assert not stage.pool._idle and stage.pool._sweeper is None

    run(main())


def test_an_expired_connection_is_not_used_before_the_sweep_finds_it() -> None:
    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            for _ in range(2):
                attempt = stage.attempt(channel(server.port, idle=0.01), post(b"{}"))
                await exchange(attempt)
                assert not attempt.reused
                await asyncio.sleep(0.02)
            assert server.connections == 2

    run(main())


@pytest.mark.parametrize("parting", [b"", b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n"])
def test_a_dead_idle_connection_is_noticed_at_once(parting: bytes) -> None:
    async def serve(peer: Peer) -> None:
        await peer.request()
        peer.write(reply(b"ok"))
        await asyncio.sleep(0.01)
        peer.write(parting)

    async def main() -> None:
        async with serving(serve) as server, upstream() as stage:
            await exchange(stage.attempt(channel(server.port), post(b"{}")))
            assert stage.pool.idle_connections == 1
            await until(lambda: stage.pool.open_connections == 0)
            assert stage.pool.idle_connections == 0

    run(main())


def test_connections_are_bounded() -> None:
    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            here = channel(server.port, connections=2)
            most = []

            async def one() -> None:
                attempt = stage.attempt(here, post(b"{}"))
                await begin(attempt)
                most.append(stage.pool.open_connections)
                attempt.close()

            await asyncio.gather(*(one() for _ in range(50)))
            assert max(most) == server.connections == 2

    run(main())


def test_waiting_for_a_share_ends_in_channels_busy() -> None:
    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            here = channel(server.port, connections=1)
            held = stage.attempt(here, post(b"{}"))
            await begin(held)
            busy = await stage.attempt(here, post(b"{}"), 0.01).reply()
            assert isinstance(busy, Problem) and (busy.kind, busy.http_status) == (Kind.CHANNELS_BUSY, 503)
            waiting = asyncio.ensure_future(exchange(stage.attempt(here, post(b"{}"))))
            await asyncio.sleep(0.01)
            held.close()
            _, body, _ = await waiting
            assert body == b"ok" and server.connections == 1

    run(main())


def test_a_failed_connect_gives_its_share_back() -> None:
    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            here = channel(server.port, connections=1)
            await exchange(
                stage.attempt(replace(here, base_url=replace(here.base_url, host="169.254.1.1")), post(b"{}"))
            )
            _, body, _ = await exchange(stage.attempt(here, post(b"{}"), 0.01))
            assert body == b"ok"

    run(main())


def test_a_share_is_not_taken_by_a_dead_idle_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        async with serving(OK) as server, upstream() as stage:
            here = channel(server.port, connections=1, idle=0.005)
            for _ in range(3):
                await exchange(stage.attempt(here, post(b"{}"), 0.05))
                await asyncio.sleep(0.01)
            assert server.connections == 3

    run(main())
