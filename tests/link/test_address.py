"""The link's socket: of this user only, in a directory of any depth."""

import socket
from pathlib import Path

import pytest

from headrace.link.address import NAME, connect, listen


def deep(folder: Path) -> Path:
    """A folder whose path is too long for a socket's address."""
    found = folder.joinpath(*["a-rather-long-name-of-a-folder"] * 5)
    found.mkdir(parents=True)
    assert len(str(found)) > 108
    return found


@pytest.mark.parametrize("long", [False, True])
def test_what_connects_is_accepted(tmp_path: Path, long: bool) -> None:
    folder = deep(tmp_path) if long else tmp_path
    with listen(folder) as listener:
        assert (folder / NAME).stat().st_mode & 0o777 == 0o600
        with connect(folder) as client:  # it waits in the queue: nobody has accepted it
            client.send(b"first word")
            accepted, _ = listener.accept()
            with accepted:
                accepted.settimeout(10)
                assert accepted.recv(100) == b"first word"


def test_the_file_of_a_killed_one_is_replaced(tmp_path: Path) -> None:
    with listen(tmp_path):
        pass
    with listen(tmp_path) as second, connect(tmp_path):
        accepted, _ = second.accept()
        accepted.close()


def test_nobody_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        connect(tmp_path)
    listen(tmp_path).close()
    with pytest.raises(ConnectionRefusedError):
        connect(tmp_path)


def test_elsewhere_than_on_linux_a_long_path_is_an_error_with_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headrace.link.address.sys.platform", "darwin")
    with pytest.raises(OSError, match=r"the path of state\.directory is too long"):
        listen(deep(tmp_path))


def test_a_full_queue_is_an_error_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("headrace.link.address.BACKLOG", 0)
    waiting: list[socket.socket] = []
    with listen(tmp_path), pytest.raises(BlockingIOError):
        for _ in range(10):
            waiting.append(connect(tmp_path))
    for one in waiting:
        one.close()
