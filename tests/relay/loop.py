"""A loop whose time is set by hand, and the two neighbours of a pump."""

import asyncio
import heapq
from collections.abc import Callable
from typing import Any

from headrace.http.chunk import data_of
from headrace.model.headers import Headers
from headrace.model.ports import BodyReceiver, SinkWatcher, TakeFrame
from headrace.model.problem import Problem
from headrace.model.request import ReplyHead
from headrace.model.wire import BodyEnd


class Handle:
    """A call that is due."""

    def __init__(self, due: float, call: Callable[[], object]) -> None:
        self.due = due
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        """Do not call."""
        self.cancelled = True


class Loop:
    """As much of an event loop as the relay asks for."""

    def __init__(self, now: float = 1000.0) -> None:
        self.now = now
        self.calls: list[tuple[float, int, Handle]] = []
        self._number = 0
        self._real = asyncio.new_event_loop()

    def time(self) -> float:
        """Monotonic seconds."""
        return self.now

    def call_later(self, delay: float, call: Callable[..., object], *args: object) -> Handle:
        """Call once `advance` has come so far."""
        handle = Handle(self.now + delay, lambda: call(*args))
        self._number += 1
        heapq.heappush(self.calls, (handle.due, self._number, handle))
        return handle

    def create_future(self) -> "asyncio.Future[Any]":
        """A future; what waits for it is looked at by hand."""
        return self._real.create_future()

    def advance(self, seconds: float) -> None:
        """Let time go by, calling what falls due on the way."""
        until = self.now + seconds
        while self.calls and self.calls[0][0] <= until:
            due, _, handle = heapq.heappop(self.calls)
            self.now = max(self.now, due)
            if not handle.cancelled:
                handle.call()
        self.now = until

    def hang(self, seconds: float) -> None:
        """Time goes by and nothing is called: the loop was held up."""
        self.now += seconds

    def run(self, wait: Any) -> Any:
        """Run a coroutine to its end."""
        return self._real.run_until_complete(wait)

    def step(self) -> None:
        """Let tasks of the real loop go on once."""
        self._real.run_until_complete(asyncio.sleep(0))

    def task(self, wait: Any) -> "asyncio.Task[Any]":
        """Start a coroutine."""
        task = self._real.create_task(wait)
        self.step()
        return task

    def close(self) -> None:
        """Leave nothing behind."""
        self._real.close()


class Sink:
    """A client. `said` is what it was told, in order."""

    def __init__(self) -> None:
        self.started = False
        self.gone = False
        self.paused = False
        self.unsent = 0
        self.said: list[tuple[str, object]] = []
        self.watcher: SinkWatcher | None = None
        self.finished = False

    def watch(self, watcher: SinkWatcher | None) -> None:
        """Who hears of it."""
        self.watcher = watcher

    def start(self, status: int, headers: Headers, length: int | None) -> None:
        """The head."""
        assert not self.started
        self.started = True
        self.said.append(("start", (status, dict(headers), length)))

    def write(self, data: bytes) -> None:
        """Relayed bytes."""
        assert self.started and data and not self.finished
        self.said.append(("write", data))

    @property
    def frame_writer(self) -> Callable[[bytes], None] | None:
        """Relayed bytes in their frame."""
        return (lambda frame: self.write(data_of(frame))) if self.started and not self.finished else None

    def passed(self, data: bytes) -> None:
        """What it wrote."""

    def insert(self, data: bytes) -> None:
        """Our own bytes."""
        assert self.started and data and not self.finished
        self.said.append(("insert", data))

    def finish(self) -> None:
        """The end."""
        self.finished = True
        self.said.append(("finish", None))

    def abort(self) -> None:
        """A visible end."""
        self.finished = True
        self.said.append(("abort", None))

    def hash_out(self) -> str:
        """Not asked for here."""
        return ""

    # ---- what happens to it

    def fall_behind(self, unsent: int) -> None:
        """Its buffer is over the high-water mark."""
        self.paused, self.unsent = True, unsent
        assert self.watcher is not None
        self.watcher.sink_paused()

    def catch_up(self) -> None:
        """It has read."""
        self.paused, self.unsent = False, 0
        assert self.watcher is not None
        self.watcher.sink_resumed()

    def leave(self) -> None:
        """It is gone."""
        self.gone = True
        assert self.watcher is not None
        self.watcher.sink_gone()

    @property
    def body(self) -> bytes:
        """What it got."""
        return b"".join(part for word, part in self.said if word in ("write", "insert") and isinstance(part, bytes))


class Upstream:
    """One attempt. `said` is what the pump asked of it, in order."""

    def __init__(self, already: tuple[bytes, ...] = ()) -> None:
        self.said: list[str] = []
        self.already = already
        self.receiver: BodyReceiver | None = None
        self.frames: TakeFrame | None = None
        self.uploaded_at: float | None = None
        self.failed_with: Problem | None = None
        self.closed = False
        self.complete: bytes | None = None

    async def reply(self) -> ReplyHead | Problem:
        """Not asked by the pump."""
        raise NotImplementedError

    def whole(self) -> bytes | None:
        """All of it, where the test says so."""
        return self.complete

    def attach(self, receiver: BodyReceiver, frames: TakeFrame | None = None) -> None:
        """Push what came already, then what follows."""
        self.receiver = receiver
        self.frames = frames
        for piece in self.already:
            self.push(piece)
        self.already = ()

    def push(self, data: bytes) -> None:
        """Bytes come."""
        if self.receiver is not None and not self.closed:
            self.receiver.body(data)

    def end(self, how: BodyEnd = BodyEnd.FRAMED) -> None:
        """The body is over."""
        if self.receiver is not None and not self.closed:
            self.receiver.body_end(how)

    def fail(self, problem: Problem) -> None:
        """End the wait for the head."""
        self.failed_with = problem

    def pause(self) -> None:
        """Stop reading."""
        self.said.append("pause")

    def resume(self) -> None:
        """Read on."""
        self.said.append("resume")

    def close(self) -> None:
        """Let go."""
        if not self.closed:
            self.closed = True
            self.said.append("close")
