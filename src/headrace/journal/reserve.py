"""Takes room on the disk beyond a file's end, so that what is written there later cannot fail for want of it."""

import ctypes
import errno
import os
import sys
from typing import Protocol

_KEEP_SIZE = 1
"""FALLOC_FL_KEEP_SIZE of fallocate(2): the room is taken, and the file ends where it did."""
_UNSUPPORTED = {errno.EOPNOTSUPP, errno.ENOTSUP, errno.ENOSYS, errno.EINVAL}


class _Fallocate(Protocol):
    """fallocate(2) as ctypes calls it."""

    def __call__(self, file: int, mode: int, offset: int, length: int, /) -> int: ...


def _find() -> _Fallocate | None:
    """Python has only posix_fallocate, which moves the end of the file."""
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None, use_errno=True)
    for name in ("fallocate64", "fallocate"):  # glibc's plain one has narrow offsets on 32 bits; musl has no other
        function = getattr(library, name, None)
        if function is not None:
            function.argtypes = (ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64)
            found: _Fallocate = function
            return found
    return None


_fallocate = _find()


def preallocate(file: int, offset: int, size: int) -> None:
    """Take `size` bytes from `offset` on; the file's size stays. OSError: see `is_unsupported`."""
    if _fallocate is None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))
    while _fallocate(file, _KEEP_SIZE, offset, size):
        error = ctypes.get_errno()
        if error != errno.EINTR:
            raise OSError(error, os.strerror(error))


def is_unsupported(error: OSError) -> bool:
    """Whether it says that room cannot be taken here at all, not that there is none."""
    return error.errno in _UNSUPPORTED
