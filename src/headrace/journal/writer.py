"""Appends records to a worker's journal: `opened` at once, entries once a loop turn; a thread syncs them to the disk.

    PLENTY ──no more room can be taken──▶ RESERVE ──it is used up──▶ NONE
      ▲  ▲                                   │                        │
      │  └──────────── room again ───────────┘                        │
      └─────────────── room again, what waited is written ────────────┘

Room is always taken beyond the end of what is written. While more of it can be taken, an exchange may begin. Once it
cannot, `opened` is refused, so that nothing that costs money is begun, and what was taken is for those that run. When
that is used up too, entries wait in memory, in order, and after RETRY_S without room the running exchanges are stopped.
"""

import asyncio
import sys
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import msgspec

from headrace.journal.place import SUFFIX, Incarnation
from headrace.journal.record import HEAD_BYTES, frame, reduced, seed_of
from headrace.journal.reserve import is_unsupported
from headrace.journal.segment import Segment
from headrace.journal.syncer import Syncer
from headrace.model.entry import Checkpoint, Opened, Record

MIB = 1024 * 1024
RETRY_S = 1.0
_PIECE_BYTES = 256 * 1024
"""Written at once: after a fault much may wait, and a try that fails again is to cost little."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """What a journal takes, in bytes."""

    segment: int = 64 * MIB
    reserve: int = 16 * MIB
    """Room that is there beyond the end while exchanges may begin."""
    step: int = 4 * MIB
    """Room that is taken on top of it at once, so that one call in thousands takes it."""
    kept: int = 16 * MIB
    """Of records that wait in memory for a journal that cannot be written: some 10,000 entries."""


class Room(Enum):
    """How much there is for what is still to be written."""

    PLENTY = "plenty"
    """The reserve is whole: exchanges may begin."""
    RESERVE = "reserve"
    """No more can be taken: what is left is for exchanges that run."""
    NONE = "none"
    """Nothing can be written; entries wait in memory."""


_PLENTY, _NONE = Room.PLENTY, Room.NONE
"""Where it is asked for each record: an enum's member is looked up slowly, 0.15 µs in Python 3.11."""


class JournalError(Exception):
    """The journal cannot be written; the text says why."""


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


