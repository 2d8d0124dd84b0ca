"""The lock on a state directory, and its node."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from headrace.supervisor.directory import InUseError, Lock, node_of


def test_a_second_holder_is_told_who_the_first_one_is(tmp_path: Path) -> None:
    directory = tmp_path / "new" / "state"
    lock = Lock(directory)
    with pytest.raises(InUseError, match=rf"another headrace \(pid {os.getpid()}\) serves from {directory}"):
        Lock(directory)
    lock.close()
    Lock(directory).close()


def test_it_ends_with_its_holder_though_a_child_lives_on(tmp_path: Path) -> None:
    lock = Lock(tmp_path)
    with subprocess.Popen(
        [sys.executable, "-c", "input(input())"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        close_fds=False,
        bufsize=0,
    ) as child:
        assert child.stdin
        assert child.stdout
        child.stdin.write(b"here\n")
        assert child.stdout.read(4) == b"here"
        lock.close()
        Lock(tmp_path).close()
        child.communicate(b"\n")


def test_what_a_killed_one_left_is_no_lock(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("1234567\n")
    lock = Lock(tmp_path)
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    lock.close()


def test_the_directory_is_its_owners_alone(tmp_path: Path) -> None:
    Lock(tmp_path / "state").close()
    assert (tmp_path / "state").stat().st_mode & 0o077 == 0


def test_a_node_is_made_once(tmp_path: Path) -> None:
    name = node_of(tmp_path)
    assert len(name) == 8
    assert name.isalnum()
    assert name == node_of(tmp_path)
    (tmp_path / "other").mkdir()
    assert node_of(tmp_path / "other") != name


def test_a_node_whose_file_is_damaged_is_made_anew(tmp_path: Path) -> None:
    (tmp_path / "node").write_text("../..\n")
    name = node_of(tmp_path)
    assert name.isalnum()
    assert [path.name for path in tmp_path.iterdir()] == ["node"]
