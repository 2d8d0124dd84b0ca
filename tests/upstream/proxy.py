"""A small CONNECT proxy in the loop of the test, with what it saw."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress

Answer = Callable[["Proxied"], Awaitable[bool]]


class Proxied:
    """One connection to the proxy, after its CONNECT has been read."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, head: bytes) -> None:
        self.reader = reader
        self.writer = writer
        self.head = head

    @property
    def target(self) -> str:
        return self.head.split(b" ")[1].decode()


class Connections:
    """A running proxy. `heads` are the CONNECT requests; `leads` what the names it is asked for lead to."""

    def __init__(self) -> None:
        self.port = 0
        self.heads: list[bytes] = []
        self.leads: dict[str, tuple[str, int]] = {}


async def established(one: Proxied) -> bool:
    """A tunnel."""
    one.writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    return True


def answering(data: bytes, tunnel: bool = False) -> Answer:
    """These bytes; then a tunnel, or the connection's end."""

    async def answer(one: Proxied) -> bool:
        one.writer.write(data)
        return tunnel

    return answer


async def silent(one: Proxied) -> bool:
    """No answer, as long as the client stays."""
    with suppress(ConnectionError):
        await one.reader.read()
    return False


@asynccontextmanager
async def proxying(answer: Answer = established, host: str = "127.0.0.1") -> AsyncIterator[Connections]:
    """A proxy that resolves by `leads`, else takes the target as it stands."""
    seen = Connections()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            seen.heads.append(head)
            one = Proxied(reader, writer, head)
            if await answer(one):
                await tunnel(one, seen.leads)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(connected, host, 0)
    seen.port = server.sockets[0].getsockname()[1]
    try:
        yield seen
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await asyncio.sleep(0.005)


async def tunnel(one: Proxied, leads: dict[str, tuple[str, int]]) -> None:
    """Bytes both ways until either side ends."""
    host, _, port = one.target.rpartition(":")
    reader, writer = await asyncio.open_connection(*leads.get(one.target, (host.strip("[]"), int(port))))
    try:
        await asyncio.gather(_pass(one.reader, writer), _pass(reader, one.writer))
    finally:
        writer.close()


async def _pass(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
