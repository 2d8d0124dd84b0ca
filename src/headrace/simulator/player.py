"""Plays one reply onto a transport: a chain of `loop.call_at`, no task and no sleep per event.

    START ──head_delay──▶ HEAD ──▶ step, step, … ──▶ DONE(complete | cut)
                                      │  ▲
                          pause_writing  resume_writing

A late loop catches up, since each step's time counts from the step before; a client that does not read shifts the rest.
"""

import asyncio
import fcntl
import socket
import struct
import termios
from collections.abc import Callable

from headrace.simulator.recorder import Recording
from headrace.simulator.reply import Reply
from headrace.simulator.scenario import How
from headrace.simulator.timeline import Step

# Bytes written in one loop turn before others get theirs.
TURN_BYTES = 256 << 10
_RESET = struct.pack("ii", 1, 0)
_RESET_POLL_S = 0.001
_RESET_POLLS = 2000


class Player:
    """Plays `reply`, then calls `on_done(how)`: None for the body's own end, else the cut that ended it."""

    def __init__(
        self,
        transport: asyncio.Transport,
        reply: Reply,
        recording: Recording | None,
        on_done: Callable[[How | None], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._reply = reply
        self._recording = recording
        self._on_done = on_done
        self._timer: asyncio.Handle | None = None
        self._paused = False
        self._due = self._loop.time() + reply.head_delay_s
        self._next: Step | None = None

    def start(self) -> None:
        if self._reply.interim:
            self._transport.write(self._reply.interim)
        if self._reply.head_delay_s:
            self._timer = self._loop.call_at(self._due, self._begin)
        else:
            self._begin()

    def stop(self) -> None:
        """Nothing more is written, `on_done` not called."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._next = None

    def pause(self) -> None:
        self._paused = True

    def resume(self) -> None:
        self._paused = False
        if self._timer is None and self._next is not None:
            self._due = self._loop.time()
            self._timer = self._loop.call_soon(self._run)

    def _begin(self) -> None:
        self._timer = None
        if self._recording is not None:
            self._recording.head_sent(self._reply.status)
        self._transport.write(self._reply.head)
        if self._reply.head_cut is not None:
            self._on_done(self._reply.head_cut)
            return
        self._advance(0)

    def _run(self) -> None:
        """Writes the step that is due, and all others that are, within the turn's share."""
        self._timer = None
        self._advance(TURN_BYTES)

    def _advance(self, share: int) -> None:
        """`share` 0: the head has just been written; else the step in `_next` is due."""
        while True:
            step = self._next
            if step is not None:
                if self._paused:
                    return
                self._write(step)
                share -= len(step.data)
            following = self._next = next(self._reply.steps, None)
            if following is None:
                self._finish()
                return
            self._due += following.wait_s
            if self._due > self._loop.time():
                self._timer = self._loop.call_at(self._due, self._run)
                return
            if share <= 0 or following.alone or (step is not None and step.alone):
                self._timer = self._loop.call_soon(self._run)
                return

    def _write(self, step: Step) -> None:
        data = step.data
        if data:
            self._transport.write(b"%x\r\n%b\r\n" % (len(data), data) if self._reply.chunked else data)
        if self._recording is not None:
            self._recording.wrote(step)

    def _finish(self) -> None:
        how = self._reply.timeline.how
        if how in (None, How.CLEAN) and self._reply.tail:
            self._transport.write(self._reply.tail)
        self._on_done(how)


def reset(transport: asyncio.Transport) -> None:
    """Ends the connection with a TCP reset, after the peer has got what was written (a reset discards the rest)."""
    loop = asyncio.get_running_loop()

    def attempt(polls: int) -> None:
        if transport.is_closing():
            return  # the descriptor may be another connection's by now
        if polls and (transport.get_write_buffer_size() or unsent_bytes(transport)):
            loop.call_later(_RESET_POLL_S, attempt, polls - 1)
            return
        sock = transport.get_extra_info("socket")
        if sock is not None and sock.fileno() >= 0:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        transport.abort()

    attempt(_RESET_POLLS)


def unsent_bytes(transport: asyncio.Transport) -> int:
    """Bytes in the kernel that the peer's kernel has not acknowledged (Linux; 0 where it cannot be known)."""
    sock = transport.get_extra_info("socket")
    if sock is None or sock.fileno() < 0:
        return 0
    try:
        answer = fcntl.ioctl(sock.fileno(), termios.TIOCOUTQ, b"\0\0\0\0")
    except OSError:
        return 0
    return int(struct.unpack("i", answer)[0])
