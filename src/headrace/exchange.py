"""THE LINE: what happens to one request, in order, with its failure edges. Read `run` and `_line` from top to bottom.

    body ── call ── model ── candidates ── attempts ── entry
     │       │        │          │            │
     └───────┴────────┴──────────┴────────────┴─▶ a Problem: refused in the client's dialect, or said in the stream

The stages do not know each other; what one needs of another passes through here. Whatever happens, one response is sent
and one entry is written.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, replace

from headrace.http.rules import downward, upstream_request_id, upward
from headrace.journal.writer import JournalError, Writer
from headrace.metering.meter import Meter
from headrace.model.channel import Model
from headrace.model.entry import AttemptLine, Entry, Opened
from headrace.model.headers import Headers
from headrace.model.key import Key, StreamOverrides
from headrace.model.outcome import End, Outcome
from headrace.model.ports import ClientRequest
from headrace.model.problem import Kind, Problem, Source
from headrace.model.request import Call, ReplyHead, UpstreamRequest
from headrace.model.settings import Settings, StreamSettings
from headrace.model.usage import NOTHING
from headrace.protocols.authorize import authorize
from headrace.protocols.interface import Api
from headrace.relay.clock import Clock
from headrace.relay.machine import Machine
from headrace.relay.pump import HeldBudget, Pump
from headrace.relay.reply import ReplyClock, ReplyMachine
from headrace.relay.state import Failure
from headrace.relay.timers import Wheel
from headrace.relay.trace import Trace
from headrace.routing.catalogue import Catalogue
from headrace.routing.plan import SESSION_HEADERS, Candidate, order, places
from headrace.upstream.attempt import Attempt, Upstream
from headrace.upstream.classify import Advice, Asked, Verdict, classify, final_problem

LAST_TRY_S = 0.8
"""The pause before one more try on the same credential, when no candidate is left."""
LONGEST_PAUSE_S = 3.0
"""The longest Retry-After that such a try waits for."""
_STREAM_HEADERS: Headers = [(b"cache-control", b"no-cache, no-transform"), (b"x-accel-buffering", b"no")]
_EVENT_STREAM = (b"content-type", b"text/event-stream; charset=utf-8")
_LOST_IN_TRANSIT = frozenset((Kind.UPSTREAM_UNREACHABLE, Kind.UPSTREAM_INTERRUPTED))


@dataclass(frozen=True, slots=True)
class Stages:
    """What all exchanges of a worker share."""

    loop: asyncio.AbstractEventLoop
    settings: Settings
    wheel: Wheel
    held: HeldBudget
    upstream: Upstream
    journal: Writer
    report: Callable[[str], None]
    """Says a line to the operator: faults of our own."""


class Exchange:
    """One client request with a valid key. `run` it as a task; `stop` ends it from outside."""

    __slots__ = (
        "_api", "_attempts", "_began", "_began_at", "_call", "_catalogue", "_key", "_machine", "_meter", "_model",
        "_operation", "_pump", "_request", "_stages", "_status", "_stopped", "_task", "_trace", "_verdict", "id",
    )  # fmt: skip

    def __init__(
        self, stages: Stages, catalogue: Catalogue, request: ClientRequest, key: Key, api: Api, operation: str, id: str
    ) -> None:
        self.id = id
        self._stages = stages
        self._catalogue = catalogue
        self._request = request
        self._key = key
        self._api = api
        self._operation = operation
        self._began = stages.loop.time()
        self._began_at = time.time()
        self._call: Call | None = None
        self._model: Model | None = None
        self._machine: Machine | ReplyMachine | None = None
        self._pump: Pump | None = None
        self._meter: Meter | None = None
        self._verdict: Verdict | None = None
        self._trace = Trace()
        self._attempts: list[AttemptLine] = []
        self._status: int | None = None
        self._stopped: Outcome | None = None
        self._task: asyncio.Task[None] | None = None

    # ---- the line

    async def run(self) -> None:
        """From the request's head to its entry."""
        self._task = asyncio.current_task()
        outcome: Outcome | None = None
        try:
            outcome = await self._line()
        except asyncio.CancelledError:
            outcome = self._stopped or Outcome(End.STOPPED, "shutdown", _SHUTDOWN)
        except Exception as error:  # noqa: BLE001  the one place: a fault of our own is an answer and an entry too
            outcome = self._own_fault(error)
        finally:
            self._finish(outcome if outcome is not None else Outcome(End.INTERRUPTED, "internal", _INTERNAL))

    async def _line(self) -> Outcome:
        body = await self._request.body()
        if isinstance(body, Problem):
            return self._unreadable(body)
        call = self._api.inspect(self._request.head, body, self._operation)
        if isinstance(call, Problem):
            return _refused(call)
        self._call = call
        model = self._find_model(call)
        if isinstance(model, Problem):
            return _refused(model)
        self._model = model
        candidates = self._plan(call, model)
        if not candidates:
            return _refused(Problem(Kind.NO_CHANNEL_AVAILABLE, "No channel of this model can take the request now."))
        try:
            self._write_opened(call)
        except JournalError as error:
            return _refused(replace(_NO_JOURNAL, detail=str(error)))
        return await self._attempt_all(call, model, candidates)

    async def _attempt_all(self, call: Call, model: Model, candidates: list[Candidate]) -> Outcome:
        """Try candidate after candidate until one is committed, or none is left."""
        limits = limits_of(model.stream, self._key.overrides)
        pump = self._start_pump(call, limits)
        failures: list[Problem] = []
        for number in range(limits.max_attempts):
            candidate = candidates[min(number, len(candidates) - 1)]
            if number >= len(candidates) and not await self._may_repeat(number == len(candidates), failures, pump):
                break
            failure = await self._attempt(call, candidate, pump)
            if pump.machine.outcome is not None:
                return pump.machine.outcome
            if failure is None:
                raise AssertionError("an attempt that is over has an outcome or a failure")
            failures.append(failure.problem)
            if failure.final or _is_clients(failure.problem):
                break
        problem = final_problem(failures)
        if pump.machine.outcome is None:
            pump.end(Outcome(End.REFUSED, problem.kind.value, problem))
        return pump.machine.outcome or _refused(problem)

    async def _may_repeat(self, first_repeat: bool, failures: list[Problem], pump: Pump) -> bool:
        """One more try on the last credential after a pause, and only after a *received* 5xx, 529 or 429."""
        last = self._attempts[-1].status
        if not first_repeat or last is None or not (last == 429 or last >= 500):
            return False
        wait = failures[-1].retry_after_s
        if wait is not None and wait > LONGEST_PAUSE_S:
            return False
        await pump.rest(wait if wait is not None else LAST_TRY_S)
        return pump.machine.outcome is None

    # ---- one attempt

    async def _attempt(self, call: Call, candidate: Candidate, pump: Pump) -> Failure | None:
        """One upstream request; None when the exchange is over, see the machine's outcome."""
        request = self._address(call, candidate)
        attempt = self._stages.upstream.attempt(candidate.channel, request)
        started = self._stages.loop.time()
        self._verdict = None
        pump.begin(attempt)
        head: ReplyHead | None = None
        failure: Failure | None = None
        try:
            answer = await attempt.reply()
            if isinstance(answer, Problem):
                failure = pump.failure or Failure(answer)
                pump.lost()
            else:
                head = answer
                failure = await self._relay(call, candidate, request, head, pump)
        finally:
            self._note_attempt(candidate, attempt, started, head, failure)
            attempt.close()
        return failure

    async def _relay(
        self, call: Call, candidate: Candidate, request: UpstreamRequest, head: ReplyHead, pump: Pump
    ) -> Failure | None:
        """Relay what this head announces; as a stream where a stream was asked for and came."""
        if pump.machine.outcome is not None:
            return None
        self._meter = meter = Meter(self._api.observer(call, request.added_usage))
        headers = downward(head.headers, candidate.channel.expose_limits) + self._own_headers(head)
        machine = self._machine
        asked = Asked.EVENTS if call.stream else Asked.JSON
        if call.stream and 200 <= head.status < 300 and isinstance(machine, Machine):
            self._verdict = classify(head, b"", asked, time.time(), whole=False, opened=machine.head_sent)
            if self._verdict.as_stream:
                machine.answered(meter, self._stages.loop.time())
                self._status = 200
                return await pump.run(200, _stream_head(headers), None)
        reply = machine if isinstance(machine, ReplyMachine) else self._reply_machine(pump)
        pump.machine = reply
        judge = self._judge(head, asked, machine is not None and machine.head_sent)
        fault = head.status >= 400
        reply.answered(
            judge, lambda body: _refused_upstream(head) if fault else meter.observe_body(body), fault, self._now()
        )
        self._status = head.status
        failure = await pump.run(head.status, headers, _length(head))
        if failure is not None and machine is not None:
            pump.machine = machine
            machine.rest()
        return failure

    def _judge(self, head: ReplyHead, asked: Asked, opened: bool) -> Callable[[bytes, bool], Failure | None]:
        def judge(body: bytes, whole: bool) -> Failure | None:
            reading = self._api.classify_fault(head, body) if whole else None
            verdict = classify(head, body, asked, time.time(), whole=whole, opened=opened, reading=reading)
            self._verdict = verdict
            if verdict.problem is not None:
                return Failure(verdict.problem)
            if verdict.advice is Advice.RELAY_FAULT and opened:
                return Failure(reading or _refused_late(head.status), final=True)
            return None

        return judge

    def _address(self, call: Call, candidate: Candidate) -> UpstreamRequest:
        """The request as it goes up: the protocol's form, the client's headers by the list, one credential."""
        channel = candidate.channel
        request = self._api.address(call, channel, candidate.upstream_model)
        credential, query = authorize(channel, candidate.credential, call.protocol)
        headers = upward(self._request.head.headers)
        headers += request.headers
        headers += [(name.lower().encode("ascii"), value.encode("utf-8")) for name, value in channel.headers]
        headers.append((b"accept-encoding", b"identity"))
        headers += credential
        parts = [request.query, query, *(f"{name}={value}" for name, value in channel.query)]
        return replace(request, headers=headers, query="&".join(part for part in parts if part))

    # ---- before the attempts

    def _find_model(self, call: Call) -> Model | Problem:
        catalogue = self._catalogue
        model = catalogue.find_model(call.model)
        if model is None or not self._key.may_use(call.model):
            close = catalogue.close_names(call.model, self._key)
            if model is not None:
                return Problem(
                    Kind.MODEL_NOT_ALLOWED,
                    f"This key may not use the model {call.model[:200]!r}. Choose one from GET /v1/models.",
                    param="model",
                )
            return Problem(
                Kind.MODEL_NOT_FOUND,
                f"There is no model {call.model[:200]!r}. Choose one from GET /v1/models.",
                param="model",
                did_you_mean=close[0] if close else None,
            )
        if not catalogue.offers(model, call.protocol):
            formats = catalogue.formats(model)
            return Problem(
                Kind.PROTOCOL_NOT_OFFERED,
                f"The model {call.model!r} is not offered through this endpoint. It takes: {', '.join(formats)}.",
                param="model",
                accepted_formats=formats,
            )
        return model

    def _plan(self, call: Call, model: Model) -> list[Candidate]:
        candidates = places(model, call.model, call.protocol, self._catalogue.channels)
        if len(candidates) < 2:
            return candidates
        head = self._request.head
        session = next((value for name in SESSION_HEADERS if (value := head.header(name))), b"")
        return order(candidates, self._key.name, session or self._api.seed(call, head))

    def _start_pump(self, call: Call, limits: StreamSettings) -> Pump:
        stages = self._stages
        asked_at = self._now()
        machine: Machine | ReplyMachine
        if call.stream:
            machine = Machine(limits, _Voice(self, limits), Clock(limits, self._began, asked_at), self._trace)
        else:
            machine = ReplyMachine(limits, ReplyClock(limits, self._began), self._trace)
        self._machine = machine
        opening = [_EVENT_STREAM, *_STREAM_HEADERS, *self._own_headers(None)]
        self._pump = Pump(
            machine, limits, self._request.sink, stages.wheel, stages.loop, stages.held, opening, self._committed
        )
        self._pump.start()
        return self._pump

    def _reply_machine(self, pump: Pump) -> ReplyMachine:
        """A machine for one reply without streaming to a request that asked for a stream."""
        assert self._model is not None
        limits = limits_of(self._model.stream, self._key.overrides)
        machine = ReplyMachine(limits, ReplyClock(limits, self._began), self._trace)
        machine.begin(self._now())
        return machine

    def _committed(self) -> None:
        """The exchange is bound to its attempt: the request is not needed again."""
        self._request.free_body()
        if self._call is not None:
            self._call.body = b""

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
        try:
            if self._pump is not None:
                self._pump.stop()
            self._answer(outcome)
            self._write_entry(outcome)
        finally:
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
        problem = outcome.problem or _INTERNAL
        reply = self._api.refuse(problem, self.id)
        self._status = reply.status
        sink.start(reply.status, reply.headers + self._own_headers(None), len(reply.body))
        sink.insert(reply.body)
        sink.finish()

    def _write_opened(self, call: Call) -> None:
        self._stages.journal.append(
            Opened(
                id=self.id,
                at=self._began_at,
                protocol=call.protocol.value,
                key=self._key.name,
                owner=self._key.owner,
                model=call.model,
            )
        )

    def _write_entry(self, outcome: Outcome) -> None:
        try:
            self._stages.journal.append(self._entry(outcome))
        except JournalError as error:
            self._stages.report(f"the entry of {self.id} could not be written: {error}")

    def _entry(self, outcome: Outcome) -> Entry:
        call, meter, problem = self._call, self._meter, outcome.problem
        observer = meter.observer if meter is not None else None
        usage = observer.usage if observer is not None else NOTHING
        origin = "none"
        if observer is not None and usage.known:
            origin = "upstream" if observer.usage_is_final else "upstream_partial"
        source = problem.fault.value if problem is not None else ""
        if outcome.end is End.REFUSED and problem is None:
            source = Source.UPSTREAM.value
        return Entry(
            id=self.id,
            at=self._began_at,
            duration_s=round(self._now() - self._began, 4),
            protocol=self._api.protocol.value,
            operation=self._operation,
            key=self._key.name,
            owner=self._key.owner,
            model=call.model[:200] if call is not None else "",
            stream=call.stream if call is not None else False,
            end=outcome.end.value,
            reason=outcome.reason,
            kind=problem.kind.value if problem is not None else "",
            source=source,
            detail=problem.detail[:500] if problem is not None else "",
            status=self._status if self._request.sink.started else None,
            served_model=observer.served_model if observer is not None else "",
            finish_reasons=observer.finish_reasons if observer is not None else (),
            usage=usage,
            usage_origin=origin,
            attempts=tuple(self._attempts),
            early_open=self._machine.early_open if self._machine is not None else False,
            client_request_id=(self._request.head.header(b"x-request-id") or b"")[:100].decode("latin-1"),
            wire=self._trace.wire(
                self._began, self._request.sink.hash_out(), meter.unreadable if meter is not None else 0
            ),
        )

    def _note_attempt(
        self, candidate: Candidate, attempt: Attempt, started: float, head: ReplyHead | None, failure: Failure | None
    ) -> None:
        if failure is not None:
            verdict = failure.problem.kind.value
        else:
            verdict = self._verdict.word if self._verdict is not None else ""
        executed = attempt.maybe_executed or (
            failure is not None and head is not None and failure.problem.kind in _LOST_IN_TRANSIT
        )
        self._attempts.append(
            AttemptLine(
                channel=candidate.channel.name,
                credential=candidate.credential.name,
                upstream_model=candidate.upstream_model,
                started_s=round(started - self._began, 4),
                ended_s=round(self._now() - self._began, 4),
                status=head.status if head is not None else None,
                verdict=verdict,
                detail=failure.problem.detail[:300] if failure is not None else "",
                upstream_request_id=upstream_request_id(head.headers)[:100].decode("latin-1") if head else "",
                reused=attempt.reused,
                replayed=attempt.replayed,
                maybe_executed=executed,
            )
        )

    def _own_headers(self, head: ReplyHead | None) -> Headers:
        """The gateway's id under both names that SDKs read, and the upstream's beside it."""
        own = self.id.encode("ascii")
        headers = [(b"x-request-id", own), (b"request-id", own)]
        theirs = upstream_request_id(head.headers) if head is not None else b""
        if theirs:
            headers.append((b"x-upstream-request-id", theirs))
        return headers

    def _unreadable(self, problem: Problem) -> Outcome:
        if self._request.sink.gone:
            return Outcome(End.CLIENT_GONE, "client left", problem)
        return _refused(problem)

    def _own_fault(self, error: Exception) -> Outcome:
        problem = replace(_INTERNAL, detail=f"{type(error).__name__}: {error}")
        self._stages.report(f"exchange {self.id}: {problem.detail}")
        outcome = Outcome(End.INTERRUPTED, "internal", problem)
        if self._pump is not None:
            self._pump.end(outcome)
        return outcome

    def _now(self) -> float:
        return self._stages.loop.time()


