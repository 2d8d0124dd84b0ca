"""The pump between a fake upstream and a fake client: order, back-pressure, budgets, and what it lets go."""

import zlib
from collections.abc import Iterator

import pytest

from headrace.http.coding import decoder
from headrace.metering.meter import Meter
from headrace.model.outcome import End, Failure, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.request import RequestHead
from headrace.model.settings import ClientGone, StreamSettings
from headrace.model.wire import BodyEnd
from headrace.protocols.chat import Chat
from headrace.protocols.chat_observer import ChatObserver
from headrace.protocols.voice import Voice
from headrace.relay.clock import Clock
from headrace.relay.machine import Machine
from headrace.relay.pump import Pump
from headrace.relay.reply import ReplyClock, ReplyMachine
from headrace.relay.share import Share
from headrace.relay.state import State
from headrace.relay.timers import QUANTUM_S, Wheel
from headrace.relay.trace import Trace
from tests.relay.driver import COMMENT, DONE, ERROR, FINISH, KEEPALIVE, ROLE, data, limits
from tests.relay.loop import Loop, Sink, Upstream

HEAD = [(b"content-type", b"text/event-stream")]
BAD = Failure(Problem(Kind.UPSTREAM_BAD_REPLY, "HTML"))


class Stage:
    """A pump with all around it."""

    def __init__(self, chosen: StreamSettings, stream: bool = True, held_limit: int = 10**9) -> None:
        self.loop = Loop()
        self.sink = Sink()
        self.wheel = Wheel(self.loop)  # type: ignore[arg-type]
        self.share = Share(self.loop, self.wheel, held_limit)  # type: ignore[arg-type]
        self.upstream = Upstream()
        self.trace = Trace()
        self.commits = 0
        self.ends: list[Outcome] = []
        """What the exchange was told of the end of what was committed."""
        now = self.loop.now
        head = RequestHead("POST", "/v1/chat/completions", "", [])
        self.machine: Machine | ReplyMachine
        if stream:
            self.machine = Machine(chosen, Voice(Chat(), head, "ka"), Clock(chosen, now, now), self.trace)
        else:
            self.machine = ReplyMachine(chosen, ReplyClock(chosen, now), self.trace)
        self.pump = Pump(self.machine, chosen, self.sink, self.share, list(HEAD), self._committed, self.ends.append)
        self.pump.start()

    def _committed(self) -> None:
        assert not self.sink.started or self.commits == 0
        self.commits += 1

    def begin(self, already: tuple[bytes, ...] = ()) -> "Stage":
        self.upstream = Upstream(already)
        self.pump.begin(self.upstream)
        return self

    def answered(self, failure: Failure | None = None, fault: bool = False) -> "Stage":
        if isinstance(self.machine, Machine):
            self.machine.answered(Meter(ChatObserver(False)), self.loop.now)
        else:
            whole = Outcome(End.COMPLETED, "stop")
            self.machine.answered(lambda body, all_of_it: failure, lambda body: whole, fault, self.loop.now)
        return self

    def run(self, status: int = 200, length: int | None = None, encoding: bytes | None = None) -> "Stage":
        self.running = self.loop.task(self.pump.run(status, HEAD, length, decoder(encoding)))
        return self

    @property
    def result(self) -> Failure | None:
        self.loop.step()
        assert self.running.done(), "the exchange still waits"
        result: Failure | None = self.running.result()
        return result

    @property
    def state(self) -> State:
        return self.machine.state

    @property
    def failure(self) -> Failure | None:
        return self.pump.failure

    @property
    def told(self) -> Problem | None:
        """Why the wait for the head was ended."""
        return self.upstream.failed_with

    @property
    def let_go(self) -> bool:
        return self.upstream.closed

    def is_over(self) -> bool:
        """Ended, and nothing to wait for."""
        return self.result is None and self.machine.outcome is not None

    @property
    def waits(self) -> bool:
        self.loop.step()
        return not self.running.done()


@pytest.fixture
def stages() -> Iterator[list[Stage]]:
    made: list[Stage] = []
    yield made
    for stage in made:
        stage.pump.stop()
        stage.pump.stop()
        assert stage.share.held == 0 and stage.share.draining == 0 and len(stage.wheel) == 0
        over = stage.commits and stage.machine.outcome is not None
        assert stage.ends == ([stage.machine.outcome] if over else []), "once, and only of what was committed"
        assert stage.sink.watcher is None
        stage.wheel.close()
        if hasattr(stage, "running") and not stage.running.done():
            stage.running.cancel()
            stage.loop.step()
        stage.loop.close()


