"""Which machine an exchange needs: one for a stream, one for a reply without streaming, one for a reply that came where
a stream was promised."""

from dataclasses import replace

from headrace.model.request import Call
from headrace.model.settings import StreamSettings
from headrace.relay.clock import Clock
from headrace.relay.machine import Machine
from headrace.relay.reply import ReplyClock, ReplyMachine
from headrace.relay.trace import Trace
from headrace.relay.voice import Voice
from headrace.sse.array import framing


def machine_for(
    call: Call, limits: StreamSettings, voice: Voice, began: float, now: float, trace: Trace, *, keeps_comments: bool
) -> Machine | ReplyMachine:
    """The machine of a call. `began` and `now` are monotonic seconds."""
    if call.stream:
        return Machine(limits, voice, Clock(limits, began, now), trace, keeps_comments, framing(call.asked))
    return ReplyMachine(limits, ReplyClock(limits, began), trace)


def machine_for_reply(
    promised: Machine | ReplyMachine | None, limits: StreamSettings, began: float, now: float, trace: Trace
) -> ReplyMachine:
    """A machine for one reply without streaming to a request that asked for a stream; `promised` is the stream's.

    It waits for the first byte no longer than a stream would. Where a stream's head has gone out already, it can end
    nothing by itself.
    """
    if isinstance(promised, ReplyMachine):
        return promised
    left = limits.first_event if promised is None else promised.clock.left_for_first_event(now)
    limits = replace(limits, reply=left)
    machine = ReplyMachine(limits, ReplyClock(limits, began), trace, promised is not None and promised.head_sent)
    machine.begin(now)
    return machine
