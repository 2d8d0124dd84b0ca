"""The slots' sockets: they listen at once, share a port, and let nobody else in."""

import socket
import threading
import time
from pathlib import Path

import pytest

from headrace.listener.binding import bind
from headrace.model.settings import Address
from headrace.supervisor.sockets import AddressError, Sockets

LOCAL = Address("127.0.0.1", 0)


def connected(address: Address) -> socket.socket:
    return socket.create_connection((address.host, address.port), timeout=10)


def test_a_port_that_the_system_chooses_is_the_same_for_all_slots() -> None:
    sockets = Sockets([LOCAL], 3)
    ports = {sockets.of(slot)[0].getsockname()[1] for slot in range(3)}
    assert ports == {sockets.addresses[0].port}
    assert len({sockets.of(slot)[0].fileno() for slot in range(3)}) == 3
    sockets.close()


def test_what_connects_before_there_is_a_worker_waits() -> None:
    sockets = Sockets([LOCAL], 2)
    clients = [connected(sockets.addresses[0]) for _ in range(20)]
    accepted = 0
    for slot in range(2):
        while True:
            try:
                sockets.of(slot)[0].accept()[0].close()
            except BlockingIOError:
                break
            accepted += 1
    assert accepted == 20
    for client in clients:
        client.close()
    sockets.close()


def test_a_unix_socket_is_one_for_all_slots(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    sockets = Sockets([Address(path=path), LOCAL], 2)
    (one, tcp), (other, other_tcp) = sockets.of(0), sockets.of(1)
    assert one is other
    assert tcp is not other_tcp
    assert sockets.addresses[0] == Address(path=path)
    sockets.close()


@pytest.mark.parametrize("shared", [False, True])
def test_an_address_on_which_somebody_listens_is_in_use(shared: bool) -> None:
    """Whatever options it has: with SO_REUSEPORT alone the kernel would let both in, and give each half the clients."""
    with bind(LOCAL, shared=shared) as foreign:
        foreign.listen()
        address = Address("127.0.0.1", foreign.getsockname()[1])
        with pytest.raises(AddressError) as error:
            Sockets([LOCAL, address], 2, patience_s=0.05)
        assert error.value.address == address
        assert "in use" in str(error.value.error)


def test_an_address_that_is_let_go_in_time_is_taken() -> None:
    """The workers of a killed supervisor are a moment behind it."""
    with bind(LOCAL) as orphan:
        orphan.listen()
        address = Address("127.0.0.1", orphan.getsockname()[1])
        timer = threading.Timer(0.1, orphan.close)
        timer.start()
        sockets = Sockets([address], 1, patience_s=10)
        timer.join()
        assert sockets.addresses == (address,)
        sockets.close()


def test_an_address_that_is_none_of_this_machine_fails_at_once() -> None:
    began = time.monotonic()
    with pytest.raises(AddressError):
        Sockets([Address("192.0.2.1", 0)], 1, patience_s=5)
    assert time.monotonic() - began < 4