class _Voice:
    """The client's protocol, speaking for the gateway in this exchange's stream (see `relay.voice.Voice`)."""

    __slots__ = ("_comment", "_exchange")

    def __init__(self, exchange: Exchange, limits: StreamSettings) -> None:
        self._exchange = exchange
        self._comment = limits.keepalive_comment

    def keepalive(self, line_end: bytes | None, saw_id: bool) -> bytes:
        """A whole keepalive."""
        exchange = self._exchange
        return exchange._api.keepalive(line_end or b"\n", saw_id, exchange._request.head, self._comment)

    def interrupt(self, problem: Problem, line_end: bytes | None) -> bytes:
        """A whole error event."""
        meter = self._exchange._meter
        return self._exchange._api.interrupt(problem, meter.observer if meter else None, line_end or b"\n")


def limits_of(limits: StreamSettings, overrides: StreamOverrides) -> StreamSettings:
    """The model's limits with what the key sets for itself."""
    if overrides == _NO_OVERRIDES:
        return limits
    early, cold = overrides.early_open, overrides.early_open_cold
    return replace(
        limits,
        keepalive=overrides.keepalive if overrides.keepalive is not None else limits.keepalive,
        early_open=None if overrides.early_open_never else early if early is not None else limits.early_open,
        early_open_cold=None
        if overrides.early_open_cold_never
        else cold
        if cold is not None
        else limits.early_open_cold,
    )