def streaming(
    stages: list[Stage], already: tuple[bytes, ...] = (), held_limit: int = 10**9, **changed: object
) -> Stage:
    stage = Stage(limits(**changed), held_limit=held_limit)
    stages.append(stage)
    return stage.begin(already).answered().run()


def replying(
    stages: list[Stage], failure: Failure | None = None, fault: bool = False, length: int | None = None
) -> Stage:
    stage = Stage(limits(write_timeout=60.0), stream=False)
    stages.append(stage)
    return stage.begin().answered(failure, fault).run(404 if fault else 200, length)


# ---- a whole reply, and a whole stream


@pytest.mark.parametrize("failure", [None, Failure(Problem(Kind.UPSTREAM_BAD_REPLY, "HTML"))])
def test_a_reply_that_is_all_here(stages: list[Stage], failure: Failure | None) -> None:
    """Nothing is attached, held or waited for."""
    stage = Stage(limits(), stream=False)
    stages.append(stage)
    stage.begin().answered(failure)
    stage.upstream.complete = b"{}"
    stage.run(200, 2)
    assert stage.result is failure and stage.failure is failure
    assert stage.upstream.receiver is None and stage.let_go and stage.share.held == 0
    if failure is None:
        assert stage.sink.said == [("start", (200, dict(HEAD), 2)), ("write", b"{}"), ("finish", None)]
        assert stage.commits == 1 and stage.ends == [stage.machine.outcome] == [Outcome(End.COMPLETED, "stop")]
    else:
        assert stage.sink.said == [] and stage.commits == 0


def test_a_stream_from_head_to_end(stages: list[Stage]) -> None:
    stage = streaming(stages, (data("A"),))
    assert stage.sink.said == [("start", (200, dict(HEAD), None)), ("write", data("A"))], (
        "what came already goes at once"
    )
    assert stage.commits == 1
    stage.upstream.push(FINISH + DONE)
    assert stage.waits
    assert stage.ends == []
    stage.upstream.end()
    assert stage.sink.finished and stage.ends == [stage.machine.outcome], "in the call that ends it"
    assert stage.result is None
    assert stage.sink.said[2:] == [("write", FINISH + DONE), ("finish", None)]
    assert stage.machine.outcome == Outcome(End.COMPLETED, "stop")
    assert stage.let_go and stage.commits == 1


def test_what_is_held_is_not_given(stages: list[Stage]) -> None:
    stage = streaming(stages, (COMMENT, data()[:10]))
    assert not stage.sink.started and stage.commits == 0
    assert stage.share.held == len(COMMENT) + 10
    stage.upstream.push(data()[10:])
    assert stage.sink.body == COMMENT + data() and stage.share.held == 0


def test_a_tail_of_a_read_is_counted(stages: list[Stage]) -> None:
    stage = streaming(stages, (data("A") + data("B")[:30],))
    assert stage.share.held == 30
    stage.upstream.push(data("B")[30:])
    assert stage.share.held == 0


def test_early_open_and_keepalives(stages: list[Stage]) -> None:
    stage = streaming(stages, early_open=10.0, early_open_cold=25.0, keepalive=10.0)
    stage.loop.advance(10.2)
    assert stage.sink.said == [("start", (200, dict(HEAD), None)), ("insert", KEEPALIVE)]
    assert stage.commits == 0, "a keepalive commits nothing"
    stage.loop.advance(10.2)
    stage.upstream.push(data())
    assert stage.sink.body == KEEPALIVE * 2 + data() and stage.commits == 1


def test_an_end_with_an_error_event(stages: list[Stage]) -> None:
    stage = streaming(stages, (data(),))
    stage.upstream.end(BodyEnd.CUT)
    assert stage.result is None
    words = [word for word, _ in stage.sink.said]
    assert words == ["start", "write", "insert", "finish"]
    assert b"upstream_interrupted" in stage.sink.body


def test_a_last_event_without_its_blank_line_opens(stages: list[Stage]) -> None:
    stage = streaming(stages)
    stage.upstream.push(data("A", "stop")[:-2])
    stage.upstream.end()
    assert [word for word, _ in stage.sink.said] == ["start", "write", "insert", "finish"]
    assert stage.sink.body == data("A", "stop") and stage.commits == 1


def test_stall(stages: list[Stage]) -> None:
    stage = streaming(stages, (data(),), stall=5.0, stall_with_pings=5.0)
    stage.loop.advance(5.2)
    assert stage.result is None and b"upstream_stalled" in stage.sink.body
    assert stage.told is not None and stage.told.kind is Kind.UPSTREAM_STALLED


# ---- failover


