"""The state machine of one streamed response, over all its attempts.

    WAITING ──first event──▶ COMMITTED ──terminal event──▶ ENDING ──end of body or grace──▶ ENDED
       │  ▲                      │
       │  └ next attempt         └── cut, stall, error, stop ──▶ ENDED (error event)
       └── all attempts failed ──▶ ENDED (refused)

Rules that hold in every state:
* Pure: bytes and times go in, bytes to write come out. Times are monotonic seconds, passed in.
* Only whole events are given out, so every write ends where something may be inserted. An event larger than `max_event`
  is the exception: from then on the stream passes plainly, nothing is inserted, and a break aborts the connection.
* Clocks run from what was last *seen*; an event notes a time and arms nothing. `tick` compares.
* The first ending wins: `outcome` is set once.

`feed` returns what to relay; whatever is rarer is said in `step`, which the pump takes.
"""

from collections.abc import Callable

from headrace.model.outcome import End, Failure, Outcome
from headrace.model.problem import Problem
from headrace.model.settings import Commit, StreamSettings
from headrace.model.wire import BodyEnd, Sight
from headrace.relay.clock import NEVER, Clock, Verdict
from headrace.relay.hold import Hold
from headrace.relay.problems import CUT, FAILED_FIRST, STALLED, TIME_OVER, TIMEOUT, nothing_came
from headrace.relay.state import UNTOUCHED, Repaired, State, Step
from headrace.relay.trace import Trace
from headrace.relay.voice import Framing, Meter, Voice
from headrace.sse.event import missing_end
from headrace.sse.framing import BOM, Framer

CR_GRACE_S = 0.05
"""How long an error event waits for the LF of a CR that was the last byte delivered."""


