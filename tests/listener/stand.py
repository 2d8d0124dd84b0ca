"""A server on a free port with a small line behind it, and raw clients."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace

from headrace.listener.server import Server
from headrace.model.ports import ClientRequest
from headrace.model.problem import Problem
from headrace.model.request import Reply, RequestHead
from headrace.model.settings import Address, ServerSettings

Line = Callable[[ClientRequest], Awaitable[None]]

SETTINGS = ServerSettings(
    listen=(Address("127.0.0.1", 0),),
    head_timeout=5.0,
    body_timeout=5.0,
    idle_timeout=5.0,
    max_body=100_000,
    bodies=200_000,
)
JSON = (b"content-type", b"application/json")


async def until(condition: Callable[[], object], within_s: float = 1.0) -> None:
    """Wait until something holds that tells nobody of itself."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.003)


def refuse(head: RequestHead | None, problem: Problem) -> Reply:
    """The dialect of these tests."""
    document = {"kind": problem.kind.value, "message": problem.message, "path": head.path if head else None}
    return Reply(problem.http_status, [JSON], json.dumps(document).encode())


def answer(request: ClientRequest, reply: Reply) -> None:
    """One whole reply."""
    request.sink.start(reply.status, reply.headers, len(reply.body))
    request.sink.write(reply.body)
    request.sink.finish()


async def echo(request: ClientRequest) -> None:
    """Answers with what it was asked."""
    body = await request.body()
    if isinstance(body, Problem):
        answer(request, refuse(request.head, body))
        return
    head = request.head
    document = {"method": head.method, "path": head.path, "query": head.query, "body": body.decode("latin-1")}
    request.free_body()
    answer(request, Reply(200, [JSON], json.dumps(document).encode()))


@dataclass
class Stand:
    """A running server and what it saw."""

    server: Server
    requests: list[ClientRequest] = field(default_factory=list)
    refused: list[tuple[RequestHead | None, Problem]] = field(default_factory=list)
    tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def address(self) -> Address:
        """Its first address."""
        return self.server.addresses[0]

    async def client(self) -> "Client":
        """A new connection."""
        if self.address.path:
            return Client(*await asyncio.open_unix_connection(self.address.path))
        return Client(*await asyncio.open_connection(self.address.host, self.address.port))

    async def works(self) -> bool:
        """Whether it still serves."""
        async with await self.client() as client:
            await client.send(b"GET /good HTTP/1.1\r\nHost: a\r\n\r\n")
            return (await client.response()).status == 200

    async def ask(self, *pieces: bytes) -> bytes:
        """Send on a new connection, each piece apart, and read until the server closes or is quiet."""
        async with await self.client() as client:
            await client.send(*pieces)
            return await client.read_quiet()


class Client:
    """A raw client."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def __aenter__(self) -> "Client":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def close(self) -> None:
        """FIN, or nothing where the server was first."""
        self.writer.close()
        with suppress(OSError):
            await self.writer.wait_closed()

    async def send(self, *pieces: bytes) -> None:
        """Each piece in a packet of its own."""
        for number, piece in enumerate(pieces):
            if number:
                await asyncio.sleep(0.01)
            self.writer.write(piece)
            await self.writer.drain()

    async def response(self, method: str = "GET") -> "Response":
        """The next response."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        line, *fields = head[:-4].split(b"\r\n")
        headers = {name.lower(): value for name, _, value in (item.partition(b": ") for item in fields)}
        status = int(line.split()[1])
        if method == "HEAD" or status in {100, 204, 304}:
            return Response(status, headers, b"")
        if b"content-length" in headers:
            return Response(status, headers, await self.reader.readexactly(int(headers[b"content-length"])))
        if headers.get(b"transfer-encoding") == b"chunked":
            return Response(status, headers, await self._chunks())
        return Response(status, headers, await self.reader.read())

    async def _chunks(self) -> bytes:
        body = b""
        while size := int(await self.reader.readuntil(b"\r\n"), 16):
            body += (await self.reader.readexactly(size + 2))[:-2]
        assert await self.reader.readexactly(2) == b"\r\n"
        return body

    async def read_quiet(self, quiet_s: float = 0.1) -> bytes:
        """What comes until EOF or silence."""
        found = b""
        while True:
            try:
                async with asyncio.timeout(quiet_s):
                    data = await self.reader.read(65536)
            except TimeoutError:
                return found
            if not data:
                return found
            found += data

    async def is_closed(self, within_s: float = 1.0) -> bool:
        """Whether the server ends the connection, by FIN or RST, without another byte."""
        try:
            async with asyncio.timeout(within_s):
                return await self.reader.read(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False

    async def is_reset(self, within_s: float = 1.0) -> bool:
        """Whether the server resets the connection (RST)."""
        try:
            async with asyncio.timeout(within_s):
                while await self.reader.read(65536):
                    pass
                return False
        except ConnectionResetError:
            return True


@dataclass
class Response:
    """One response."""

    status: int
    headers: dict[bytes, bytes]
    body: bytes

    @property
    def document(self) -> dict[str, str]:
        """Its JSON."""
        document: dict[str, str] = json.loads(self.body)
        return document


@asynccontextmanager
async def serving(line: Line = echo, *, strict: bool = True, **changes: object) -> AsyncIterator[Stand]:
    """A server whose requests go to `line`, each in a task."""

    def handle(request: ClientRequest) -> None:
        stand.requests.append(request)
        task = asyncio.ensure_future(line(request))
        stand.tasks.add(task)
        task.add_done_callback(stand.tasks.discard)

    settings = replace(SETTINGS, **changes)  # type: ignore[arg-type]
    server = Server(
        settings, handle, refuse, lambda head, problem: stand.refused.append((head, problem)), strict=strict
    )
    stand = Stand(server)
    await server.listen()
    try:
        yield stand
        assert server.bodies == 0 or stand.tasks, "bodies were not given back"
    finally:
        server.drain()
        for task in tuple(stand.tasks):
            task.cancel()
        server.abort()
        await server.closed()
        assert server.open == 0
