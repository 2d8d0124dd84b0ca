"""Appends records to a worker's journal: `opened` at once, entries once a loop turn; a thread syncs them to the disk.

    <directory>/journal/<incarnation>/<n>.segment

The incarnation is the worker's own and new at each start, so two processes never write to one file. While it cannot be
written (a full disk), `opened` is refused, so that nothing that costs money is begun; entries are kept in memory, and
written in order once that works again.
"""

import asyncio
import errno
import os
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec

from headrace.journal.record import MAGIC, frame, reduced
from headrace.model.entry import Opened, Record

SEGMENT_BYTES = 64 * 1024 * 1024
KEPT_BYTES = 16 * 1024 * 1024
"""Of records that wait in memory for a journal that cannot be written: some 20,000 entries."""
RETRY_S = 1.0
_PIECE_BYTES = 256 * 1024
"""Written at once: after a fault much may wait, and a try that fails again is to cost little."""


class JournalError(Exception):
    """The journal cannot be written; the text says why."""


def _to_stderr(line: str) -> None:
    sys.stderr.write(f"{line}\n")


class Writer:
    """One worker's journal. `close` writes and syncs what is left; `report` says a line to the operator."""

    def __init__(
        self,
        directory: Path,
        incarnation: str,
        loop: asyncio.AbstractEventLoop,
        sync_s: float = 0.2,
        segment_bytes: int = SEGMENT_BYTES,
        kept_bytes: int = KEPT_BYTES,
        report: Callable[[str], None] = _to_stderr,
    ) -> None:
        self._folder = directory / "journal" / incarnation
        self._loop = loop
        self._sync_s = sync_s
        self._segment_bytes = segment_bytes
        self._kept_bytes = kept_bytes
        self._report = report
        self._pending: list[bytes] = []
        self._pending_bytes = 0
        self._due = False
        self._number = 0
        self._size = 0
        self._torn = False
        self._failed: OSError | None = None
        self._lost = 0
        self._retrying: asyncio.TimerHandle | None = None
        self._syncing: asyncio.TimerHandle | None = None
        self._unsynced = False
        self._sync_failed = False
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file = self._open()

    def append(self, record: Record) -> None:
        """Take one record. An `Opened` is in the file, behind all taken before, when this returns; JournalError where
        it is not, and then it is not taken. An entry is written before the loop turn is over, or as soon as that can
        be done."""
        if self._file < 0:
            raise JournalError("the journal is closed")
        data = self._frame(record)
        if isinstance(record, Opened):
            self._append_now(data)
            return
        if self._failed is not None and self._pending_bytes + len(data) > self._kept_bytes:
            self._lose()
            return
        self._pending.append(data)
        self._pending_bytes += len(data)
        if not self._due:
            self._due = True
            self._loop.call_soon(self._turn)

    def close(self) -> None:
        """Write, sync and close. What cannot be written now is lost, and reported."""
        self._flush()
        for timer in (self._syncing, self._retrying):
            if timer is not None:
                timer.cancel()
        self._syncing = self._retrying = None
        lost = self._lost + len(self._pending)
        if lost:
            self._report(f"the journal is closed; {lost} entries could not be written and are lost")
        self._pending.clear()
        self._pending_bytes = self._lost = 0
        file, self._file = self._file, -1
        try:
            try:
                os.fdatasync(file)
            finally:
                os.close(file)
        except OSError as error:
            self._synced(error)

    def _frame(self, record: Record) -> bytes:
        """As it is written; reduced where it cannot be, such as for an absurd number from an upstream."""
        try:
            return frame(record)
        except (OverflowError, TypeError, ValueError, msgspec.MsgspecError) as error:  # what encoders dislike
            self._report(f"the journal keeps a reduced record of {record.id}: {type(error).__name__}: {error}")
            return frame(reduced(record))

    # ---- writing

    def _open(self) -> int:
        number = self._number + 1
        path = self._folder / f"{number}.segment"
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            if os.write(file, MAGIC) < len(MAGIC):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError:
            os.close(file)
            path.unlink(missing_ok=True)
            raise
        self._number, self._size = number, len(MAGIC)
        return file

    def _append_now(self, data: bytes) -> None:
        self._pending.append(data)
        self._pending_bytes += len(data)
        self._flush()
        if self._pending:
            self._pending.pop()
            self._pending_bytes -= len(data)
            raise JournalError(f"the journal cannot be written: {_why(self._failed)}")

    def _turn(self) -> None:
        self._due = False
        self._flush()

    def _retry(self) -> None:
        self._retrying = None
        self._flush()

    def _flush(self) -> None:
        """Write what is pending, in order, as far as that can be done."""
        if not self._pending:
            return
        while self._pending:
            count = self._piece()
            data = b"".join(self._pending[:count])
            try:
                self._write(data)
            except OSError as error:
                self._fail(error)
                break
            del self._pending[:count]
            self._pending_bytes -= len(data)
            self._unsynced = True
        else:
            if self._failed is not None:
                self._recover()
        if self._unsynced and self._syncing is None:
            self._syncing = self._loop.call_later(self._sync_s, self._sync)

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

    def _write(self, data: bytes) -> None:
        if self._torn or (self._size + len(data) > self._segment_bytes and self._size > len(MAGIC)):
            # The new one first: where it cannot be made, the old one stays.
            full, self._file = self._file, self._open()
            self._torn = False
            self._loop.run_in_executor(None, self._sync_and_close, full)
        start = self._size
        try:
            while data:
                written = os.write(self._file, data)
                self._size += written
                data = data[written:]
        except OSError:
            if self._size > start:
                self._take_back(start)
            raise

    def _take_back(self, size: int) -> None:
        """A half record would hide all that is written behind it; where it must stay, nothing is."""
        try:
            os.ftruncate(self._file, size)
        except OSError:
            self._torn = True
        else:
            self._size = size

    # ---- faults

    def _fail(self, error: OSError) -> None:
        if self._failed is None:
            self._report(f"the journal cannot be written: {_why(error)}; new requests are refused, entries are kept")
        self._failed = error
        if self._retrying is None:
            self._retrying = self._loop.call_later(RETRY_S, self._retry)

    def _recover(self) -> None:
        lost = f"; {self._lost} entries are lost" if self._lost else ""
        self._report(f"the journal is written again{lost}")
        self._failed = None
        self._lost = 0

    def _lose(self) -> None:
        """Room in memory is bounded. Said once; the number follows when it is known."""
        if not self._lost:
            self._report(f"the journal cannot be written: {_why(self._failed)}; no more entries can be kept")
        self._lost += 1

    # ---- syncing

    def _sync(self) -> None:
        self._syncing = None
        if not self._unsynced:
            return
        try:
            # The descriptor is duplicated: a segment may be closed while the thread works on it.
            file = os.dup(self._file)
        except OSError as error:
            self._synced(error)
            self._syncing = self._loop.call_later(self._sync_s, self._sync)
            return
        self._unsynced = False
        self._loop.run_in_executor(None, self._sync_and_close, file)

    def _sync_and_close(self, file: int) -> None:
        """In a thread."""
        failed: OSError | None = None
        try:
            try:
                os.fdatasync(file)
            finally:
                os.close(file)
        except OSError as error:
            failed = error
        if failed is not None or self._sync_failed:
            self._loop.call_soon_threadsafe(self._synced, failed)

    def _synced(self, error: OSError | None) -> None:
        """Faults in a row are reported once."""
        if error is not None and not self._sync_failed:
            self._report(f"the journal cannot be synced to the disk: {_why(error)}; a power cut may lose its end")
        self._sync_failed = error is not None


def _why(error: OSError | None) -> str:
    return str(error.strerror or error) if error is not None else "an earlier fault"
