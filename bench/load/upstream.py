"""The upstream process: paced streams of all four protocols and short JSON replies at little CPU per event.

A wheel of slots, one slot a millisecond, turns once per pacing interval. Each stream sits in one slot, so it keeps its
own phase and the streams tick spread over the interval. An event is one `write(2)` of one chunk frame from pre-built
bytes, stamped just before it; TLS goes through aiofastnet's transports, which write at once too.
"""

import argparse
import asyncio
import gc
import json
import os
import re
import signal
import ssl
import time
from functools import partial
from pathlib import Path
from typing import cast

import aiofastnet
import uvloop

from bench.load import wire
from bench.load.protocol import content_event
from bench.load.protocols import BY_TARGET, CHAT

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_EVENTS = re.compile(rb'"max(?:_completion_tokens|_output_tokens|_tokens|OutputTokens)": ?(\d+)')
_STREAM = re.compile(rb'"stream": ?true')  # Gemini says it in the path
_BACKLOG = 16384
_READY = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
_UNKNOWN = b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n"


class Wheel:
    """Turns once per `pace_s`; a slot is `slot_s` long. `late_s` is the worst delay of a slot."""

    def __init__(self, loop: asyncio.AbstractEventLoop, pace_s: float, slot_s: float) -> None:
        self._loop = loop
        self._slot_s = slot_s
        self._slots: list[list[Connection]] = [[] for _ in range(max(1, round(pace_s / slot_s)))]
        self._place = 0
        self._started_s = loop.time()
        self._turned = 0
        self.late_s = 0.0

    def add(self, connection: "Connection") -> None:
        """Give the stream a phase: slots in turn, by a stride that is coprime to any usual slot count."""
        self._place = (self._place + 7) % len(self._slots)
        self._slots[self._place].append(connection)

    def turn(self) -> None:
        """Send what is due, then sleep until the next slot."""
        due = round((self._loop.time() - self._started_s) / self._slot_s)  # counted: sums of floats drift off the clock
        self.late_s = max(self.late_s, (due - self._turned - 1) * self._slot_s)
        while self._turned < due:
            slot = self._slots[self._turned % len(self._slots)]
            ended = False
            for connection in slot:
                ended |= not connection.emit()
            if ended:
                slot[:] = [connection for connection in slot if connection.streaming]
            self._turned += 1
        self._loop.call_later(self._slot_s, self.turn)


class Connection(asyncio.Protocol):
    """One server connection: one request at a time, keep-alive."""

    __slots__ = (
        "_events", "_fd", "_frame", "_held", "_plain", "_protocol", "_sent", "_spilled", "_transport", "_wheel",
        "streaming",
    )  # fmt: skip
    _transport: asyncio.Transport

    def __init__(self, wheel: Wheel, *, plain: bool) -> None:
        self._wheel = wheel
        self._plain = plain
        self._fd = -1
        self._held = b""
        self._protocol = CHAT
        self._frame = b""
        self._events = 0
        self._sent = 0
        self._spilled = False
        self.streaming = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is no subclass
        self._fd = transport.get_extra_info("socket").fileno()

    def connection_lost(self, exc: Exception | None) -> None:
        self._fd = -1
        self.streaming = False

    def eof_received(self) -> bool:
        self.streaming = False
        return False

    def data_received(self, data: bytes) -> None:
        if self._held:
            data = self._held + data
        head_end = data.find(b"\r\n\r\n")
        if head_end < 0:
            self._held = data
            return
        found = _LENGTH.search(data, 0, head_end + 2)
        if len(data) < head_end + 4 + (int(found[1]) if found else 0):
            self._held = data
            return
        self._held = b""
        self._answer(data, head_end + 4)

    def _answer(self, data: bytes, body_at: int) -> None:
        if data.startswith(b"GET "):
            self._send(_READY)
            return
        protocol = BY_TARGET.get(data[len("POST ") : data.find(b" HTTP/1.1\r\n")])
        if protocol is None:
            self._send(_UNKNOWN)
        elif protocol is not CHAT or _STREAM.search(data, body_at):
            found = _EVENTS.search(data, body_at)
            self._protocol, self._frame = protocol, protocol.content_frame
            self._events, self._sent = int(found[1]) if found else 0, 0
            self._send(wire.STREAM_HEAD + wire.frames(protocol.first))
            if self._events:  # zero: this stream stays silent
                self.streaming = True
                self._wheel.add(self)
        else:
            self._send(wire.REPLY)

    def emit(self) -> bool:
        """Send the next content event, or the end; False once the stream is over."""
        if not self.streaming:
            return False
        if self._sent == self._events:
            self.streaming = False
            self._send(wire.frames(self._protocol.last(self._events)) + wire.LAST_FRAME)
            return False
        self._sent += 1
        self._send(content_event(self._frame, self._sent - 1, time.monotonic_ns()))
        return True

    def _send(self, data: bytes) -> None:
        """Write at once where the socket takes it; the transport queues what it does not take."""
        if self._spilled and not self._transport.get_write_buffer_size():
            self._spilled = False
        if self._plain and not self._spilled and self._fd >= 0:
            try:
                sent = os.write(self._fd, data)
            except BlockingIOError:
                sent = 0
            except OSError:
                self.streaming = False
                return
            if sent == len(data):
                return
            self._spilled = True
            data = data[sent:]
        self._transport.write(data)


async def serve(port: int, pace_s: float, slot_s: float, tls: tuple[Path, Path] | None) -> None:
    """Listen on 127.0.0.1, say the port as one JSON line, and run until SIGTERM."""
    loop = asyncio.get_running_loop()
    wheel = Wheel(loop, pace_s, slot_s)
    context: ssl.SSLContext | None = None
    if tls:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(*tls)
    create_server = partial(aiofastnet.create_server, loop) if context else loop.create_server
    server = await create_server(
        lambda: Connection(wheel, plain=context is None), "127.0.0.1", port, ssl=context, backlog=_BACKLOG
    )
    wheel.turn()
    gc.freeze()
    gc.disable()
    stop = asyncio.Event()
    loop.add_signal_handler(signal.SIGTERM, stop.set)
    print(json.dumps({"port": server.sockets[0].getsockname()[1]}), flush=True)
    await stop.wait()
    print(json.dumps({"late_ms": round(wheel.late_s * 1000, 1)}), flush=True)


def main() -> None:
    """Parse the command line and serve."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--pace-ms", type=float, default=20.0, help="time between two events of one stream")
    parser.add_argument("--slot-ms", type=float, default=1.0, help="resolution of the streams' phases")
    parser.add_argument("--tls", type=Path, nargs=2, metavar=("CERT", "KEY"))
    options = parser.parse_args()
    tls = (options.tls[0], options.tls[1]) if options.tls else None
    uvloop.run(serve(options.port, options.pace_ms / 1000, options.slot_ms / 1000, tls))


if __name__ == "__main__":
    main()
