"""THE LINE: what happens to one request, in order, with its failure edges. Read `run` and `_line` from top to bottom.

    body ── call ── model ── candidates ── allowance ── attempts ── entry
     │       │        │          │            │            │
     └───────┴────────┴──────────┴────────────┴────────────┴─▶ a Problem: refused in the dialect, or said in the stream

The stages do not know each other; what one needs of another passes through here. Whatever happens, one response is sent
and one entry is written.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

from headrace.account import ALL_BUSY, Account
from headrace.admission.admit import admit_call
from headrace.http.coding import CodingError, decode_body, decoder
from headrace.http.rules import (
    content_length,
    downward,
    identity,
    stream_head,
    unbuffered,
    upstream_id_header,
    upstream_ids,
)  # fmt: skip
from headrace.journal.logbook import NO_BILL, Course, Logbook
from headrace.journal.writer import JournalError
from headrace.metering.meter import Meter
from headrace.model.channel import Model
from headrace.model.entry import Checkpoint
from headrace.model.headers import Headers
from headrace.model.key import Key
from headrace.model.outcome import End, Failure, Outcome
from headrace.model.ports import ClientRequest
from headrace.model.problem import LOST_OR_LATE, Kind, Problem
from headrace.model.refusal import (
    BAD_CODING,
    INTERNAL,
    NO_CHANNEL,
    NO_JOURNAL,
    SHUTDOWN,
    refused,
    refused_upstream,
)
from headrace.model.request import Call, ReplyHead
from headrace.model.settings import StreamSettings
from headrace.protocols.authorize import outgoing
from headrace.protocols.interface import Api
from headrace.protocols.voice import Voice
from headrace.relay.machine import Machine
from headrace.relay.machines import machine_for, machine_for_reply
from headrace.relay.pump import Pump
from headrace.relay.reply import ReplyMachine
from headrace.relay.tap import EventTap
from headrace.relay.trace import Trace
from headrace.routing.catalogue import Catalogue
from headrace.routing.plan import Candidate, order
from headrace.stages import Stages
from headrace.upstream.attempt import Attempt
from headrace.upstream.classify import final_problem, needs_body
from headrace.upstream.judge import Judge
from headrace.upstream.repeat import pause_before_repeat


class Exchange:
    """One client request with a valid key. `run` it as a task; `stop` ends it from outside; others only read it."""

    __slots__ = (
        "_catalogue", "_judge", "_limits", "_machine", "_marks", "_meter", "_operation", "_pump", "_request",
        "_stages", "_stopped", "_task", "_voice", "account", "api", "call", "id", "key", "log", "refusal", "trace",
    )  # fmt: skip

    _limits: StreamSettings
    _voice: Voice

    def __init__(
        self,
        stages: Stages,
        catalogue: Catalogue,
        request: ClientRequest,
        key: Key,
        api: Api,
        operation: str,
        id: str,
        marks: Headers,
    ) -> None:
        self.id = id
        self._marks = marks
        self._stages = stages
        self._catalogue = catalogue
        self._request = request
        self.key = key
        self.api = api
        self._operation = operation
        self.log = Logbook(stages.journal, stages.loop.time, id, key, api.protocol.value, operation, request.head)
        self.account = Account(stages, catalogue, key, self.log.at)
        self.call: Call | None = None
        self._machine: Machine | ReplyMachine | None = None
        self._pump: Pump | None = None
        self._meter: Meter | None = None
        self.refusal: Problem | None = None
        """Set where nothing may begin any more: then this is all that the client hears."""
        self._judge: Judge | None = None
        self.trace = Trace()
        self._stopped: Outcome | None = None
        self._task: asyncio.Task[None] | None = None

    # ---- the line

    async def run(self, over: "Callable[[Exchange], None]") -> None:
        """From the request's head to its entry; then `over` hears of it."""
        self._task = asyncio.current_task()
        outcome: Outcome | None = None
        try:
            outcome = await self._line()
        except asyncio.CancelledError:
            outcome = self._stopped or Outcome(End.STOPPED, "shutdown", SHUTDOWN)
        except Exception as error:  # noqa: BLE001  the one place: a fault of our own is an answer and an entry too
            outcome = self._own_fault(error)
        finally:
            try:
                self._finish(outcome if outcome is not None else Outcome(End.INTERRUPTED, "internal", INTERNAL))
            finally:
                over(self)

    async def _line(self) -> Outcome:
        if self.refusal is not None:
            return refused(self.refusal)
        body = await self._read_body()
        if isinstance(body, Problem):
            return Outcome(End.CLIENT_GONE, "client left", body) if self._request.sink.gone else refused(body)
        call = self.api.inspect(self._request.head, body, self._operation)
        if isinstance(call, Problem):
            return refused(call)
        self.call = call
        model = admit_call(call, self.key, self._catalogue, self._catalogue.stream)
        if isinstance(model, Problem):
            return refused(model)
        candidates = self._plan(call, model)
        if not candidates:
            return refused(NO_CHANNEL)
        barred = await self.account.admit(call, model, candidates)
        self._marks += self.account.room_headers(self.api.dialect)
        if barred is not None:
            return refused(barred)
        try:
            self.log.open(call)
        except JournalError as error:
            return refused(replace(NO_JOURNAL, detail=str(error)))
        return await self._attempt_all(call, model, candidates)

    async def _read_body(self) -> bytes | Problem:
        """The body, decoded from any Content-Encoding: in a thread, since a small one may expand a thousandfold."""
        body = await self._request.body()
        encodings = self._request.head.every(b"content-encoding")
        if isinstance(body, Problem) or not encodings:
            return body
        work = b",".join(encodings), self._stages.settings.server.max_body, self._request.charge
        return await self._stages.loop.run_in_executor(None, decode_body, body, *work)

    async def _attempt_all(self, call: Call, model: Model, candidates: Sequence[Candidate]) -> Outcome:
        """Try candidate after candidate until one is committed, or none is left."""
        limits = self.key.overrides.over(model.stream)
        if not self.api.may_open_early(call, self._request.head):
            limits = replace(limits, early_open=None, early_open_cold=None)
        self._limits = limits
        self._voice = Voice(self.api, self._request.head, limits.keepalive_comment, self.id)
        pump = self._start_pump(call, limits)
        failures: list[Problem] = []
        waiting, candidate, repeated = list(candidates), candidates[0], False
        while pump.machine.outcome is None and len(failures) < limits.max_attempts:
            if not waiting:
                if repeated or not await self._may_repeat(failures, pump):
                    break
                repeated, waiting = True, [candidate]
            found = await self.account.find_place(waiting, pump.meanwhile)
            if found is None or pump.machine.outcome is not None:  # over already, where it is not busy
                failures.append(ALL_BUSY)
                break
            candidate = waiting.pop(found)
            failure = await self._attempt(call, candidate, pump)
            if failure is not None:
                failures.append(failure.problem)
                if failure.final or (failure.problem.kind is Kind.BAD_REQUEST and not self._is_replaceable()):
                    break
            if self.log.maybe_executed:  # never again on a credential that may have done the work
                waiting = [other for other in waiting if not other.shares_credential(candidate)]
        refusal = refused(final_problem(failures))
        pump.end(refusal)  # the first ending wins: it may be over already
        return pump.machine.outcome or refusal

    async def _may_repeat(self, failures: list[Problem], pump: Pump) -> bool:
        """One more try on the last credential, after a pause."""
        pause = pause_before_repeat(self.log.last_status, failures[-1])
        if pause is None:
            return False
        await pump.rest(pause)
        return pump.machine.outcome is None

    # ---- one attempt

    async def _attempt(self, call: Call, candidate: Candidate, pump: Pump) -> Failure | None:
        """One upstream request; None when the exchange is over, see the machine's outcome."""
        attempt, added_usage = self._open_attempt(call, candidate)
        self.log.attempting(candidate, attempt)
        self.account.attempting(candidate)
        self._judge = None
        pump.begin(attempt)
        failure: Failure | None = None
        try:
            answer = await attempt.reply()
            if isinstance(answer, Problem):
                failure = pump.failure or Failure(answer)
                pump.lost()
            elif pump.machine.outcome is None:
                self.log.answered(answer)
                self._voice.observer = observer = self.api.observer(call, added_usage)
                self._meter = meter = Meter(observer)
                exposes = candidate.channel.expose_limits and not self.key.limits.limited
                headers = downward(answer, exposes) + self._marks + upstream_id_header(answer)
                try:
                    failure = await self._relay(call, answer, headers, meter, pump)
                except CodingError as error:
                    failure = Failure(replace(BAD_CODING, detail=str(error)))
        finally:
            self._note_attempt(failure, pump.machine.outcome)
            attempt.close()
        return failure

    def _note_attempt(self, failure: Failure | None, outcome: Outcome | None) -> None:
        """The attempt is over: what came of it, and what it spent."""
        seen = self._meter.observer if self._meter is not None else None
        if failure is not None:
            self._meter = None  # what it read belongs to no answer
        word = self._judge.word if self._judge is not None else ""
        self.log.attempted(failure, word, outcome, self.account.attempted(seen, failed=failure is not None))

    def _is_replaceable(self) -> bool:
        """Whether the last reply was not what was asked for: an error in a 200 is worth a second opinion, whoever it
        blames. A first event that is the client's fault is not."""
        return self._judge is not None and self._judge.replaceable

    def _open_attempt(self, call: Call, candidate: Candidate) -> tuple[Attempt, bool]:
        """The attempt, and whether it asks for usage that the client did not ask for. The request itself is not kept
        here: it would stay in memory for as long as the stream runs."""
        channel = candidate.channel
        request = self.api.address(call, self._request.head, channel, candidate.upstream_model)
        request = outgoing(request, self._request.head, candidate.presentation)
        return self._stages.upstream.attempt(channel, request), request.added_usage

    async def _relay(self, call: Call, head: ReplyHead, headers: Headers, meter: Meter, pump: Pump) -> Failure | None:
        """Relay what this head announces; as a stream where a stream was asked for and came."""
        machine = self._machine
        self._judge = judge = Judge(self.api, head, call.asked, opened=machine is not None and machine.head_sent)
        if isinstance(machine, Machine) and judge.stream():
            machine.answered(meter, self._now())
            coding = decoder(head.header(b"content-encoding"))
            head.keep(upstream_ids(head))  # all that the entry needs of it, and a stream may run for long
            return await pump.run(head.status, stream_head(headers, call.asked), None, coding)
        promised = isinstance(machine, Machine) and machine.head_sent and head.status < 300
        if (promised or not needs_body(head, call.asked)) and (failure := judge(b"", whole=False)) is not None:
            return failure
        reply = machine_for_reply(machine, self._limits, self.log.began, self._now(), self.trace)
        fault = head.status >= 400
        encoding = b",".join(head.every(b"content-encoding"))
        meaning = partial(refused_upstream, head) if fault else partial(meter.observe_body, encoding=encoding)
        reply.answered(judge, meaning, fault, self._now())
        if judge.at_once:
            reply.pass_on(EventTap(meter, head, encoding))
            headers = unbuffered(headers)
        pump.machine = reply
        failure = await pump.run(head.status, headers, content_length(head))
        if failure is not None and machine is not None:
            machine.rest()
            pump.machine = machine
            if reply is not machine and reply.outcome is not None:
                pump.end(reply.outcome)  # it ended while a stream was promised: only the stream's machine can say so
            elif reply is not machine and failure.problem.kind in LOST_OR_LATE:
                failure = Failure(failure.problem)  # a stream that did not begin may begin elsewhere
        return failure

    # ---- before the attempts

    def _plan(self, call: Call, model: Model) -> Sequence[Candidate]:
        candidates = self._catalogue.places(model, call.model, call.protocol)
        if len(candidates) < 2 or not call.model:
            return candidates[:1]
        return order(candidates, self.key.name, self.api.seed(call, self._request.head))

    def _start_pump(self, call: Call, limits: StreamSettings) -> Pump:
        stages = self._stages
        comments = self.api.keeps_comments
        self._machine = machine = machine_for(
            call, limits, self._voice, self.log.began, self._now(), self.trace, keeps_comments=comments
        )
        # Only a stream's head can go out before its upstream's.
        opening = stream_head(self._marks) if call.stream else []
        self._pump = Pump(machine, limits, self._request.sink, stages.share, opening, self._committed, self._ended)
        self._pump.start()
        return self._pump

    def _committed(self) -> None:
        """The exchange is bound to its attempt: the request is not needed again. A reply that is all here goes out in
        this call, and the request with it."""
        if self._pump is not None and self._pump.machine.outcome is not None:
            return
        self.account.count_sent()
        self._request.free_body()
        head = self._request.head
        head.keep(identity(head))
        if self.call is not None:
            self.call.body = b""
        self._stages.checkpoints.begin(self)

    def _ended(self, outcome: Outcome) -> None:
        """The transport has all that the client gets: the entry goes in this turn, not in the task's."""
        self._stages.checkpoints.end(self)
        self._note_attempt(None, outcome)
        self._write_entry(outcome)

    # ---- others end it

    def stop(self, outcome: Outcome) -> None:
        """End it from outside: drain deadline, an operator. What was committed gets the error event."""
        self._stopped = outcome
        if self._pump is not None:
            self._pump.end(outcome)
        elif self._task is not None:
            self._task.cancel()

    # ---- the end

    def _finish(self, outcome: Outcome) -> None:
        """One response, one entry, nothing left behind."""
        self._stages.checkpoints.end(self)
        try:
            if self._pump is not None:
                self._pump.stop()
            self._answer(outcome)
            if not self.log.closed:
                self._write_entry(outcome)
        finally:
            self.account.settle(NO_BILL)
            self._request.free_body()
            self._pump = self._machine = self._task = None

    def _answer(self, outcome: Outcome) -> None:
        """Send the refusal, where nothing has been sent and the client is there."""
        sink = self._request.sink
        if sink.gone or outcome.end is End.CLIENT_GONE:
            return
        if sink.started:
            if self._pump is None or self._pump.machine.outcome is None:
                sink.abort()
            return
        problem = outcome.problem or INTERNAL
        reply = self.api.refuse(problem, self.id)
        self.log.status = reply.status
        sink.start(reply.status, reply.headers + self._marks, len(reply.body))
        sink.insert(reply.body)
        sink.finish()

    def checkpoint(self, now: float) -> Checkpoint | None:
        """How far it has come; None where it has not moved since the last (journal.checkpoints.Running)."""
        trace = self.trace
        if self._pump is not None:
            self._pump.catch_up()
        moved = self.log.has_moved(trace.events, trace.heartbeats, trace.released)
        return self.log.checkpoint(self._course(), now) if moved else None

    def _course(self, end: End | None = None) -> Course:
        """How it went; `end` None: so far. What was read for one that is refused belongs to no answer."""
        meter, machine, sink = self._meter, self._machine, self._request.sink
        wire = self.trace.wire(self.log.began, sink.hash_out(), meter.unreadable if meter is not None else 0)
        observer = meter.observer if meter is not None and end is not End.REFUSED else None
        bill = self.account.bill(observer, end, begun=self.trace.events > 0)
        return Course(observer, bill, wire, sink.started, machine is not None and machine.early_open)

    def _write_entry(self, outcome: Outcome) -> None:
        """The entry, and what was taken given back for what it says."""
        course = self._course(outcome.end)
        try:
            self.log.close(outcome, self.call, course)
        except JournalError as error:
            self._stages.report(f"the entry of {self.id} could not be written: {error}")
        finally:
            self.account.settle(course.bill)

    def _own_fault(self, error: Exception) -> Outcome:
        problem = replace(INTERNAL, detail=f"{type(error).__name__}: {error}")
        self._stages.report(f"exchange {self.id}: {problem.detail}")
        outcome = Outcome(End.INTERRUPTED, "internal", problem)
        if self._pump is not None:
            self._pump.end(outcome)
        return outcome

    def _now(self) -> float:
        return self._stages.loop.time()