def test_a_failed_attempt_and_the_next(stages: list[Stage]) -> None:
    stage = streaming(stages, (COMMENT + ERROR,))
    failure = stage.result
    assert (failure is not None, stage.let_go, stage.sink.started, stage.share.held) == (True, True, False, 0)
    assert failure is stage.pump.failure
    stage.begin((data(),)).answered().run()
    assert stage.failure is None and stage.sink.body == data()


def test_a_limit_that_passes_before_the_head(stages: list[Stage]) -> None:
    """It ends the wait for the head; the time runs from the end of the upload."""
    stage = Stage(limits(first_event=120.0))
    stages.append(stage)
    stage.begin()
    stage.loop.advance(50.0)
    stage.upstream.uploaded_at = stage.loop.now
    stage.loop.advance(119.0)
    tolds = [stage.told]
    stage.loop.advance(1.2)
    tolds.append(stage.told)
    assert [told and told.http_status for told in tolds] == [None, 504]
    assert stage.failure is not None and stage.let_go


def test_an_upload_that_takes_its_time(stages: list[Stage]) -> None:
    stage = Stage(limits(first_event=120.0))
    stages.append(stage)
    stage.begin()
    stage.loop.advance(500.0)
    assert stage.told is None


def test_a_limit_that_passes_between_the_head_and_the_relay(stages: list[Stage]) -> None:
    """The exchange has the head already and has not gone on yet: it must hear of the failure."""
    stage = Stage(limits(first_event=5.0))
    stages.append(stage)
    stage.begin()
    stage.upstream.uploaded_at = stage.loop.now
    stage.loop.advance(5.2)
    stage.answered().run()
    assert stage.result is not None and stage.result is stage.failure


def test_ended_before_the_relay(stages: list[Stage]) -> None:
    stage = Stage(limits())
    stages.append(stage)
    stage.begin()
    stage.sink.leave()
    stage.answered().run()
    assert stage.result is None and stage.machine.outcome is not None


def test_lost_before_its_head(stages: list[Stage]) -> None:
    stage = Stage(limits(first_event=5.0))
    stages.append(stage)
    stage.begin()
    stage.pump.lost()
    stage.loop.advance(100.0)
    assert stage.failure is None
    stage.begin((data(),)).answered().run()
    assert stage.sink.body == data()


def test_a_rest_between_attempts(stages: list[Stage]) -> None:
    stage = Stage(limits())
    stages.append(stage)
    stage.running = stage.loop.task(stage.pump.rest(0.8))
    stage.loop.advance(0.7)
    assert stage.waits
    stage.loop.advance(0.2)
    assert stage.result is None
    stage.running = stage.loop.task(stage.pump.rest(3.0))
    stage.sink.leave()
    assert stage.result is None, "the client's leaving cuts it short"


# ---- back-pressure


def test_a_slow_client_pauses_its_upstream(stages: list[Stage]) -> None:
    stage = streaming(stages, (data(),), stall=5.0, stall_with_pings=5.0, keepalive=2.0, write_timeout=60.0)
    stage.sink.fall_behind(100_000)
    assert stage.upstream.said == ["pause"]
    stage.loop.advance(30.0)
    assert stage.waits and stage.sink.body == data(), "no stall, and no keepalive into a full buffer"
    stage.sink.catch_up()
    assert stage.upstream.said == ["pause", "resume"]
    stage.loop.advance(4.5)
    assert (stage.waits, stage.sink.body[: len(data() + KEEPALIVE)]) == (True, data() + KEEPALIVE)
    stage.loop.advance(1.0)
    assert stage.is_over() and stage.machine.outcome is not None and stage.machine.outcome.end is End.STALLED


def test_back_pressure_without_an_attempt(stages: list[Stage]) -> None:
    stage = Stage(limits(write_timeout=60.0))
    stages.append(stage)
    stage.sink.fall_behind(10)
    stage.sink.catch_up()
    assert stage.upstream.said == []


@pytest.mark.parametrize("stream", [True, False])
def test_write_timeout_is_measured_by_bytes_taken(stages: list[Stage], stream: bool) -> None:
    """A client that takes a little lives on; one that takes nothing is cut, and finds no end that looks whole."""
    stage = streaming(stages, (data(),), write_timeout=60.0) if stream else replying(stages)
    if not stream:
        stage.upstream.push(b"x" * 70_000)
    stage.sink.fall_behind(100_000)
    for _ in range(10):
        stage.loop.advance(50.0)
        assert stage.waits
        stage.sink.unsent -= 1
    stage.loop.advance(50.0)
    assert stage.waits
    stage.loop.advance(20.0)
    assert stage.result is None
    assert stage.machine.outcome is not None
    assert (stage.machine.outcome.end, stage.machine.outcome.reason) == (End.CLIENT_GONE, "write_timeout")
    assert stage.sink.said[-1] == ("abort", None)
    assert stage.let_go


