"""Room that is taken beforehand, on the file system that the tests run on."""

import ctypes
import errno
import os
from pathlib import Path

import pytest

from headrace.journal import reserve
from headrace.journal.reserve import is_unsupported, preallocate


def test_room_beyond_the_end(tmp_path: Path) -> None:
    file = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    try:
        os.write(file, b"x")
        try:
            preallocate(file, 1, 1 << 20)
        except OSError as error:
            assert is_unsupported(error)
            pytest.skip(f"needs a file system that takes room beforehand: {error}")
        found = os.fstat(file)
        assert found.st_size == 1 and found.st_blocks * 512 >= 1 << 20
    finally:
        os.close(file)


def test_errors_of_the_kernel(tmp_path: Path) -> None:
    file = os.open(tmp_path / "file", os.O_WRONLY | os.O_CREAT)
    os.close(file)
    with pytest.raises(OSError, match=r"Bad file descriptor|not supported") as caught:
        preallocate(file, 0, 1)
    assert caught.value.errno in (errno.EBADF, errno.EOPNOTSUPP)


def test_a_call_that_was_interrupted_is_made_again(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[int, ...]] = []

    def fallocate(*arguments: int) -> int:
        calls.append(arguments)
        ctypes.set_errno(errno.EINTR)
        return -1 if len(calls) < 3 else 0

    monkeypatch.setattr(reserve, "_fallocate", fallocate)
    preallocate(7, 100, 50)
    assert calls == [(7, 1, 100, 50)] * 3


def test_where_there_is_no_such_call(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reserve, "_fallocate", None)
    with pytest.raises(OSError, match="not supported") as caught:
        preallocate(7, 0, 1)
    assert is_unsupported(caught.value)
    assert not is_unsupported(OSError(errno.ENOSPC, "")) and not is_unsupported(OSError(errno.EDQUOT, ""))
