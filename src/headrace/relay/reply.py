"""The state machine of a reply without streaming: held at first, so that a bad one can still be replaced; then passed
on.

    WAITING ──64 KiB, or all of it, and judged good──▶ COMMITTED ──end of body──▶ ENDED
       │   an error, FAULT_S passed                       └── cut, stall, stop ──▶ ENDED (connection aborted)
       └── judged bad ──▶ the attempt failed

There is nothing to insert here: no keepalive, no early open, no error event. Before the commit a failure is an HTTP
status. A reply that is passed on at once (`pass_on`: audio, images, streams of a passthrough family) is judged by its
head and commits at its first byte.
Pure, as `machine` is; the pump drives both through the same methods.
"""

from collections.abc import Callable
from typing import Protocol

from headrace.model.outcome import End, Failure, Outcome
from headrace.model.settings import StreamSettings
from headrace.model.wire import BodyEnd
from headrace.relay.clock import NEVER
from headrace.relay.problems import CUT, INTERRUPTED, REPLY_TIMEOUT, STALLED, TIME_OVER
from headrace.relay.state import State, Step
from headrace.relay.trace import Trace

HOLD_BYTES = 64 * 1024
"""How much is held before it is judged."""
FAULT_S = 2.0
"""How long an error reply's body is waited for: what has come by then decides. One that is for the client is passed on
from there as any other is, so a body that breaks is never framed as whole."""

Judge = Callable[[bytes, bool], Failure | None]
"""(the body so far, whether that is all) → why this reply cannot be given to the client, or None."""
Conclude = Callable[[bytes | None], Outcome]
"""The whole body, or None where it was too large to keep → what it was."""


class Tap(Protocol):
    """Reads a body beside the relay, as it comes; it never raises."""

    def feed(self, data: bytes) -> None:
        """Bytes of the body."""

    def ended(self, how: BodyEnd) -> Outcome:
        """What the end of the body means, where it was not cut."""


class ReplyClock:
    """`reply` bounds the wait for the first body byte of each attempt, `stall` the gaps, `total` all. Seconds,
    monotonic."""

    __slots__ = ("_limits", "_paused", "attempt_at", "began_at", "fault_at", "last_at", "uploaded_at")

    def __init__(self, limits: StreamSettings, began_at: float) -> None:
        self._limits = limits
        self._paused = False
        self.began_at = began_at
        self.attempt_at = NEVER
        self.uploaded_at = NEVER
        self.last_at = NEVER
        self.fault_at = NEVER

    def pause(self, now: float) -> None:
        """The gateway stopped reading the upstream."""
        self._paused = True

    def resume(self, now: float) -> None:
        """It reads on: the silence so far was its own doing."""
        self._paused = False
        if self.last_at != NEVER:
            self.last_at = now

    def silent_due(self) -> float:
        """When the wait for the next byte is over."""
        if self._paused:
            return NEVER
        limits = self._limits
        waited = self.attempt_at + limits.reply if self.last_at == NEVER else self.last_at + limits.stall
        return waited if self.fault_at == NEVER else min(waited, self.fault_at + FAULT_S)

    def due(self) -> float:
        """When the next limit can pass."""
        silent = self.silent_due()
        total = self.began_at + self._limits.total
        return silent if silent < total else total

    def total_due(self) -> float:
        """When the exchange as a whole is over."""
        return self.began_at + self._limits.total