def test_a_buffer_that_grows_is_no_taking(stages: list[Stage]) -> None:
    stage = streaming(stages, (data(),), write_timeout=60.0)
    stage.sink.fall_behind(100_000)
    stage.loop.advance(30.0)
    stage.sink.unsent += 5
    stage.loop.advance(31.0)
    assert stage.result is None


# ---- the client leaves


def test_the_client_leaves(stages: list[Stage]) -> None:
    stage = streaming(stages, (data(),))
    stage.sink.leave()
    assert stage.result is None and stage.let_go
    assert [word for word, _ in stage.sink.said] == ["start", "write"], "nothing is said to one who is gone"
    assert stage.machine.outcome == Outcome(End.CLIENT_GONE, "client left")
    assert stage.loop.now == 1000.0, "at once"


def test_the_client_had_left_before(stages: list[Stage]) -> None:
    stage = Stage(limits())
    stages.append(stage)
    stage.sink.gone = True
    stage.pump.start()
    assert stage.machine.outcome is not None and stage.machine.outcome.end is End.CLIENT_GONE


def test_reading_on_without_a_client(stages: list[Stage]) -> None:
    stage = streaming(stages, (data(),), client_gone=ClientGone.DRAIN, drain_cap=60.0)
    stage.sink.leave()
    assert (stage.waits, stage.let_go, stage.share.draining) == (True, False, 1)
    assert stage.ends == [], "its usage is still read"
    stage.upstream.push(FINISH + DONE)
    assert (stage.result, stage.let_go, stage.share.draining) == (None, True, 0)
    assert stage.trace.received == len(data() + FINISH + DONE) and stage.trace.released == len(data())


def test_reading_on_is_bounded(stages: list[Stage]) -> None:
    stage = streaming(stages, (data(),), client_gone=ClientGone.DRAIN, drain_cap=60.0)
    stage.sink.leave()
    stage.loop.advance(59.0)
    assert stage.waits
    stage.loop.advance(1.2)
    assert stage.result is None and stage.let_go


def test_reading_on_has_its_places(stages: list[Stage]) -> None:
    stage = streaming(stages, (data(),), client_gone=ClientGone.DRAIN, drain_streams=0)
    stage.sink.leave()
    assert stage.result is None and stage.let_go


def test_reading_on_ends_with_the_process(stages: list[Stage]) -> None:
    stage = streaming(stages, (data(),), client_gone=ClientGone.DRAIN)
    stage.sink.leave()
    stage.pump.end(Outcome(End.STOPPED, "drain"))
    assert stage.result is None and stage.machine.outcome == Outcome(End.CLIENT_GONE, "client left")


def test_nobody_reads_on_what_was_not_begun(stages: list[Stage]) -> None:
    stage = streaming(stages, (COMMENT,), client_gone=ClientGone.DRAIN)
    stage.sink.leave()
    assert stage.result is None and stage.let_go


def test_reading_on_still_decodes(stages: list[Stage]) -> None:
    """An upstream that compressed its stream all the same is decoded behind the client's leaving too."""
    machine = zlib.compressobj(wbits=31)
    first = machine.compress(data()) + machine.flush(zlib.Z_SYNC_FLUSH)
    rest = machine.compress(FINISH + DONE) + machine.flush()
    stage = Stage(limits(client_gone=ClientGone.DRAIN))
    stages.append(stage)
    stage.begin((first,)).answered().run(encoding=b"gzip")
    assert stage.sink.body == data()
    stage.sink.leave()
    stage.upstream.push(rest)
    assert stage.result is None, "the terminal event was seen"


# ---- what a worker holds


def test_past_the_workers_budget_it_passes_plainly(stages: list[Stage]) -> None:
    stage = streaming(stages, (data(),), held_limit=50)
    stage.upstream.push(b"data: " + b"x" * 30)
    assert stage.sink.body == data() and stage.share.held == 36
    stage.upstream.push(b"x" * 30)
    assert stage.sink.body == data() + b"data: " + b"x" * 60
    assert stage.share.held == 0 and isinstance(stage.machine, Machine) and stage.machine.plain
    stage.upstream.push(b"y")
    assert stage.sink.body.endswith(b"xy")
    stage.upstream.end(BodyEnd.CUT)
    assert stage.sink.said[-1] == ("abort", None)


