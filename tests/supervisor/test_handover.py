"""From the command line to the supervisor: all that it needs arrives, and goes no further by itself."""

import os
import socket
from pathlib import Path

import pytest

from headrace.model.settings import Address, ServerSettings, StateSettings
from headrace.supervisor.directory import InUseError, Lock
from headrace.supervisor.handover import hand_over, take_over
from headrace.supervisor.sockets import Sockets
from headrace.supervisor.supervisor import Plan


class Became(Exception):  # noqa: N818  no error
    """In place of another program."""


@pytest.fixture(params=["memory", "pipe"])
def letter(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "pipe":
        monkeypatch.delattr("os.memfd_create", raising=False)


@pytest.mark.usefixtures("letter")
def test_all_that_is_handed_over_arrives(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    commands: list[list[str]] = []

    def become(_: str, arguments: list[str]) -> None:
        commands.append(arguments)
        raise Became

    monkeypatch.setattr("headrace.supervisor.handover.os.execv", become)
    state = StateSettings(directory=str(tmp_path), secret=bytes(range(32)))
    plan = Plan("/etc/headrace.yaml", "abcd2345", ServerSettings(workers=2), state, migrate=False)
    lock = Lock(tmp_path)
    sockets = Sockets([Address("127.0.0.1", 0), Address(path=str(tmp_path / "s"))], 2)
    with socket.socket(socket.AF_UNIX) as link, pytest.raises(Became):
        hand_over(plan, lock, link.detach(), sockets, ("it listens",))
    arguments = commands[0]
    assert bytes(range(32)).hex() not in " ".join(arguments)
    assert arguments[-4:-1] == ["-m", "headrace.supervisor", "--fd"]
    descriptors = [lock.descriptor, int(arguments[-1]), *(one for each in sockets.descriptors for one in each)]
    assert all(map(os.get_inheritable, descriptors))
    numbers = sockets.descriptors
    addresses = sockets.addresses
    for each in sockets._by_address:
        for sock in each:
            sock.detach()

    found, held, taken = take_over(int(arguments[-1]))
    assert found.plan == plan
    assert found.announcement == ("it listens",)
    assert (taken.descriptors, taken.addresses) == (numbers, addresses)
    assert not any(map(os.get_inheritable, (found.link, held.descriptor, *(one for each in numbers for one in each))))
    with pytest.raises(InUseError):
        Lock(tmp_path)
    with socket.create_connection((addresses[0].host, addresses[0].port), timeout=10):
        pass
    taken.close()
    held.close()
    os.close(found.link)
    Lock(tmp_path).close()
