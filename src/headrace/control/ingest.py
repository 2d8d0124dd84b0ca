"""Takes the journals into the database: each record exactly once, then its log line, then the disk space back.

    look ──▶ read a batch ──▶ take it (one transaction) ──▶ log its entries ──▶ delete what is behind
      ▲            ▲                    │
      │            │           database away: the batch is kept; 0.2 s doubling to 5 s, then ask how far it got
      └─ nothing ──┴── someone else took it: read on from where they are

Nothing waits for this: while it stands still the journals grow. A log line follows its commit, so a process that dies
between the two leaves a line out, and never writes one twice.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Protocol

from headrace.journal.place import Incarnation, Position, incarnations, segment_numbers
from headrace.journal.reader import Batch, bytes_behind, read_batch, remove, remove_before
from headrace.model.entry import Entry, Record
from headrace.state.errors import DatabaseAwayError, PositionMovedError, StateError
from headrace.state.ledger import Ledger
from headrace.telemetry.log import line

BATCH_BYTES = 1024 * 1024
"""Some 1,000 entries. Larger ones cost no less for each entry, and hold the loop and the database longer."""


@dataclass(frozen=True, slots=True)
class Pace:
    """How often to look, and to try again; seconds."""

    look_s: float = 0.2
    """Between two looks while something comes. Looking more often makes smaller, dearer transactions."""
    idle_s: float = 1.0
    retry_s: float = 0.2
    most_retry_s: float = 5.0


@dataclass(slots=True)
class Counts:
    """What was done since the process began."""

    entries: int = 0
    """Entries that came from journals."""
    settled: int = 0
    """Entries made for exchanges whose worker died."""
    damaged_bytes: int = 0
    failures: int = 0
    """Times that the database could not be asked."""


@dataclass(slots=True)
class _Reading:
    """One incarnation. `position` is None where the database has to be asked."""

    position: Position | None = None
    batch: Batch | None = None
    begins: Position = field(default_factory=Position)
    """Where `batch` begins."""
    behind: int = 0
    has_ended: bool = False
    """Taken to its end, and its worker is dead: it is only to be deleted."""
    is_unreadable: bool = False

    def forget(self) -> None:
        """Ask the database again how far it is."""
        self.position, self.has_ended = None, False


class Follower(Protocol):
    """Who keeps account of what is in the database. All calls come from one task, so nothing is taken between them."""

    def took(self, source: Incarnation, records: Sequence[Record], settled: Sequence[Entry]) -> None:
        """These are in the database for good, and `positions` says so: what a journal held, and the entries that the
        ledger has made of what its dead worker left open."""

    def lost_track(self) -> None:
        """What is in the database is not known any more: it was away, or someone else has taken journals."""

    async def looked(self) -> None:
        """A look is over: `positions` has every journal that was there. May raise StateError."""

    async def may_delete(self) -> bool:
        """Whether what was taken may be deleted from the disk now. If not it stays until it may."""


class Ingest:
    """The journals under one state directory, and one ledger. `run` is a task that its owner cancels.

    `log` gets whole lines, many at once, in a thread, so it may block. `prepare` is awaited before the first look,
    until it raises no StateError: a migration, or a check of the version. `follower` may be set before it runs.
    """

    def __init__(
        self,
        directory: Path,
        ledger: Ledger,
        report: Callable[[str], None],
        log: Callable[[bytes], None],
        prepare: Callable[[], Awaitable[object]] | None = None,
        pace: Pace | None = None,
        batch_bytes: int = BATCH_BYTES,
    ) -> None:
        self.counts = Counts()
        self.follower: Follower | None = None
        self._directory = directory
        self._ledger = ledger
        self._report = report
        self._log = log
        self._prepare = prepare
        self._pace = pace or Pace()
        self._batch_bytes = batch_bytes
        self._readings: dict[Incarnation, _Reading] = {}
        self._retry_s = 0.0
        self._log_failed = False
        self._settling: list[asyncio.Future[None]] = []
        self._looking: list[asyncio.Future[None]] = []
        self._woken = asyncio.Event()

    @property
    def lag_bytes(self) -> int:
        """Bytes of journal that are not in the database, as of the last look."""
        return sum(reading.behind for reading in self._readings.values())

    @property
    def is_away(self) -> bool:
        """Whether the database could not be asked the last time."""
        return self._retry_s > 0.0

    @property
    def positions(self) -> dict[str, Position]:
        """How far each journal has been taken, by incarnation; without those of which the database has to be asked."""
        return {
            source.name: reading.position for source, reading in self._readings.items() if reading.position is not None
        }

    def wake(self) -> None:
        """Look at once."""
        self._woken.set()

    async def caught_up(self) -> None:
        """Return once all that stands in the journals now is in the database, whatever comes meanwhile."""
        ends = await asyncio.to_thread(_ends, self._directory)
        await self._look_over()
        while any(self._is_behind(source, end) for source, end in ends.items()):
            await self._look_over()

    async def settled(self) -> None:
        """Return once a look that began after this call, and begins at once, has found nothing that was not in the
        database. A journal that cannot be read is not waited for."""
        waiting = asyncio.get_running_loop().create_future()
        self._settling.append(waiting)
        self.wake()
        await waiting

    async def _look_over(self) -> None:
        """Wait until a look is over. None is while the database is away."""
        waiting = asyncio.get_running_loop().create_future()
        self._looking.append(waiting)
        self.wake()
        await waiting

    def _is_behind(self, source: Incarnation, end: Position) -> bool:
        reading = self._readings.get(source)  # none: it is taken whole and gone
        if reading is None or reading.is_unreadable:
            return False
        at = reading.position
        return at is None or (at.segment, at.offset) < (end.segment, end.offset)

    async def run(self) -> NoReturn:
        """Ingest until cancelled. What a cancelled transaction leaves is whole: it is done or not done."""
        pause = self._pace.look_s
        while True:
            try:
                is_moving, is_full = await self._look()
            except StateError as error:
                await self._away(error)
                continue
            self._back()
            if is_full:
                continue
            pause = self._pace.look_s if is_moving else min(pause * 1.25, self._pace.idle_s)
            await self._sleep(pause)

    # ---- one look

    async def _look(self) -> tuple[bool, bool]:
        """At every incarnation once. Whether something came, and whether to look again at once."""
        self._woken.clear()
        if self._prepare is not None:
            await self._prepare()
            self._prepare = None
        asked = self._settling.copy()
        await self._find()
        is_moving = is_full = False
        for source, reading in self._readings.items():
            took = await self._step(source, reading)
            is_moving |= took
            is_full |= took and reading.behind > self._batch_bytes // 4
        if self.follower is not None:
            await self.follower.looked()
        if not is_moving:
            self._release(self._settling, asked)
        self._release(self._looking, self._looking.copy())
        return is_moving, is_full or (bool(asked) and is_moving)

    def _release(self, waiting: "list[asyncio.Future[None]]", asked: "Sequence[asyncio.Future[None]]") -> None:
        """Answer those that have asked, and forget them."""
        for one in asked:
            waiting.remove(one)
            if not one.done():
                one.set_result(None)

    async def _find(self) -> None:
        found = await asyncio.to_thread(incarnations, self._directory)
        self._readings = {one: self._readings.get(one) or _Reading() for one in found}

    async def _step(self, source: Incarnation, reading: _Reading) -> bool:
        """Take one batch of one incarnation. Whether there was something."""
        try:
            took = await self._advance(source, reading)
        except PositionMovedError:
            reading.batch = None
            self._lost_track(reading)
            return True
        except StateError:
            self._lost_track(reading)
            raise
        except OSError as error:
            self._unreadable(reading, f"cannot read or delete the journal {_named(source)}: {error.strerror or error}")
            return False
        reading.is_unreadable &= not took
        return took

    async def _advance(self, source: Incarnation, reading: _Reading) -> bool:
        if reading.position is None and (done := await self._located(source, reading)) is not None:
            return done
        if reading.has_ended:
            return await self._delete(source, reading)
        batch = reading.batch
        if batch is None:
            batch = await self._read(source, reading)
            if batch is None:
                return False
            reading.batch = batch
        settled = await self._ledger.take(source, reading.begins, batch)
        await self._taken(source, reading, batch, settled)
        return True

    async def _located(self, source: Incarnation, reading: _Reading) -> bool | None:
        """Ask the database how far it is. None: go on from `position`; else this step is done, and whether it did
        something."""
        progress = await self._ledger.progress(source)
        batch, reading.position = reading.batch, progress.position
        if batch is not None:
            if (progress.position, progress.ended) == (batch.after, batch.ended):
                # The commit whose answer was lost has been done.
                await self._taken(source, reading, batch, ())
                return True
            if progress.position != reading.begins:
                reading.batch = None
        reading.has_ended = progress.ended
        return None

    async def _read(self, source: Incarnation, reading: _Reading) -> Batch | None:
        """The next batch; None where there is nothing new."""
        begins = reading.begins = reading.position or Position()
        batch, reading.behind = await asyncio.to_thread(_batch_and_rest, source, begins, self._batch_bytes)
        if batch.ended and not source.path.is_dir():
            return None  # another process has removed it just now
        if batch.ended and begins != Position() and not segment_numbers(source.path):
            self._unreadable(
                reading, f"the journal {_named(source)} has lost its segments; exchanges that are open in it stay open"
            )
            return None
        return batch if batch.ended or batch.after != begins else None

    async def _taken(self, source: Incarnation, reading: _Reading, batch: Batch, settled: Sequence[Entry]) -> None:
        """The batch is in the database for good."""
        reading.batch, reading.position = None, batch.after
        if self.follower is not None:
            self.follower.took(source, batch.records, settled)
        entries = [record for record in batch.records if isinstance(record, Entry)]
        await self._say(source, [*entries, *settled])
        self.counts.entries += len(entries)
        self.counts.settled += len(settled)
        self.counts.damaged_bytes += batch.damaged_bytes
        if batch.damaged_bytes:
            self._report(
                f"{batch.damaged_bytes} bytes of the journal {_named(source)} are damaged; what they held is lost"
            )
        if settled:
            self._report(
                f"the worker of the journal {_named(source)} died; exchanges settled as interrupted: {len(settled)}"
            )
        if batch.ended:
            reading.has_ended = True
            await self._delete(source, reading)
        elif batch.after.segment > reading.begins.segment and await self._may_delete():
            await asyncio.to_thread(remove_before, source, batch.after)

    async def _delete(self, source: Incarnation, reading: _Reading) -> bool:
        """Delete a journal that is taken whole. Whether that was done."""
        if reading.position is None or not await self._may_delete():
            return False
        done = await asyncio.to_thread(remove, source, reading.position)
        reading.has_ended = done  # else it holds more
        return done

    async def _may_delete(self) -> bool:
        return self.follower is None or await self.follower.may_delete()

    def _lost_track(self, reading: _Reading) -> None:
        reading.forget()
        if self.follower is not None:
            self.follower.lost_track()

    async def _say(self, source: Incarnation, entries: Sequence[Entry]) -> None:
        """Write their log lines. A log that cannot be written stops nothing."""
        if not entries:
            return
        try:
            await asyncio.to_thread(_write_lines, self._log, source, entries)
        except (OSError, ValueError) as error:  # ValueError: the stream is closed
            if not self._log_failed:
                self._report(f"cannot write the log: {error}; entries go to the database all the same")
            self._log_failed = True
        else:
            self._log_failed = False

    # ---- faults and time

    def _unreadable(self, reading: _Reading, words: str) -> None:
        """Said once."""
        if not reading.is_unreadable:
            self._report(words)
        reading.is_unreadable = True

    async def _away(self, error: StateError) -> None:
        """Say so once, see how much is waiting, and wait before the next try."""
        self.counts.failures += 1
        if not self.is_away:
            is_out = isinstance(error, DatabaseAwayError)
            self._report(f"the database is away: {error}; the journal keeps what comes" if is_out else str(error))
        self._retry_s = min(self._retry_s * 2 or self._pace.retry_s, self._pace.most_retry_s)
        try:
            await self._find()
            for source, reading in self._readings.items():
                begins = reading.begins if reading.position is None else reading.position
                reading.behind = await asyncio.to_thread(bytes_behind, source, begins)
        except OSError:
            pass  # the next look says it
        await self._sleep(self._retry_s)

    def _back(self) -> None:
        if self.is_away:
            self._report("the database is back")
        self._retry_s = 0.0

    async def _sleep(self, seconds: float) -> None:
        """Until then, or until `settled` is called."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._woken.wait()


def _named(source: Incarnation) -> str:
    return f"{source.node}/{source.slot}/{source.name}"


def _write_lines(log: Callable[[bytes], None], source: Incarnation, entries: Sequence[Entry]) -> None:
    log(b"".join([line(entry, source.node, source.slot) for entry in entries]))


def _batch_and_rest(source: Incarnation, begins: Position, most_bytes: int) -> tuple[Batch, int]:
    batch = read_batch(source, begins, most_bytes)
    return batch, 0 if batch.after == begins else bytes_behind(source, batch.after)


def _ends(directory: Path) -> dict[Incarnation, Position]:
    """Where each journal under a state directory ends now."""
    found: dict[Incarnation, Position] = {}
    for source in incarnations(directory):
        for last in segment_numbers(source.path)[-1:]:
            with suppress(FileNotFoundError):
                found[source] = Position(last, source.segment(last).stat().st_size)
    return found
