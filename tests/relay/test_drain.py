"""Reading on without a client: bounded, and nothing more than metered."""

from collections.abc import Iterator

import pytest

from headrace.metering.meter import Meter
from headrace.model.wire import BodyEnd
from headrace.protocols.chat_observer import ChatObserver
from headrace.relay.drain import Drain
from headrace.relay.share import Share
from headrace.relay.timers import Wheel
from headrace.relay.trace import Trace
from headrace.sse.framing import Framer
from tests.relay.driver import DONE, ERROR, FINISH, USAGE, data
from tests.relay.loop import Loop, Upstream


class Stage:
    """A drain with all around it."""

    def __init__(self) -> None:
        self.loop = Loop()
        self.share = Share(self.loop, Wheel(self.loop), 10**9)  # type: ignore[arg-type]
        self.upstream = Upstream()
        self.meter = Meter(ChatObserver(False))
        self.trace = Trace()
        self.ended = 0
        self.drain = Drain(self.upstream, Framer(), self.meter, self.trace, self.share, 1060.0, self._ended)

    def _ended(self) -> None:
        self.ended += 1


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    assert stage.share.draining == 1
    yield stage
    stage.drain.finish()
    assert stage.ended == 1 and stage.upstream.closed and stage.share.draining == 0
    stage.loop.close()


@pytest.mark.parametrize("last", [DONE, ERROR])
def test_up_to_the_terminal_event(stage: Stage, last: bytes) -> None:
    stage.drain.body(data() + FINISH[:9])
    assert stage.ended == 0
    stage.drain.body(FINISH[9:] + USAGE)
    stage.drain.body(last + data())
    assert stage.ended == 1
    assert stage.meter.observer.usage.output_total == 3
    assert stage.trace.received == len(data() + FINISH + USAGE + last + data()) and stage.trace.released == 0


def test_up_to_the_end_of_the_body(stage: Stage) -> None:
    stage.drain.body(data())
    stage.drain.body_end(BodyEnd.CUT)
    assert stage.ended == 1


def test_up_to_the_deadline(stage: Stage) -> None:
    assert stage.drain.tick(1059.0) == 1060.0
    assert stage.drain.tick(1060.0) is None
    assert stage.drain.tick(1061.0) is None and stage.ended == 1
