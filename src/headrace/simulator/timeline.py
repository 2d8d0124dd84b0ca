"""Turns events into timed writes: a pure chain of generators, one per concern, in this order.

    events → timed (pauses) → cut_short (faults) → joined → with_heartbeats → held (tail) → split (writes) → encoded

Everything is lazy: a step is made when the one before it has been written.
"""

import zlib
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from headrace.simulator.scenario import Cut, During, Encoding, Faults, Heartbeat, How, Pacing, WriteMode, Writes
from headrace.simulator.spelling import Event


class Step(NamedTuple):
    """One write. `wait_s` counts from when the step before was due; `events` of the body are complete with it.

    `tokens` counts the completion tokens said so far. `alone`: no other write in the same loop turn.
    (A tuple: half the cost of a frozen dataclass, and one is made per event.)
    """

    wait_s: float
    data: bytes
    events: int = 0
    tokens: int = 0
    alone: bool = False


class Timeline:
    """The steps of one body; `how` says how it ends, once they are exhausted (None: as it should)."""

    def __init__(self, events: Iterable[Event], spell: Callable[[Event], bytes], preamble: bytes = b"") -> None:
        self._events = events
        self._spell = spell
        self._preamble = preamble
        self.how: How | None = None

    def steps(self, pacing: Pacing, faults: Faults) -> Iterator[Step]:
        steps = self._timed(pacing)
        if faults.cut is not None and faults.cut.head_bytes is None:
            steps = self._cut_short(steps, faults.cut)
        if pacing.writes.mode is WriteMode.JOINED:
            steps = joined(steps)
        steps = self._held(with_heartbeats(steps, pacing.heartbeats), pacing.heartbeats, faults.tail_hold_s)
        steps = split(steps, pacing.writes)
        if faults.content_encoding is not Encoding.IDENTITY:
            steps = self._encoded(steps, faults.content_encoding)
        return steps

    def measured(self, pacing: Pacing, faults: Faults) -> tuple["Timeline", int]:
        """A timeline of the same events, held in memory, and the number of body bytes that these faults would give."""
        events = list(self._events)
        trial = Timeline(events, self._spell, self._preamble)
        length = sum(len(step.data) for step in trial.steps(pacing, faults))
        return Timeline(events, self._spell, self._preamble), length

    def _timed(self, pacing: Pacing) -> Iterator[Step]:
        """Each event with the pause before it; the preamble goes out with the head, before the first pause."""
        if self._preamble:
            yield Step(0.0, self._preamble)
        spell, gaps, gap = self._spell, pacing.gaps, pacing.gap_s
        usual = pacing.first_delay_s
        for index, event in enumerate(self._events):
            wait = gaps.get(index, usual) if event.delay_s is None else event.delay_s
            yield Step(wait, spell(event), 1, event.tokens)
            usual = gap

    def _cut_short(self, steps: Iterator[Step], cut: Cut) -> Iterator[Step]:
        """Steps up to the cut. Exactly at a boundary it ends without the next event's pause."""
        events = size = 0
        for step in steps:
            if cut.at_byte is not None and size + len(step.data) > cut.at_byte:
                yield step._replace(data=step.data[: cut.at_byte - size], events=0)
                break
            if step.events and events == cut.after_events:
                # `extra` is not 0 here: with 0 the loop ended below. Negative: all but so many bytes.
                yield step._replace(data=step.data[: cut.extra], events=0)
                break
            yield step
            events += step.events
            size += len(step.data)
            if size == cut.at_byte or (events == cut.after_events and not cut.extra):
                break
        else:
            if cut.after_events is None and cut.at_byte is None:
                self.how = cut.how
            return
        self.how = cut.how

    def _held(self, steps: Iterator[Step], beats: tuple[Heartbeat, ...], hold_s: float) -> Iterator[Step]:
        """The steps, then the silence after them: `tail_hold`, or a stall, with its heartbeats."""
        tokens = 0
        for step in steps:
            tokens = step.tokens or tokens
            yield step
        if self.how is How.STALL:
            beat = beat_during(beats, During.STALL)
            count = 0
            while beat is not None and (beat.limit is None or count < beat.limit):
                count += 1
                yield Step(beat.every_s, beat.form, 0, tokens)
        elif hold_s and self.how in (None, How.CLEAN):
            yield from _filled(Step(hold_s, b"", 0, tokens), beat_during(beats, During.STALL))

    def _encoded(self, steps: Iterator[Step], encoding: Encoding) -> Iterator[Step]:
        """Compressed with a flush per write, so that each write can be read on arrival; ended only if the body is."""
        # 31: gzip. 15: zlib, which is what HTTP calls deflate (RFC 9110 8.4.1.2).
        packer = zlib.compressobj(wbits=31 if encoding is Encoding.GZIP else 15)
        for step in steps:
            packed = packer.compress(step.data) + packer.flush(zlib.Z_SYNC_FLUSH) if step.data else b""
            yield step._replace(data=packed)
        if self.how in (None, How.CLEAN):
            yield Step(0.0, packer.flush())


