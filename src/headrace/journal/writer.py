"""Appends records to a worker's journal: written once in the loop turn they were made in, synced to disk by a thread.

    <directory>/journal/<incarnation>/<n>.segment

The incarnation is the worker's own and new at each start, so two processes never write to one file. A write that
fails (a
full disk) raises at the next `append`, before anything that costs money is begun.
"""

import asyncio
import errno
import os
from pathlib import Path

from headrace.journal.record import MAGIC, frame
from headrace.model.entry import Record

SEGMENT_BYTES = 64 * 1024 * 1024


class JournalError(Exception):
    """The journal cannot be written; the text says why."""


class Writer:
    """One worker's journal. `close` writes and syncs what is left."""

    def __init__(
        self,
        directory: Path,
        incarnation: str,
        loop: asyncio.AbstractEventLoop,
        sync_s: float = 0.2,
        segment_bytes: int = SEGMENT_BYTES,
    ) -> None:
        self._folder = directory / "journal" / incarnation
        self._loop = loop
        self._sync_s = sync_s
        self._segment_bytes = segment_bytes
        self._pending: list[bytes] = []
        self._number = 0
        self._size = 0
        self._failed: OSError | None = None
        self._syncing: asyncio.TimerHandle | None = None
        self._unsynced = False
        self._folder.mkdir(parents=True, exist_ok=True)
        self._file = self._open()

    def append(self, record: Record) -> None:
        """Take one record; it is written before the loop turn is over. JournalError when the last write failed."""
        if self._failed is not None:
            self._retry()
        if not self._pending:
            self._loop.call_soon(self._flush)
        self._pending.append(frame(record))

    def close(self) -> None:
        """Write, sync and close."""
        self._flush()
        if self._syncing is not None:
            self._syncing.cancel()
        os.fdatasync(self._file)
        os.close(self._file)
        self._file = -1

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

    def _flush(self) -> None:
        if not self._pending:
            return
        data = b"".join(self._pending)
        try:
            self._write(data)
        except OSError as error:
            self._failed = error
            return
        self._pending.clear()
        self._unsynced = True
        if self._syncing is None:
            self._syncing = self._loop.call_later(self._sync_s, self._sync)

    def _write(self, data: bytes) -> None:
        if self._size + len(data) > self._segment_bytes and self._size > len(MAGIC):
            # The new one first: where it cannot be made, the old one stays.
            full, self._file = self._file, self._open()
            self._loop.run_in_executor(None, _sync_and_close, full)
        start = self._size
        try:
            while data:
                written = os.write(self._file, data)
                self._size += written
                data = data[written:]
        except OSError:
            # A half record would hide all that is written behind it.
            os.ftruncate(self._file, start)
            self._size = start
            raise

    def _retry(self) -> None:
        """What could not be written is still here: try again before more is taken."""
        self._failed = None
        self._flush()
        failed = self._failed
        if failed is not None:
            raise JournalError(f"the journal cannot be written: {failed.strerror}")

    def _sync(self) -> None:
        self._syncing = None
        if self._unsynced:
            self._unsynced = False
            # The descriptor is duplicated: a segment may be closed while the thread works on it.
            self._loop.run_in_executor(None, _sync_and_close, os.dup(self._file))


def _sync_and_close(file: int) -> None:
    try:
        os.fdatasync(file)
    finally:
        os.close(file)