def test_the_budget_is_the_workers(stages: list[Stage]) -> None:
    """Another stream's unfinished event counts too."""
    stage = streaming(stages, (data(),), held_limit=50)
    stage.share.held += 45
    stage.upstream.push(b"data: {")
    assert stage.sink.body == data() + b"data: {"
    stage.share.held -= 45


def test_heartbeats_past_the_budget(stages: list[Stage]) -> None:
    stage = streaming(stages, held_limit=10)
    stage.upstream.push(COMMENT * 2)
    assert not stage.sink.started and stage.share.held == 0
    stage.upstream.push(data())
    assert stage.sink.body == data()


# ---- replies without streaming


def test_a_short_reply_has_its_length(stages: list[Stage]) -> None:
    stage = replying(stages)
    stage.upstream.push(b"{}")
    stage.upstream.end()
    assert stage.result is None
    assert stage.sink.said == [("start", (200, dict(HEAD), 2)), ("write", b"{}"), ("finish", None)]
    assert stage.commits == 1


def test_a_long_reply_keeps_its_upstreams_length(stages: list[Stage]) -> None:
    stage = replying(stages, length=70_000)
    stage.upstream.push(b"x" * 70_000)
    stage.upstream.end()
    assert [said for said in stage.sink.said if said[0] != "write"] == [
        ("start", (200, dict(HEAD), 70_000)),
        ("finish", None),
    ]


def test_an_empty_reply_has_a_head(stages: list[Stage]) -> None:
    """An upstream's 404 without a body is relayed as it came."""
    stage = replying(stages, fault=True)
    stage.upstream.end()
    assert stage.result is None
    assert stage.sink.said == [("start", (404, dict(HEAD), 0)), ("finish", None)] and stage.commits == 1


def test_a_bad_reply(stages: list[Stage]) -> None:
    stage = replying(stages, BAD)
    stage.upstream.push(b"<html>")
    assert stage.share.held == 6
    stage.upstream.end()
    assert stage.result is BAD and not stage.sink.started and stage.share.held == 0


def test_a_cut_reply_is_aborted(stages: list[Stage]) -> None:
    stage = replying(stages, length=100_000)
    stage.upstream.push(b"x" * 70_000)
    stage.upstream.end(BodyEnd.CUT)
    assert stage.result is None and stage.sink.said[-1] == ("abort", None)


@pytest.mark.parametrize("pieces", [(70_000,), (40_000, 30_000)])
def test_the_copy_of_a_reply_counts_until_the_worker_holds_too_much(
    stages: list[Stage], pieces: tuple[int, ...]
) -> None:
    """Also where the first piece is enough to judge by. What is relayed is the same."""
    stage = replying(stages, length=120_000)
    stage.share.held_limit = 100_000
    for size in pieces:
        stage.upstream.push(b"x" * size)
    assert stage.share.held == 70_000 and stage.sink.body == b"x" * 70_000 and stage.commits == 1
    stage.upstream.push(b"x" * 40_000)
    assert stage.share.held == 0 and stage.sink.body == b"x" * 110_000
    stage.upstream.push(b"x" * 10_000)
    assert stage.share.held == 0
    stage.upstream.end()
    assert stage.result is None and stage.sink.body == b"x" * 120_000 and stage.sink.said[-1] == ("finish", None)


def test_a_slow_error_reply_keeps_its_upstreams_length(stages: list[Stage]) -> None:
    stage = replying(stages, fault=True, length=500)
    stage.upstream.push(b"x" * 200)
    while not stage.sink.started:
        stage.loop.advance(QUANTUM_S)
    assert stage.sink.said == [("start", (404, dict(HEAD), 500)), ("write", b"x" * 200)] and stage.commits == 1
    assert stage.waits
    stage.upstream.end(BodyEnd.CUT)
    assert stage.result is None and stage.sink.said[-1] == ("abort", None) and stage.share.held == 0


def test_stop_lets_go_of_everything(stages: list[Stage]) -> None:
    stage = streaming(stages, (ROLE + data()[:5],))
    assert stage.share.held == 5
    stage.pump.stop()
    assert stage.share.held == 0 and stage.let_go and stage.sink.watcher is None and len(stage.wheel) == 0


def test_the_error_goes_after_the_wait_for_an_lf(stages: list[Stage]) -> None:
    stage = streaming(stages, (data()[:-2] + b"\r\n\r",), stall=5.0, stall_with_pings=5.0)
    while stage.state is State.COMMITTED:
        stage.loop.advance(QUANTUM_S)
    assert stage.state is State.CLOSING
    stage.upstream.push(b"\n")
    assert stage.result is None
    assert [word for word, _ in stage.sink.said] == ["start", "write", "write", "insert", "finish"]