def joined(steps: Iterator[Step]) -> Iterator[Step]:
    """All in one write, at the first event's time."""
    found = list(steps)
    if found:
        wait = next((step.wait_s for step in found if step.events), 0.0)
        yield Step(wait, b"".join(step.data for step in found), sum(step.events for step in found), found[-1].tokens)


def beat_during(beats: tuple[Heartbeat, ...], phase: During) -> Heartbeat | None:
    return next((beat for beat in beats if beat.during in (phase, During.ANY)), None)


def with_heartbeats(steps: Iterator[Step], beats: tuple[Heartbeat, ...]) -> Iterator[Step]:
    """The pauses before and between events filled with heartbeats; an event keeps its time."""
    if not beats:
        yield from steps
        return
    beat = beat_during(beats, During.FIRST)
    for step in steps:
        yield from _filled(step, beat)
        if step.events:
            beat = beat_during(beats, During.GAP)


def _filled(step: Step, beat: Heartbeat | None) -> Iterator[Step]:
    rest, count = step.wait_s, 0
    while beat is not None and rest > beat.every_s and (beat.limit is None or count < beat.limit):
        count += 1
        rest -= beat.every_s
        yield Step(beat.every_s, beat.form, 0, step.tokens)
    yield step._replace(wait_s=rest)


def split(steps: Iterator[Step], writes: Writes) -> Iterator[Step]:
    """Steps cut into smaller writes; a step's event is complete with its last piece."""
    if not writes.size and not writes.at:
        yield from steps
        return
    events = size = 0
    for step in steps:
        yield from _pieces(step, _cuts(step, writes, events, size))
        events += step.events
        size += len(step.data)


def _cuts(step: Step, writes: Writes, event: int, start: int) -> dict[int, float]:
    """Offsets inside this step where it is cut, in order, each with the pause before the rest."""
    length = len(step.data)
    if writes.size:
        return dict.fromkeys(range(writes.size, length, writes.size), writes.gap_s)
    if writes.in_event is None:
        cuts = {offset - start: pause for offset, pause in writes.at.items()}
    elif step.events and event == writes.in_event:
        cuts = {offset + length if offset < 0 else offset: pause for offset, pause in writes.at.items()}
    else:
        return {}
    return {offset: cuts[offset] for offset in sorted(cuts) if 0 < offset < length}


def _pieces(step: Step, cuts: dict[int, float]) -> Iterator[Step]:
    wait, start = step.wait_s, 0
    for offset, pause in cuts.items():
        yield Step(wait, step.data[start:offset], 0, step.tokens, alone=True)
        wait, start = pause, offset
    yield Step(wait, step.data[start:], step.events, step.tokens, alone=bool(cuts))
