"""The sockets of all worker slots: bound and listening before there is a worker, and open for the supervisor's life.

Each slot has a socket of its own for each TCP address (SO_REUSEPORT: the kernel spreads connections over them), so
what waits for a dead worker waits for its successor. A Unix socket is one, shared by all slots. SO_REUSEPORT would also
let a second gateway in; a bind without it, first, tells whether somebody listens there.
"""

import errno
import socket
import sys
import time
from collections.abc import Sequence
from typing import Final, Self

from headrace.listener.binding import BACKLOG, address_of, bind
from headrace.model.settings import Address

PATIENCE_S: Final = 1.0
"""The workers of a killed supervisor let go of their addresses when they notice; a start waits so long for them."""
PAUSE_S: Final = 0.02


class AddressError(Exception):
    """An address cannot be listened on: `address`, and the OSError that says why."""

    def __init__(self, address: Address, error: OSError) -> None:
        super().__init__(str(address))
        self.address = address
        self.error = error


class Sockets:
    """The listening sockets of `slots` slots on `addresses`; port 0 is chosen once, for all of them."""

    def __init__(self, addresses: Sequence[Address], slots: int, patience_s: float = PATIENCE_S) -> None:
        """Bind and listen. Raises AddressError; then nothing stays bound."""
        self._by_address: list[list[socket.socket]] = []
        self.addresses: tuple[Address, ...] = ()
        """Where it listens, with the ports that the kernel chose."""
        deadline = time.monotonic() + patience_s
        for address in addresses:
            try:
                self._by_address.append(_bound(address, slots, deadline))
            except OSError as error:
                self.close()
                raise AddressError(address, error) from None
        self.addresses = tuple(address_of(sockets[0]) for sockets in self._by_address)

    @classmethod
    def inherited(cls, descriptors: Sequence[Sequence[int]]) -> Self:
        """Those that this process bound before it became another program."""
        made = cls((), 0)
        made._by_address = [[socket.socket(fileno=one) for one in each] for each in descriptors]
        made.addresses = tuple(address_of(sockets[0]) for sockets in made._by_address)
        return made

    @property
    def descriptors(self) -> tuple[tuple[int, ...], ...]:
        """Their numbers, by address, then by slot."""
        return tuple(tuple(sock.fileno() for sock in sockets) for sockets in self._by_address)

    def of(self, slot: int) -> tuple[socket.socket, ...]:
        """The sockets of one slot, in the order of the addresses."""
        return tuple(sockets[slot % len(sockets)] for sockets in self._by_address)

    def leave(self, slot: int) -> None:
        """Nobody serves this slot any more: close what is its own, so that who comes goes to another slot or is refused
        at once. A Unix socket stays for the others, to `close`."""
        for sockets in self._by_address:
            if len(sockets) > 1 or sockets[0].family != socket.AF_UNIX:
                sockets[slot].close()

    def close(self) -> None:
        """Close them all."""
        for sockets in self._by_address:
            for sock in sockets:
                sock.close()


def _bound(address: Address, slots: int, deadline: float) -> list[socket.socket]:
    """One listening socket for a Unix address, one for each slot for a TCP address."""
    sockets = [_free(address, deadline)]
    try:
        if not address.path:
            probe = sockets.pop()
            found = address_of(probe)
            if sys.platform != "linux":
                probe.close()  # elsewhere no other socket can be bound beside it
            with probe:
                for _ in range(slots):
                    sockets.append(bind(found, shared=True))
        for sock in sockets:
            sock.listen(BACKLOG)
            sock.setblocking(False)
    except OSError:
        for sock in sockets:
            sock.close()
        raise
    return sockets


def _free(address: Address, deadline: float) -> socket.socket:
    """The address bound for this process alone; tried again until the deadline where it is in use."""
    while True:
        try:
            return bind(address)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= deadline:
                raise
            time.sleep(PAUSE_S)