_NO_OVERRIDES = StreamOverrides()
_INTERNAL = Problem(
    Kind.INTERNAL, "The gateway failed. Try again; if it happens again, tell the operator the request id."
)
_SHUTDOWN = Problem(Kind.STOPPED, "The gateway is shutting down and ended this request.")
_NO_JOURNAL = Problem(Kind.OVERLOADED, "The gateway cannot write its journal now. Try again later.", retry_after_s=5.0)


def _refused(problem: Problem) -> Outcome:
    return Outcome(End.REFUSED, problem.kind.value, problem)


def _refused_upstream(head: ReplyHead) -> Outcome:
    return Outcome(End.REFUSED, f"upstream {head.status}")


def _refused_late(status: int) -> Problem:
    return Problem(Kind.BAD_REQUEST, f"The upstream refused the request with status {status}.", Source.UPSTREAM)


def _is_clients(problem: Problem) -> bool:
    return problem.kind is Kind.BAD_REQUEST


def _stream_head(headers: Headers) -> Headers:
    kept = [field for field in headers if field[0] not in (b"content-length", b"content-encoding")]
    if not any(name == b"content-type" for name, _ in kept):
        kept.insert(0, _EVENT_STREAM)
    return kept + _STREAM_HEADERS


def _length(head: ReplyHead) -> int | None:
    value = head.header(b"content-length")
    return int(value) if value is not None and value.isdigit() else None
