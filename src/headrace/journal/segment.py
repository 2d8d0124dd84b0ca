"""One segment of a journal as its worker writes it: locked for as long as it is open, with room taken beyond its end.

It is made under another name and renamed once it is locked and has its head and its room: so a segment that is seen is
whole at its beginning, and its worker lives.
"""

import errno
import fcntl
import os
from pathlib import Path

from headrace.journal.place import SUFFIX
from headrace.journal.record import head
from headrace.journal.reserve import preallocate


class Segment:
    """An open one. Whoever has it calls `close`, from any thread."""

    __slots__ = ("file", "number", "reserved_to", "size")

    def __init__(self, folder: Path, number: int, seed: int, room: int = 0) -> None:
        """A new one, with `room` bytes taken beyond its end. OSError where that cannot be; then nothing is there."""
        self.number = number
        self.size = 0
        """Where it ends, and the next byte goes."""
        self.reserved_to = 0
        """How far it can be written without new room."""
        new = folder / f".{number}{SUFFIX}"
        # One may lie there that could not be renamed.
        self.file = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self.write(head(seed))
            if room:
                self.reserve(room, 0)
            new.rename(folder / f"{number}{SUFFIX}")
        except OSError:
            os.close(self.file)
            new.unlink()
            raise

    @property
    def left(self) -> int:
        """Bytes that can be written without new room."""
        return max(self.reserved_to - self.size, 0)

    def write(self, data: bytes) -> None:
        """Append. OSError where not all of it could be; `size` says how much was."""
        while data:
            written = os.write(self.file, data)
            if not written:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self.size += written
            data = data[written:]

    def reserve(self, room: int, more: int) -> None:
        """Have at least `room` bytes beyond the end; where they lack, take `more` on top. OSError where there is no
        room."""
        if self.reserved_to - self.size < room:
            start = max(self.reserved_to, self.size)
            end = self.size + room + more
            preallocate(self.file, start, end - start)
            self.reserved_to = end

    def cut(self, size: int) -> None:
        """End at `size` again. That gives the room beyond it back too. Where it cannot be, what is behind `size` stays;
        a reader steps over it."""
        try:
            os.ftruncate(self.file, size)
        except OSError:
            return
        self.size = self.reserved_to = size

    def sync(self) -> None:
        """What was written is on the disk when this returns. OSError where it is not."""
        os.fdatasync(self.file)

    def close(self) -> None:
        """Give the room back, sync, and let go. OSError where the sync failed; it is let go all the same."""
        try:
            self.cut(self.size)
            self.sync()
        finally:
            os.close(self.file)
