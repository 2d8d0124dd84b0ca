"""Addresses as bound sockets: what is in use stays as it is, and what is shared may be bound again."""

import os
import socket
from pathlib import Path

import pytest

from headrace.listener.binding import address_of, bind
from headrace.model.settings import Address
from tests.listener.stand import serving


def is_socket(path: str) -> bool:
    return Path(path).is_socket()


async def test_a_unix_socket_in_use_is_left_alone(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    async with serving(listen=(Address(path=path),)) as stand:
        with pytest.raises(OSError, match="in use"):
            bind(Address(path=path))
        assert await stand.works()


def test_a_unix_socket_with_a_full_queue_is_in_use(tmp_path: Path) -> None:
    path = str(tmp_path / "socket")
    with socket.socket(socket.AF_UNIX) as busy, socket.socket(socket.AF_UNIX) as waiting:
        busy.bind(path)
        busy.listen(0)
        waiting.connect(path)
        with pytest.raises(OSError, match="in use"):
            bind(Address(path=path))
    assert is_socket(path)


def test_a_unix_socket_is_for_owner_and_group_whatever_the_umask(tmp_path: Path) -> None:
    path = tmp_path / "socket"
    for mask in (0o000, 0o077):
        before = os.umask(mask)
        try:
            bind(Address(path=str(path))).close()
        finally:
            os.umask(before)
        assert path.stat().st_mode & 0o777 == 0o660


def test_what_is_no_socket_is_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("mine")
    with pytest.raises(OSError, match="in use"):
        bind(Address(path=str(path)))
    assert path.read_text() == "mine"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_shared_address_is_bound_by_several_and_then_in_use_for_all_others(host: str) -> None:
    with bind(Address(host, 0)) as probe:
        address = address_of(probe)
        with bind(address, shared=True) as one, bind(address, shared=True) as two:
            one.listen()
            two.listen()
            probe.close()
            with pytest.raises(OSError, match="in use"):
                bind(address)