class ReplyMachine:
    """One exchange's reply over all its attempts: `begin`, at the head `answered`, then `feed` and `upstream_end`."""

    __slots__ = (
        "_conclude",
        "_copied",
        "_copy",
        "_fault",
        "_judge",
        "_limits",
        "_promised",
        "_tap",
        "clock",
        "early_open",
        "head_sent",
        "outcome",
        "state",
        "step",
        "trace",
    )  # fmt: skip

    def __init__(self, limits: StreamSettings, clock: ReplyClock, trace: Trace, promised: bool = False) -> None:
        """`promised`: the client has been sent a stream's head. Then every end is a failure, for the stream's own
        machine to say."""
        self.state = State.WAITING
        self.outcome: Outcome | None = None
        self.step: Step | None = None
        self.head_sent = False
        self.early_open = False
        self.clock = clock
        self.trace = trace
        self._limits = limits
        self._judge: Judge | None = None
        self._conclude: Conclude | None = None
        self._copy: list[bytes] | None = []
        self._copied = 0
        self._fault = False
        self._promised = promised
        self._tap: Tap | None = None

    @property
    def held(self) -> int:
        """Bytes kept: those held back before the commit, and behind it the copy that is concluded from."""
        return self._copied if self._copy is not None else 0

    def begin(self, now: float) -> None:
        """A new attempt."""
        self._copy = []
        self._copied = 0
        self._fault = False
        self._tap = None
        self.clock.attempt_at = now
        self.clock.uploaded_at = self.clock.last_at = self.clock.fault_at = NEVER

    def rest(self) -> None:
        """The attempt failed before its head: until the next one only `total` runs."""
        self.clock.attempt_at = self.clock.last_at = self.clock.fault_at = NEVER

    def answered(self, judge: Judge, conclude: Conclude, fault: bool, now: float) -> None:
        """The attempt's head is there. `fault`: it is an error reply, whose body is only waited for briefly."""
        self._judge = judge
        self._conclude = conclude
        self._fault = fault
        if fault:
            self.clock.fault_at = now
            self.step = Step()  # its limit is nearer than those before

    def pass_on(self, tap: Tap) -> None:
        """After `answered`: this reply is not held, and no copy of it is kept; `tap` sees it as it passes."""
        self._tap = tap

    def feed(self, data: bytes, now: float) -> bytes:
        """Bytes of the body (not empty); what to relay of them, in this call."""
        self.trace.received += len(data)
        if self.state is State.ENDED:
            return b""
        self.clock.last_at = now
        self._keep(data)
        if self.state is State.COMMITTED:
            self.trace.event(now, len(data))
            self.trace.release(data)
            return data
        if self._tap is not None:
            return self._commit(now, whole=False) or b""
        if self._copied >= HOLD_BYTES and (write := self._commit(now, whole=False)) is not None:
            self.step = Step(write=write)  # no plain passing: the pump counts the copy first
        return b""

    @property
    def takes_whole(self) -> bool:
        """Whether a body that is all here may come by `whole`."""
        return self._tap is None and self.state is State.WAITING

    def whole(self, body: bytes, now: float) -> None:
        """The whole body, ended by its framing: `feed` and `upstream_end` in one step, for nearly every short reply."""
        self.trace.received += len(body)
        self._copy = [body]
        if self._commit(now, whole=True) is not None:
            self._end(self._meaning(), body, open=True)

    def upstream_end(self, how: BodyEnd, now: float) -> None:
        """The body is over."""
        if self.state is State.ENDED:
            return
        cut = how is BodyEnd.CUT
        opened = self.state is State.COMMITTED
        if cut and not opened and not self._fault:
            self._fail(Failure(INTERRUPTED, final=True))
            return
        write = b"" if opened else self._commit(now, whole=True)
        if write is None:
            return
        if cut:
            self._end(CUT, write, abort=True)
        else:
            self._end(self._meaning(how), write, open=not opened)

    def tick(self, now: float, drained: bool) -> None:
        """Look at the clocks."""
        if self.state is State.ENDED:
            return
        if now >= self.clock.total_due():
            self.end(TIME_OVER["total"], now)
        elif now >= self.clock.silent_due():
            self._silent(now)

    def due(self) -> float:
        """When to look next."""
        return self.clock.due()

    def end(self, outcome: Outcome, now: float) -> None:
        """An ending from outside. The first one wins."""
        if self.state is not State.ENDED:
            self._end(outcome, abort=self.state is State.COMMITTED)

    def pass_plainly(self, now: float) -> bytes:
        """Too much is held in this worker: judge what has come, and keep no copy of what is good."""
        write = self._commit(now, whole=False) if self.state is State.WAITING else b""
        if write is None:
            return b""
        self._copy = None
        return write

    def _silent(self, now: float) -> None:
        if self.state is State.COMMITTED:
            self._end(Outcome(End.STALLED, "stall", STALLED), abort=True)
        elif self._fault:
            self._pass_fault(now)
        else:
            self._fail(Failure(REPLY_TIMEOUT if self.clock.last_at == NEVER else STALLED, final=True))

    def _pass_fault(self, now: float) -> None:
        """An error reply that is slow: judged as though it were all here, and passed on as what it is, unfinished."""
        write = self._commit(now, whole=True)
        if write is None:
            return
        if self._promised:
            self._end(self._meaning(), write)
            return
        if self.clock.last_at == NEVER:
            self.clock.last_at = now  # `stall` bounds what follows, not the wait for a first byte
        self.step = Step(open=True, write=write)

    def _commit(self, now: float, whole: bool) -> bytes | None:
        """Judge what is held; the bytes to relay where it is good, else None: the attempt has failed."""
        body = b"".join(self._copy or ())
        failure = self._judge(body, whole) if self._judge is not None else None
        if failure is not None:
            self._fail(failure)
            return None
        self.state = State.COMMITTED
        self.clock.fault_at = NEVER
        if self._tap is not None:
            self._copy = None
        self.trace.event(now, len(body))
        self.trace.release(body)
        return body

    def _meaning(self, how: BodyEnd = BodyEnd.FRAMED) -> Outcome:
        if self._tap is not None:
            return self._tap.ended(how)
        if self._conclude is None:
            raise AssertionError("a reply that ended was answered")
        return self._conclude(b"".join(self._copy) if self._copy is not None else None)

    def _keep(self, data: bytes) -> None:
        self._copied += len(data)
        if self._tap is not None:
            self._tap.feed(data)
        if self._copy is None:
            return
        if self._copied > self._limits.max_event and self.state is State.COMMITTED:
            self._copy = None
        else:
            self._copy.append(data)

    def _fail(self, failure: Failure) -> None:
        self.rest()
        self.step = Step(failed=failure)

    def _end(self, outcome: Outcome, write: bytes = b"", abort: bool = False, open: bool = False) -> None:
        self.outcome = outcome
        self.state = State.ENDED
        self._copy = None
        if self._promised:
            self.step = Step(failed=Failure(outcome.problem or INTERRUPTED, final=True))
        else:
            self.step = Step(open=open, write=write, ended=True, abort=abort)
