"""Moves bytes between one attempt and one client, and owns the points where something may be inserted.

The upstream's connection calls `body` from its `data_received`; the machine decides; the client's transport is
written to,
all in that call. No await, task, queue or timer per event. The exchange awaits one future per attempt.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from headrace.http.coding import Decoder
from headrace.model.headers import Headers
from headrace.model.outcome import End, Failure, Outcome
from headrace.model.ports import Attempt, Sink
from headrace.model.problem import Kind, Problem
from headrace.model.settings import ClientGone, StreamSettings
from headrace.model.wire import BodyEnd
from headrace.relay.decoding import Decoding
from headrace.relay.drain import Drain
from headrace.relay.express import Express
from headrace.relay.machine import Machine
from headrace.relay.reply import ReplyMachine
from headrace.relay.share import Share
from headrace.relay.state import State, Step

T = TypeVar("T")
_GONE = Problem(Kind.UPSTREAM_INTERRUPTED, "The client left.")
STUCK_LOOKS = 8
"""How often within `write_timeout` it is looked whether a client that is behind has taken anything."""


class Pump:
    """One exchange's pump over all its attempts. `start` it when the first attempt begins; `stop` it in the end."""

    __slots__ = (
        "_attempt", "_decoder", "_done", "_drain", "_express", "_headers", "_held", "_length", "_limits", "_on_commit",
        "_on_end", "_settled", "_share", "_sink", "_status", "_stuck_at", "_stuck_unsent", "failure", "machine",
    )  # fmt: skip

    def __init__(
        self,
        machine: Machine | ReplyMachine,
        limits: StreamSettings,
        sink: Sink,
        share: Share,
        headers: Headers,
        on_commit: Callable[[], None],
        on_end: Callable[[Outcome], None],
    ) -> None:
        """`headers` are those of an early-opened head; `on_commit` is called once, when the first bytes are relayed.

        `on_end` is called when what was committed is over and no more of it is read: in the very call that gave the
        sink its last bytes, before whoever awaits `run` can know.
        """
        self.machine = machine
        self.failure: Failure | None = None
        self._limits = limits
        self._sink = sink
        self._share = share
        self._headers = headers
        self._status = 200
        self._length: int | None = None
        self._on_commit: Callable[[], None] | None = on_commit
        self._on_end = on_end
        self._attempt: Attempt | None = None
        self._done: asyncio.Future[Failure | None] | None = None
        self._settled = False
        self._held = 0
        self._drain: Drain | None = None
        self._decoder: Decoder | None = None
        self._express: Express | None = None
        self._stuck_at = 0.0
        self._stuck_unsent = 0

    # ---- the exchange's side

    def start(self) -> None:
        """Hear of the client. The clocks are watched from `begin` on."""
        self._sink.watch(self)
        if self._sink.gone:
            self.sink_gone()

    def stop(self) -> None:
        """Let go of everything; may be called at any time, and twice."""
        self._share.wheel.remove(self)
        self._sink.watch(None)
        if self._express is not None:
            self._express.close()
            self._express = None
        if self._held:
            self._hold(0)
        if self._drain is not None:
            self._share.wheel.remove(self._drain)
            self._drain.finish()
        if self._attempt is not None:
            self._attempt.close()
            self._attempt = None

    def begin(self, attempt: Attempt) -> None:
        """A new attempt: its clocks run from now, and it can be ended while its head is awaited."""
        self._attempt = attempt
        self._settled = False
        self.failure = None
        self.machine.begin(self._share.loop.time())
        self._share.wheel.add(self, self.machine.due())

    def lost(self) -> None:
        """The attempt ended before its head: until the next one only the exchange's own limits run."""
        self._attempt = None
        self.machine.rest()

    async def run(
        self, status: int, headers: Headers, length: int | None, decoder: Decoder | None = None
    ) -> Failure | None:
        """Relay the attempt's body under this head until it ended (None; see the machine's outcome) or came to
        nothing."""
        attempt = self._attempt
        if attempt is None or self.machine.state is State.ENDED:
            return self.failure  # a limit may have passed between the head and this call
        self._status, self._headers, self._length = status, headers, length
        self._decoder = decoder
        self._act()
        machine = self.machine
        if isinstance(machine, ReplyMachine) and machine.takes_whole and (body := attempt.whole()) is not None:
            machine.whole(body, self._share.loop.time())
            self._act()
        else:
            self._attach(attempt)
        if self._settled:
            return self.failure
        self._done = done = self._share.loop.create_future()
        failure: Failure | None = await done
        return failure

    def _attach(self, attempt: Attempt) -> None:
        """Have the body pushed."""
        if self._decoder is not None:
            attempt.attach(Decoding(self, self._decoder))
        elif isinstance(self.machine, Machine):
            self._express = express = Express(self.machine, self._sink, self._share.loop.time, self._act)
            attempt.attach(self, express.frame)
        else:
            attempt.attach(self)

    async def rest(self, seconds: float) -> None:
        """Wait between attempts; cut short when the exchange ends."""
        self._done = done = self._share.loop.create_future()
        timer = self._share.loop.call_later(seconds, _resolve, done, None)
        try:
            await done
        finally:
            timer.cancel()

    async def meanwhile(self, work: Coroutine[Any, Any, T]) -> T | None:
        """Do some work between attempts, under the exchange's own limits; None where the exchange ends before it is
        done, and the work is cancelled then."""
        self.lost()
        self._done = done = self._share.loop.create_future()
        self._share.wheel.add(self, self.machine.due())
        task = self._share.loop.create_task(work)
        task.add_done_callback(lambda _: _resolve(done, None))
        try:
            await done
        finally:
            task.cancel()
            await asyncio.wait((task,))
        return task.result() if not task.cancelled() and self.machine.outcome is None else None

    def end(self, outcome: Outcome) -> None:
        """End the exchange from outside: drain, an operator, a fault of our own."""
        self.catch_up()
        self.machine.end(outcome, self._share.loop.time())
        self._act()
        if self._drain is not None and outcome.end is End.STOPPED:
            self._drain.finish()

    # ---- the upstream's side (model.ports.BodyReceiver)

    def body(self, data: bytes) -> None:
        """Bytes of the upstream's body."""
        machine = self.machine
        express = self._express
        if express is not None:
            express.close()
        out = machine.feed(data, self._share.loop.time())
        if out:
            if self._on_commit is not None:
                self._commit()
            self._sink.write(out)
        if self._held or len(out) != len(data):
            self._hold(machine.held)
        if machine.step is not None:
            self._act()
        if express is not None and out:
            express.renew(out)

    def body_end(self, end: BodyEnd) -> None:
        """The upstream's body is over."""
        self.catch_up()
        self.machine.upstream_end(end, self._share.loop.time())
        self._act()

    # ---- the client's side (model.ports.SinkWatcher)

    def sink_paused(self) -> None:
        """The client is behind: its own upstream waits, and nothing else does."""
        now = self._share.loop.time()
        self.machine.clock.pause(now)
        self._stuck_at = now
        self._stuck_unsent = self._sink.unsent
        if self._attempt is not None:
            self._attempt.pause()
        self._share.wheel.add(self, now + self._limits.write_timeout / STUCK_LOOKS)

    def sink_resumed(self) -> None:
        """The client caught up."""
        self.machine.clock.resume(self._share.loop.time())
        if self._attempt is not None:
            self._attempt.resume()
        self._share.wheel.add(self, self.machine.due())

    def sink_gone(self) -> None:
        """The client left."""
        self.end(Outcome(End.CLIENT_GONE, "client left"))

    # ---- time (model.ports.Ticker)

    def tick(self, now: float) -> float | None:
        """Look at the clocks; when to look next."""
        self.catch_up()
        machine = self.machine
        sink = self._sink
        unsent = sink.unsent
        if self._attempt is not None and self._attempt.uploaded_at is not None:
            machine.clock.uploaded_at = min(machine.clock.uploaded_at, self._attempt.uploaded_at)
        if unsent and self._is_stuck(now, unsent):
            machine.end(Outcome(End.CLIENT_GONE, "write_timeout"), now)
        else:
            machine.tick(now, unsent == 0)
        if machine.step is not None:
            self._act()
        if machine.state is State.ENDED:
            return None
        due = machine.due()
        if not unsent:
            self._stuck_unsent = 0
            return due
        return min(due, now + self._limits.write_timeout / STUCK_LOOKS)

    def catch_up(self) -> None:
        """Have the machine see what went past it."""
        if self._express is not None:
            self._express.close()

    def _is_stuck(self, now: float, unsent: int) -> bool:
        """Whether the client has taken no byte for `write_timeout`. A client is only looked at when some limit is
        due, so one that is less than the high-water mark behind is found later by that much."""
        if unsent < self._stuck_unsent or not self._stuck_unsent:
            self._stuck_at = now
        self._stuck_unsent = unsent
        return now >= self._stuck_at + self._limits.write_timeout

    def _hold(self, held: int) -> None:
        """Account for what is held; past the worker's budget the stream passes plainly."""
        share = self._share
        share.held += held - self._held
        self._held = held
        if share.held > share.held_limit and held:
            out = self.machine.pass_plainly(self._share.loop.time())
            if out:
                self._commit()
                self._sink.write(out)
            share.held -= self._held - self.machine.held
            self._held = self.machine.held

    def _commit(self) -> None:
        """The first bytes are about to be relayed."""
        on_commit, self._on_commit = self._on_commit, None
        if on_commit is not None:
            on_commit()
        self._open()

    def _open(self) -> None:
        if not self._sink.started:
            self._sink.start(self._status, self._headers, self._length)
            self._headers = []
        self.machine.head_sent = True

    def _act(self) -> None:
        """Do what the machine's step says."""
        machine = self.machine
        step, machine.step = machine.step, None
        if step is None:
            return
        sink = self._sink
        if step.ended and (step.write or step.open) and not step.abort and isinstance(machine, ReplyMachine):
            self._length = len(step.write)  # nothing has been sent: this is all of it
        if step.open:
            self._commit() if step.ended else self._open()
        if step.write:
            if self._on_commit is not None:
                self._commit()
            sink.write(step.write)
        if step.insert:
            sink.insert(step.insert)
        if step.failed is not None:
            self._fail(step.failed)
        elif step.ended:
            self._finish(step)
        else:
            self._share.wheel.add(self, machine.due())

    def _fail(self, failure: Failure) -> None:
        """The attempt came to nothing: end the wait for its head or its body."""
        attempt, self._attempt = self._attempt, None
        self.failure = failure
        self._hold(0)
        if attempt is not None:
            attempt.fail(failure.problem)
            attempt.close()
        self._share.wheel.add(self, self.machine.due())
        self._settle(failure)

    def _finish(self, step: Step) -> None:
        sink = self._sink
        outcome = self.machine.outcome
        if sink.started and not sink.gone:
            if step.abort or (outcome is not None and outcome.end is End.CLIENT_GONE):
                sink.abort()  # a client that takes nothing must never find a whole answer in what it takes later
            else:
                sink.finish()
        attempt, self._attempt = self._attempt, None
        if attempt is not None and self._begin_drain(attempt):
            return
        if attempt is not None:
            attempt.fail((outcome.problem if outcome is not None else None) or _GONE)
            attempt.close()
        if self._held:
            self._hold(0)
        self._over()

    def _over(self) -> None:
        """Nothing more comes of it."""
        self._settle(None)
        outcome = self.machine.outcome
        if self._on_commit is None and outcome is not None:
            self._on_end(outcome)

    def _settle(self, result: Failure | None) -> None:
        """What `run` or `rest` waits for has come."""
        self._settled = True
        _resolve(self._done, result)

    def _begin_drain(self, attempt: Attempt) -> bool:
        """Read on without the client, where the policy wants it and there is room."""
        limits = self._limits
        if limits.client_gone is not ClientGone.DRAIN or self._share.draining >= limits.drain_streams:
            return False
        reading = self.machine.drain() if isinstance(self.machine, Machine) else None
        if reading is None:
            return False
        deadline = self._share.loop.time() + limits.drain_cap
        self._drain = drain = Drain(attempt, *reading, self.machine.trace, self._share, deadline, self._over)
        self._share.wheel.add(drain, deadline)
        attempt.attach(drain if self._decoder is None else Decoding(drain, self._decoder))
        attempt.resume()
        return True


def _resolve(future: "asyncio.Future[Failure | None] | None", result: Failure | None) -> None:
    if future is not None and not future.done():
        future.set_result(result)
