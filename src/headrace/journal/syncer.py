"""Brings to the disk what was written, in a thread of its own, so that a disk that hangs holds up nothing else.

idle ──due──▶ waiting ──sync_s──▶ syncing ──▶ idle, or waiting again for what was written meanwhile
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from headrace.journal.segment import Segment


class Syncer:
    """One writer's. Belongs to the loop; only what is called `_in_thread` runs in the thread."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, sync_s: float, folders: Iterable[Path], report: Callable[[str], None]
    ) -> None:
        """`folders` are new: their names are brought to the disk with the first record."""
        self._loop = loop
        self._sync_s = sync_s
        self._report = report
        self._folders = list(folders)
        self._thread = ThreadPoolExecutor(1, "journal")
        self._segment: Segment | None = None
        self._waiting: asyncio.TimerHandle | None = None
        self._syncing = False
        self._failed = False
        self._closed = False

    def due(self, segment: Segment) -> None:
        """`segment` has been written to."""
        self._segment = segment
        if self._waiting is None and not self._syncing:
            self._waiting = self._loop.call_later(self._sync_s, self._sync)

    def retire(self, segment: Segment, folder: Path) -> None:
        """`segment` is complete, and `folder` has its successor: sync it, and let it go."""
        self._segment = None
        self._folders.append(folder)
        self._loop.run_in_executor(self._thread, self._close_in_thread, segment)

    def close(self, segment: Segment) -> None:
        """Sync `segment`, the last one, and let it go; returns when the thread is over."""
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None
        self._closed = True
        self._thread.shutdown()
        try:
            segment.close()
            self._sync_folders()
        except OSError as error:
            self._say(error)

    def _sync(self) -> None:
        self._waiting = None
        segment, self._segment = self._segment, None
        if segment is not None:
            self._syncing = True
            self._loop.run_in_executor(self._thread, self._sync_in_thread, segment)

    def _sync_in_thread(self, segment: Segment) -> None:
        failed: OSError | None = None
        try:
            segment.sync()
            self._sync_folders()
        except OSError as error:
            failed = error
        self._loop.call_soon_threadsafe(self._synced, failed)

    def _close_in_thread(self, segment: Segment) -> None:
        try:
            segment.close()
        except OSError as error:
            self._loop.call_soon_threadsafe(self._say, error)

    def _sync_folders(self) -> None:
        while self._folders:
            folder = self._folders.pop()
            try:
                file = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
                try:
                    os.fsync(file)
                finally:
                    os.close(file)
            except OSError:
                self._folders.append(folder)
                raise

    def _synced(self, error: OSError | None) -> None:
        self._syncing = False
        self._say(error)
        if self._segment is not None and not self._closed:
            self._waiting = self._loop.call_later(self._sync_s, self._sync)

    def _say(self, error: OSError | None) -> None:
        """Faults in a row are reported once."""
        if error is not None and not self._failed:
            why = error.strerror or error
            self._report(f"the journal cannot be synced to the disk: {why}; a power cut may lose its end")
        self._failed = error is not None