class Writer:
    """One worker's journal. `close` writes and syncs what is left; `report` says a line to the operator.

    `on_full` is called, once each time, when running exchanges must be stopped: they could not be recorded.
    """

    def __init__(
        self,
        place: Incarnation,
        loop: asyncio.AbstractEventLoop,
        sync_s: float = 0.2,
        sizes: Sizes = Sizes(),
        report: Callable[[str], None] = _to_stderr,
        on_full: Callable[[], None] = lambda: None,
    ) -> None:
        """Make the incarnation, which must be new. OSError where that cannot be."""
        self._place = place
        self._seed = seed_of(place.name)
        self._loop = loop
        self._sizes = sizes
        self._reserve = sizes.reserve
        self._report = report
        self._on_full = on_full
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._due = False
        self._room = Room.PLENTY
        self._why = ""
        self._stopped = False
        self._lost = 0
        self._reserves = True
        self._rotate_at = sizes.segment
        self._rotation_failed = False
        self._retrying: asyncio.TimerHandle | None = None
        self._closed = False
        self._segment = self._begin()
        slot = place.path.parent
        self._syncer = Syncer(loop, sync_s, (place.path, slot, *slot.parents[:3]), report)
        self._keep_reserve()

    def append(self, record: Record) -> None:
        """Take one record.

        An `Opened` is in the file, behind all taken before, when this returns; JournalError where it is not, and then
        it is not taken. An entry is written before the loop turn is over, or as soon as that can be done. A checkpoint
        is dropped where entries may need its room.
        """
        if self._closed:
            raise JournalError("the journal is closed")
        if isinstance(record, Opened):
            if self._room is not _PLENTY:
                raise JournalError(f"the journal has no room: {self._why}")
            self._append_now(self._frame(record))
            return
        if isinstance(record, Checkpoint) and self._is_short():
            return
        data = self._frame(record)
        if self._room is _NONE:
            self._keep(data)
            return
        self._pending.append(data)
        self._pending_bytes += len(data)
        if not self._due:
            self._due = True
            self._loop.call_soon(self._turn)

    def close(self) -> None:
        """Write, sync and close, and give back the room that was not used. What cannot be written now is lost, and
        reported."""
        if self._closed:
            return
        self._flush()
        self._closed = True
        if self._retrying is not None:
            self._retrying.cancel()
            self._retrying = None
        lost = self._lost + len(self._pending)
        if lost:
            self._report(f"the journal is closed; {lost} entries could not be written and are lost")
        self._pending.clear()
        self._pending_bytes = self._lost = 0
        self._syncer.close(self._segment)

    def _frame(self, record: Record) -> bytes:
        """As it is written; reduced where it cannot be, such as for an absurd number from an upstream."""
        try:
            return frame(record, self._seed)
        except (OverflowError, TypeError, ValueError, msgspec.MsgspecError) as error:  # what encoders dislike
            self._report(f"the journal keeps a reduced record of {record.id}: {type(error).__name__}: {error}")
            return frame(reduced(record), self._seed)

    # ---- writing

    def _begin(self) -> Segment:
        """The first segment. The folder is renamed into its place with it: one that is seen is never without."""
        path = self._place.path
        new = path.with_name(f".{path.name}")
        new.mkdir(0o700, parents=True)
        try:
            segment = Segment(new, 1, self._seed)
        except OSError:
            new.rmdir()
            raise
        try:
            new.rename(path)
        except OSError:
            segment.close()
            (new / f"{segment.number}{SUFFIX}").unlink()
            new.rmdir()
            raise
        return segment

    def _append_now(self, data: bytes) -> None:
        self._pending.append(data)
        self._pending_bytes += len(data)
        self._flush()
        if self._pending:
            left = self._pending.pop()
            self._pending_bytes -= len(left)
            if len(left) < len(data):
                self._segment.cut(self._segment.size - (len(data) - len(left)))
            raise JournalError(f"the journal cannot be written: {self._why}")

    def _turn(self) -> None:
        self._due = False
        if self._room is not _NONE:  # then the timer tries
            self._flush()

    def _flush(self) -> None:
        """Write what is pending, in order, as far as that can be done."""
        if not self._pending:
            return
        segment = self._segment
        while self._pending:
            count = self._piece()
            data = b"".join(self._pending[:count])
            if segment.size + len(data) > self._rotate_at and segment.size > HEAD_BYTES:
                segment = self._rotate(len(data))
            start = segment.size
            try:
                segment.write(data)
            except OSError as error:
                self._forget(segment.size - start)
                self._cannot_write(error)
                break
            del self._pending[:count]
            self._pending_bytes -= len(data)
        self._syncer.due(segment)
        if segment.reserved_to - segment.size < self._reserve and self._room is _PLENTY:
            self._keep_reserve()

    def _piece(self) -> int:
        """How many records are written next."""
        if self._pending_bytes <= _PIECE_BYTES:
            return len(self._pending)
        size = 0
        for count, data in enumerate(self._pending):
            size += len(data)
            if size > _PIECE_BYTES:
                return max(count, 1)
        return len(self._pending)

    def _forget(self, written: int) -> None:
        """So many bytes of what is pending are in the file. What is left of a half one goes on there: nothing that a
        reader may have seen is taken back."""
        self._pending_bytes -= written
        while written and written >= len(self._pending[0]):
            written -= len(self._pending.pop(0))
        if written:
            self._pending[0] = self._pending[0][written:]

    def _rotate(self, size: int) -> Segment:
        """Begin the next segment, with a reserve of its own. Where that cannot be, this one goes on, and it is tried
        again later. The one to write to."""
        full = self._segment
        if self._room is not Room.PLENTY:
            return full
        room = self._reserve + self._sizes.step if self._reserves else 0
        try:
            self._segment = Segment(self._place.path, full.number + 1, self._seed, room)
        except OSError as error:
            self._rotate_at = full.size + size + self._sizes.step
            if not self._rotation_failed:
                self._rotation_failed = True
                self._report(f"the journal cannot begin a new segment: {_reason(error)}; the last one goes on")
            return full
        self._rotate_at = self._sizes.segment
        self._rotation_failed = False
        self._syncer.retire(full, self._place.path)
        return self._segment

    # ---- room

    def _keep_reserve(self) -> None:
        """Have the reserve whole; where that cannot be, nothing may begin."""
        try:
            self._take_room()
        except OSError as error:
            self._room = Room.RESERVE
            self._why = _reason(error)
            left = self._segment.left / MIB
            self._report(f"the journal is short of room: {self._why}; {left:.1f} MiB left; new requests are refused")
            self._retry_later()

    def _take_room(self) -> None:
        if not self._reserves:
            return
        try:
            self._segment.reserve(self._reserve, self._sizes.step)
        except OSError as error:
            if not is_unsupported(error):
                raise
            self._reserves = False
            self._report("the journal's file system takes no room beforehand: on a full disk entries wait in memory")

    def _is_short(self) -> bool:
        """Whether what room there is must be kept for entries."""
        if self._room is Room.RESERVE:
            return self._segment.left < self._reserve // 2
        return self._room is Room.NONE

    def _cannot_write(self, error: OSError) -> None:
        self._why = _reason(error)
        if self._room is not Room.NONE:
            self._room = Room.NONE
            self._stopped = False
            if self._retrying is not None:  # a whole RETRY_S before anything is stopped
                self._retrying.cancel()
                self._retrying = None
            self._report(f"the journal cannot be written: {self._why}; entries wait, new requests are refused")
        self._retry_later()

    def _keep(self, data: bytes) -> None:
        """Room in memory is bounded too. Said once; the number follows when it is known."""
        if self._pending_bytes + len(data) <= self._sizes.kept:
            self._pending.append(data)
            self._pending_bytes += len(data)
            return
        if not self._lost:
            self._report(f"the journal cannot be written: {self._why}; no more entries can be kept")
        self._lost += 1

    def _retry_later(self) -> None:
        if self._retrying is None:
            self._retrying = self._loop.call_later(RETRY_S, self._retry)

    def _retry(self) -> None:
        self._retrying = None
        self._flush()
        if self._pending and self._room is Room.NONE:
            if not self._stopped:
                self._stopped = True
                self._report("the journal still cannot be written; running exchanges are stopped")
                self._on_full()
            return
        try:
            self._take_room()
        except OSError as error:
            self._why = _reason(error)
            self._room = Room.RESERVE
            self._retry_later()
            return
        lost = f"; {self._lost} entries are lost" if self._lost else ""
        self._report(f"the journal has room again{lost}")
        self._room = Room.PLENTY
        self._lost = 0


def _reason(error: OSError) -> str:
    return str(error.strerror or error)
