"""What `headrace simulate` runs: a simulator until it is told to stop."""

import asyncio
import signal
from collections.abc import Callable
from pathlib import Path

from headrace.simulator.engine import Simulator
from headrace.simulator.script import Script

DEFAULT_PORT = 9090


async def serve(
    listen: str, script: Path | None = None, *, on_ready: Callable[[Simulator], None] | None = None
) -> None:
    """Serves until SIGINT or SIGTERM, or until cancelled. `listen`: HOST:PORT, HOST, :PORT or PORT; port 0 takes a
    free one. `on_ready` is called once it listens. Raises ScriptError, OSError, and ValueError for a bad `listen`."""
    host, port = address_from(listen)
    simulator = Simulator(None if script is None else Script.parse(script), host=host, port=port)
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGINT, signal.SIGTERM)
    async with simulator:
        for number in signals:
            loop.add_signal_handler(number, stopped.set)
        try:
            if on_ready is not None:
                on_ready(simulator)
            await stopped.wait()
        finally:
            for number in signals:
                loop.remove_signal_handler(number)


def address_from(listen: str) -> tuple[str, int]:
    """(host, port) of HOST:PORT, [IPV6]:PORT, HOST, :PORT or PORT; raises ValueError."""
    host, colon, port = listen.rpartition(":")
    if not colon:
        host, port = ("", listen) if listen.isdigit() else (listen, str(DEFAULT_PORT))
    if not port.isdigit() or int(port) > 65535:
        raise ValueError(f"{listen!r} is no address to listen on; examples: 127.0.0.1:{DEFAULT_PORT}, :0")
    return host.strip("[]") or "127.0.0.1", int(port)