class Machine:
    """One exchange's stream. For each attempt `begin`, at its head `answered`, then `feed` and `upstream_end`."""

    __slots__ = (
        "_after_cr", "_framing", "_hold", "_holds_preamble", "_keeps_comments", "_limits", "_observe", "_skip_event",
        "_voice", "clock", "early_open", "framer", "head_sent", "meter", "outcome", "plain", "state", "step", "trace",
    )  # fmt: skip

    def __init__(
        self, limits: StreamSettings, voice: Voice, clock: Clock, trace: Trace, keeps_comments: bool = True,
        framing: Callable[[], Framing] = Framer,
    ) -> None:  # fmt: skip
        self.state = State.WAITING
        self.outcome: Outcome | None = None
        self.step: Step | None = None
        self.head_sent = self.early_open = self.plain = False
        self.clock = clock
        self.trace = trace
        self._limits = limits
        self._voice = voice
        self._keeps_comments = keeps_comments
        self._hold = Hold()
        self._framing = framing
        self.framer = framing()
        self.meter: Meter | None = None
        self._observe: Callable[[bytes], Sight] | None = None
        self._holds_preamble = limits.commit is Commit.FIRST_OUTPUT
        self._skip_event = False
        self._after_cr: tuple[float, bytes] | None = None

    def begin(self, now: float) -> None:
        """A new attempt: what was held of the one before is forgotten."""
        self.trace.removed += self._hold.discard()
        self.framer = self._framing()
        self.clock.begin(now)

    def rest(self) -> None:
        """The attempt failed before its head: until the next one only the exchange's own limits run."""
        self.clock.rest()

    def answered(self, meter: Meter, now: float) -> None:
        """The attempt's head is a 2xx event stream; `meter` sees its events."""
        self.meter = meter
        self._observe = meter.observe
        self.clock.answered_at = now
        self.clock.uploaded_at = min(self.clock.uploaded_at, now)
        self.step = Step()

    def feed(self, data: bytes, now: float) -> bytes:
        """Bytes of the body as they came (not empty); what to relay of them, in this call."""
        self.trace.received += len(data)
        if self.state is not State.COMMITTED or self.plain:
            return self._feed_otherwise(data, now)
        framer = self.framer
        events = framer.feed(data)
        if len(events) == 1 and not framer.stray_lf:
            # Nearly every call of every stream: one event, and it is progress.
            event = events[0]
            sight = self._observe(event)  # type: ignore[misc]
            clock = self.clock
            if sight is Sight.PROGRESS and clock.tail_at == NEVER:
                clock.progress_at = clock.out_at = now
                self.trace.relay(now, event)
                return event
            out: list[bytes] = []
            self._place(event, sight, now, out)
            return self._release(out, now)
        return self._release(self._sift(events, now), now)

    def upstream_end(self, how: BodyEnd, now: float) -> None:
        """The body is over."""
        if self.state is State.CLOSING:
            self._close_after_cr()
        if self.state is State.ENDED:
            return
        repaired = self._repair(now) if how is BodyEnd.FRAMED else UNTOUCHED
        if self.step is not None and self.step.failed is not None:
            return
        if self.state is State.WAITING:
            self._fail(nothing_came(how))
        elif self.state is State.ENDING and self.outcome is not None:
            self._end(self.outcome, repaired)
        else:
            self._conclude(self._meaning(how), now, repaired, alive=False)

    def tick(self, now: float, drained: bool) -> None:
        """Look at the clocks. `drained`: the client's transport holds nothing unsent."""
        if self.state is State.ENDED:
            return
        if self._after_cr is not None:
            if now >= self._after_cr[0]:
                self._close_after_cr()
            return
        clock = self.clock
        waiting = self.state is State.WAITING
        verdict = clock.verdict(now, waiting)
        if verdict is not None:
            self._expire(verdict, now)
        elif waiting and not self.head_sent:
            if clock.may_open(now):
                self.head_sent = self.early_open = True
                self.step = Step(open=True, insert=self._keepalive(now))
        elif drained and clock.keepalive_due(now):
            self._keep_alive(now)

    def due(self) -> float:
        """When to look next if nothing more is seen, in the clock's seconds."""
        closing = self._after_cr
        return closing[0] if closing is not None else self.clock.due(self.state is State.WAITING, self.head_sent)

    def end(self, outcome: Outcome, now: float) -> None:
        """An ending from outside: the client left, a drain deadline, an operator, a fault of our own. The first one
        wins."""
        if self.state is State.ENDED:
            return
        if self.state is State.CLOSING:
            self._close_after_cr()
        elif self.outcome is not None:
            self._end(self.outcome)
        elif outcome.end is End.CLIENT_GONE:
            self._end(outcome)
        else:
            self._conclude(outcome, now)

    def pass_plainly(self, now: float) -> bytes:
        """Too much is held in the worker: give up the unfinished event, else what waits for the commit."""
        out: list[bytes] = []
        if self.plain or self.state is State.ENDED:
            return b""
        if self.framer.held:
            self._give_up_event(now, out)
        elif self.clock.held_since != NEVER:
            self._commit(out)
        else:
            self.trace.removed += self._hold.discard()
        return self._release(out, now)

    def drain(self) -> tuple[Framing, Meter] | None:
        """What reads on once the client has left a stream that was committed and not at its end; else None."""
        gone = self.outcome is not None and self.outcome.end is End.CLIENT_GONE
        return (self.framer, self.meter) if gone and self.meter is not None and self.trace.released else None

    @property
    def held(self) -> int:
        """Bytes kept back: the unfinished event and what waits for the commit."""
        return self.framer.held + self._hold.size

    def _feed_otherwise(self, data: bytes, now: float) -> bytes:
        """Feeding in any state but plain COMMITTED."""
        if self.state is State.ENDED:
            return b""
        if self.state is State.CLOSING:
            lf = self._release([b"\n"], now) if data[0] == 0x0A else b""
            self._close_after_cr()
            return lf
        events = self.framer.feed(data)
        if not self.plain:
            return self._release(self._sift(events, now), now)
        self.clock.progress_at = now
        if events and self._skip_event:
            del events[0]
            self._skip_event = False
        for event in events:
            self.move(self._observe(event), now)  # type: ignore[misc]
        if self._skip_event or self.framer.held > self._limits.max_event:
            self.framer.take_rest()
            self._skip_event = True
        return self._release([data], now)

    def _sift(self, events: list[bytes], now: float) -> list[bytes]:
        """What of `events` goes to the client now, moving the state. An unfinished event counts as a heartbeat."""
        framer = self.framer
        out: list[bytes] = []
        if framer.stray_lf:
            # It goes where its CR went.
            if framer.lf_dropped:
                self.trace.removed += 1
            elif self.state is State.WAITING:
                self._hold.add_lf()
            else:
                out.append(b"\n")
        if not events:
            self.clock.heartbeat_at = now
        for event in events:
            self._place(event, self._observe(event), now, out)  # type: ignore[misc]
            if self.step is not None and self.step.failed is not None:
                return []
        return self._give_up_event(now, out) if framer.held > self._limits.max_event else out

    def _give_up_event(self, now: float, out: list[bytes]) -> list[bytes]:
        if self.state is State.WAITING:
            self._commit(out)
        rest = self.framer.take_rest()
        self.trace.event(now, len(rest))
        out.append(rest)
        self.plain = self._skip_event = True
        self.clock.progress_at = now
        return out

    def _place(self, event: bytes, sight: Sight, now: float, out: list[bytes]) -> None:
        """Put one event where it belongs: out to the client, into the hold, or nowhere."""
        clock = self.clock
        self.framer.dropped = False
        if sight is Sight.HEARTBEAT or sight is Sight.COMMENT:
            self._heartbeat(event, sight, now, out)
            return
        clock.progress_at = now
        clock.first_seen = True
        if sight is Sight.ADDED_USAGE:
            self._remove(event)
            return
        if self.state is State.WAITING:
            if sight is Sight.ERROR:
                self._fail((self.meter and self.meter.problem) or FAILED_FIRST)
                return
            if sight is Sight.PREAMBLE and self._holds_preamble and self._hold.preamble(event, now):
                clock.held_since = min(clock.held_since, now)
                self.step = self.step or Step()
                return
            self._commit(out)
        self.trace.event(now, len(event))
        out.append(event)
        self.move(sight, now)

    def _heartbeat(self, event: bytes, sight: Sight, now: float, out: list[bytes]) -> None:
        self.clock.heartbeat_at = now
        self.trace.heartbeats += 1
        if sight is Sight.COMMENT and not self._keeps_comments:
            self._remove(event)
        elif self.state is State.WAITING:
            self.trace.removed += self._hold.heartbeat(event, now)
        else:
            out.append(event)

    def _remove(self, event: bytes) -> None:
        self.trace.removed += len(event)
        self.framer.dropped = event.endswith(b"\r")

    def _commit(self, out: list[bytes]) -> None:
        """From here on the exchange is bound to this attempt; what was held goes first."""
        self.state = State.COMMITTED
        self.clock.held_since = NEVER
        self.clock.first_seen = True
        if self.framer.bom:
            self.trace.removed += len(BOM)
        for event, at, progress in self._hold.release():
            out.append(event)
            if progress:
                self.trace.event(at, len(event))
        self.step = self.step or Step()

    def move(self, sight: Sight, now: float) -> None:
        """The state after an event that was delivered."""
        if self.state is not State.COMMITTED or self.meter is None:
            return
        clock = self.clock
        if sight is Sight.TERMINAL or sight is Sight.ERROR:
            self.state = State.ENDING
            self.outcome = self.meter.ended(BodyEnd.FRAMED)
            clock.ending_at = now
            self.step = self.step or Step()
        elif sight is Sight.FINISHED:
            clock.tail_at = now
            self.step = self.step or Step()
        elif clock.tailing and not self.meter.finished:
            clock.tail_at = NEVER

    def _release(self, out: list[bytes], now: float) -> bytes:
        """Join, hash and count what the pump hands to the client in this call."""
        if not out:
            return b""
        data = b"".join(out)
        self.clock.out_at = now
        self.trace.release(data)
        return data

    def _repair(self, now: float) -> Repaired:
        """A last block that lacks only its blank line is an event: its bytes and the line ends that it lacks."""
        rest = self.framer.rest()
        if not rest or self._observe is None or self.plain:
            return UNTOUCHED
        end = missing_end(rest)
        sight = self._observe(rest + end)
        if sight is Sight.HEARTBEAT or sight is Sight.COMMENT:
            return UNTOUCHED
        self.framer.take_rest()
        out: list[bytes] = []
        self._place(rest, sight, now, out)
        if not out:
            return UNTOUCHED
        self.trace.repaired += len(end)
        return self._release(out, now), end

    def _meaning(self, how: BodyEnd) -> Outcome:
        return self.meter.ended(how) if self.meter is not None else CUT

    def _expire(self, verdict: Verdict, now: float) -> None:
        match verdict:
            case Verdict.GRACE | Verdict.TAIL:
                self._end(self.outcome or self._meaning(BodyEnd.FRAMED))
            case Verdict.TOTAL | Verdict.OPEN:
                self._conclude(TIME_OVER[verdict.value], now)
            case Verdict.PREAMBLE:
                out: list[bytes] = []
                self._commit(out)
                self.step = Step(write=self._release(out, now))
            case Verdict.FIRST_EVENT:
                self._fail(TIMEOUT)
            case Verdict.STALL if self.state is State.WAITING:
                self._fail(STALLED)
            case Verdict.STALL:
                whole = self.meter is not None and self.meter.finished  # where no terminal event says so
                self._conclude(self._meaning(BodyEnd.CUT) if whole else Outcome(End.STALLED, "stall", STALLED), now)

    def _keep_alive(self, now: float) -> None:
        if self.plain:
            self.clock.out_at = now  # never again, but no reason to be asked at every turn of the wheel
        if self.state is State.ENDING or self.plain or (self.trace.released and self.framer.cr_is_open):
            return
        self.step = Step(insert=self._keepalive(now))

    def _keepalive(self, now: float) -> bytes:
        saw_id = self.meter is not None and self.meter.saw_id
        keepalive = self._voice.keepalive(self.framer.line_end, saw_id)
        self.clock.out_at = now
        if keepalive:
            self.trace.keepalives += 1
            self.trace.insert(keepalive)
        return keepalive

    def _fail(self, problem: Problem) -> None:
        self.clock.rest()
        self.step = Step(failed=Failure(problem))

    def _conclude(self, outcome: Outcome, now: float, repaired: Repaired = UNTOUCHED, alive: bool = True) -> None:
        """End, with an error event where the client would otherwise take a broken answer for a whole one."""
        good = outcome.end in (End.COMPLETED, End.INCOMPLETE, End.FAILED)
        if good or outcome.problem is None or (self.state is State.WAITING and not self.head_sent):
            self._end(outcome, repaired)
            return
        self.outcome = outcome
        heard = self.state is not State.WAITING
        event = b"" if self.plain else self._voice.interrupt(outcome.problem, self.framer.line_end, heard)
        if not event:
            self._end(outcome, repaired, abort=True)
            return
        if alive and self.trace.released and self.framer.cr_is_open:
            self.state = State.CLOSING
            self._after_cr = (now + CR_GRACE_S, event)
            self.step = Step()
            return
        self._end(outcome, repaired, event)

    def _close_after_cr(self) -> None:
        if self._after_cr is not None and self.outcome is not None:
            self._end(self.outcome, event=self._after_cr[1])

    def _end(self, outcome: Outcome, repaired: Repaired = UNTOUCHED, event: bytes = b"", abort: bool = False) -> None:
        for part in filter(None, (repaired[1], event)):
            self.trace.insert(part)
        self.outcome = outcome
        self.state = State.ENDED
        self.step = Step(write=repaired[0], insert=repaired[1] + event, ended=True, abort=abort)
