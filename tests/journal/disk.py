"""A disk with faults, and a loop turn by hand, for what writes a journal."""

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Handle:
    """A call to come."""

    def __init__(self, call: Callable[[], object]) -> None:
        self.call = call
        self.cancelled = False

    def cancel(self) -> None:
        """Do not call."""
        self.cancelled = True


class Loop:
    """A loop turn by hand; what goes to a thread is done in `work`."""

    def __init__(self) -> None:
        self.soon: list[Callable[[], object]] = []
        self.later: list[tuple[float, Handle]] = []
        self.threads: list[Callable[[], object]] = []

    def call_soon(self, call: Callable[[], object]) -> None:
        """At the end of the turn."""
        self.soon.append(call)

    def call_later(self, delay: float, call: Callable[[], object]) -> Handle:
        """After some time."""
        handle = Handle(call)
        self.later.append((delay, handle))
        return handle

    def run_in_executor(self, executor: object, call: Callable[..., object], *args: object) -> None:
        """In a thread."""
        self.threads.append(lambda: call(*args))

    def call_soon_threadsafe(self, call: Callable[..., object], *args: object) -> None:
        """From a thread: at the end of the turn."""
        self.soon.append(lambda: call(*args))

    def turn(self) -> None:
        """End the loop turn."""
        calls, self.soon = self.soon, []
        for call in calls:
            call()

    def time_passes(self, delay: float | None = None) -> None:
        """All timers fall due; or those of one delay."""
        due = [(after, handle) for after, handle in self.later if delay in (None, after)]
        self.later = [timer for timer in self.later if timer not in due]
        for _, handle in due:
            if not handle.cancelled:
                handle.call()

    def work(self) -> None:
        """The threads do theirs, and the loop hears of it."""
        calls, self.threads = self.threads, []
        for call in calls:
            call()
        self.turn()


class Disk:
    """The calls of `os` that a journal makes, with faults. `room` is what is left of the disk; what a file has taken
    beforehand is its own."""

    def __init__(self) -> None:
        self.room = 1 << 40
        self.no_more_files = False
        self.broken = False
        self.plain = False
        """The file system takes no room beforehand."""
        self.writes = 0
        self.taken: list[int] = []
        """Sizes that were taken beforehand."""
        self.open_files: set[int] = set()
        self.synced: list[int] = []
        self._reserved: dict[int, int] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def open(self, path: Path, flags: int, mode: int = 0o777) -> int:
        """Open or make a file."""
        if self.no_more_files:
            raise OSError(errno.EMFILE, "too many open files")
        file = os.open(path, flags, mode)
        self.open_files.add(file)
        self._reserved[file] = 0
        return file

    def write(self, file: int, data: bytes) -> int:
        """As much as there is room for."""
        assert file in self.open_files, "a descriptor that is not the journal's"
        self.writes += 1
        if self.broken:
            raise OSError(errno.EIO, "input/output error")
        own = min(len(data), self._reserved[file])
        new = min(len(data) - own, self.room)
        if not own + new:
            raise OSError(errno.ENOSPC, "no space left on device")
        self._reserved[file] -= own
        self.room -= new
        return os.write(file, data[: own + new])

    def preallocate(self, file: int, offset: int, size: int) -> None:
        """In place of `reserve.preallocate`."""
        assert file in self.open_files and offset == os.fstat(file).st_size + self._reserved[file]
        if self.plain:
            raise OSError(errno.EOPNOTSUPP, "operation not supported")
        if size > self.room:
            raise OSError(errno.ENOSPC, "no space left on device")
        self.room -= size
        self._reserved[file] += size
        self.taken.append(size)

    def ftruncate(self, file: int, size: int) -> None:
        """Take back, and give back what was taken beforehand."""
        assert file in self.open_files
        if self.broken:
            raise OSError(errno.EIO, "input/output error")
        self.room += os.fstat(file).st_size - size + self._reserved[file]
        self._reserved[file] = 0
        os.ftruncate(file, size)

    def fdatasync(self, file: int) -> None:
        """To the disk."""
        assert file in self.open_files
        if self.broken:
            raise OSError(errno.EIO, "input/output error")
        self.synced.append(file)

    def fsync(self, file: int) -> None:
        """A folder to the disk."""
        assert file in self.open_files
        if self.broken:
            raise OSError(errno.EIO, "input/output error")

    def close(self, file: int) -> None:
        """Let go."""
        assert file in self.open_files, "a descriptor that is not the journal's"
        self.open_files.remove(file)
        os.close(file)
