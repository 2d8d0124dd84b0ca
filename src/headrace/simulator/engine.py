"""The simulator as a server: listens, holds the script and the records, answers the requests made to itself."""

import asyncio
import ssl
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec

from headrace.simulator.composition import plain_reply
from headrace.simulator.connection import CONTROL, Connection
from headrace.simulator.errors import error_json
from headrace.simulator.fields import Place, ScriptError
from headrace.simulator.reading import scenario_from_fields
from headrace.simulator.recorded import Recorded
from headrace.simulator.recorder import Recorder, Recording
from headrace.simulator.reply import Reply
from headrace.simulator.request import Request
from headrace.simulator.responder import Responder
from headrace.simulator.scenario import ErrorSpec, Refuse, Scenario
from headrace.simulator.script import Script


class Simulator:
    """An upstream of its own. Use as an async context manager, or `start` and `stop`; runs on asyncio and uvloop.

    `port` 0 takes a free one. `refuse_connections` counts down: so many of the next connections are closed at once.
    """

    def __init__(
        self,
        script: Script | str | Path | Mapping[str, object] | None = None,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tls: ssl.SSLContext | None = None,
    ) -> None:
        made = script if isinstance(script, Script) else Script.parse("" if script is None else script)
        self.host = host
        self.port = port
        self.refuse_connections = made.refuse_connections
        self._tls = tls
        self._responder = Responder(made)
        self._recorder = Recorder(made.record)
        self._connections: set[Connection] = set()
        self._opened = 0
        self._server: asyncio.Server | None = None
        self._stopped = False

    async def start(self) -> None:
        """Listens; raises OSError if it cannot."""
        loop = asyncio.get_running_loop()
        self._stopped = False
        self._server = await loop.create_server(
            lambda: Connection(self), self.host, self.port, ssl=self._tls, backlog=1024
        )
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Closes the listener and every connection at once; one that is only being made, once it is.

        `Server.wait_closed` is no part of it: from Python 3.12 on it waits for those too, and so for their clients.
        """
        if self._server is None:
            return
        server, self._server = self._server, None
        self._stopped = True
        server.close()
        for connection in tuple(self._connections):
            connection.stop()
        await asyncio.sleep(0)  # in this turn the transports let go of their sockets

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.stop()

    @property
    def origin(self) -> str:
        """`http://HOST:PORT`, to which any path prefix may be added."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'https' if self._tls is not None else 'http'}://{host}:{self.port}"

    @property
    def url(self) -> str:
        """The base URL for an OpenAI SDK."""
        return f"{self.origin}/v1"

    @property
    def requests(self) -> list[Recorded]:
        """The last `record` requests, oldest first; those still being answered change."""
        return self._recorder.requests

    @property
    def connections(self) -> int:
        """Connections open now."""
        return len(self._connections)

    @property
    def connections_made(self) -> int:
        """Connections accepted so far."""
        return self._opened

    def scenario(self, name: str, fields: Mapping[str, object]) -> None:
        """Adds or replaces a scenario, for requests to come; its sequence begins anew. Raises ScriptError."""
        made = scenario_from_fields(fields, Place(f"scenarios.{name}", Path.cwd()), name)
        self._responder.script = self._responder.script.with_scenario(made)
        self._responder.reset(name)

    def reset(self) -> None:
        """Forgets the records; sequences begin anew."""
        self._recorder.clear()
        self._responder.reset()

    async def idle(self, timeout_s: float = 5.0) -> None:
        """Returns when no request is being answered; raises TimeoutError."""
        await asyncio.wait_for(self._recorder.idle(), timeout_s)

    # what connections ask (connection.Host)

    def connected(self, connection: Connection) -> int | None:
        self._opened += 1
        if self._stopped:
            return None
        if self.refuse_connections > 0:
            self.refuse_connections -= 1
            return None
        self._connections.add(connection)
        return self._opened

    def disconnected(self, connection: Connection) -> None:
        self._connections.discard(connection)

    def begin(self, connection: int) -> Recording:
        return self._recorder.begin(connection)

    def choose_early(self, request: Request, record: Recorded) -> Scenario | None:
        return self._responder.choose_early(request, record)

    def reply(self, request: Request, chosen: Scenario | None, record: Recorded) -> Reply | Refuse:
        return self._responder.reply(request, chosen, record)

    def bad_script(self, request: Request, error: ScriptError) -> Reply:
        return self._responder.bad_script(request, error)

    def control(self, request: Request) -> Reply:
        """GET /_simulator/requests: the records; DELETE: reset."""
        if request.path.rstrip("/") != f"{CONTROL}/requests":
            return plain_reply(request, 404, error_json(404, ErrorSpec(f"there is only {CONTROL}/requests")))
        match request.method:
            case "GET":
                return plain_reply(request, 200, msgspec.json.encode(self.requests))
            case "DELETE":
                self.reset()
                return plain_reply(request, 200, b'{"deleted":true}')
            case _:
                return plain_reply(request, 405, error_json(405, ErrorSpec("allowed: GET, DELETE")))
