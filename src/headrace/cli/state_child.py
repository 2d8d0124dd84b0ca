"""Asks the database through a process of its own (`headrace.state.errands`): commands carry no SQLAlchemy.

with at_state(place) as state:          the process starts; its start is paid once for all orders
    for answer in state.ask(order): …   StateFailedError where the order cannot be done
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import msgspec

from headrace.link.frame import Unframer, frame
from headrace.state.errands import Answer, Done, Failed, Opening, Order

COMMAND: Final = [sys.executable, "-m", "headrace.state"]
PIECE: Final = 1 << 16
_DECODER: Final[msgspec.msgpack.Decoder[Answer]] = msgspec.msgpack.Decoder(Answer)


class StateFailedError(Exception):
    """An order was not done; the text says why and what to do."""


@dataclass(frozen=True, slots=True)
class StatePlace:
    """Where a gateway keeps its record; `database` is an address, or nothing for SQLite in the directory. `secret` is
    the gateway's own, where objects are wanted."""

    directory: Path
    database: str = field(default="", repr=False)
    secret: bytes = field(default=b"", repr=False)


class StateChild:
    """The process at work, one order after the other."""

    def __init__(self, orders: IO[bytes], answers: IO[bytes]) -> None:
        self._orders = orders
        self._answers = answers

    def ask(self, order: Order) -> Iterator[Answer]:
        """The order's answers as they come, to their end. Raises StateFailedError.

        Take them all before the next order.
        """
        self.send(order)
        for answer in self._coming():
            match answer:
                case Done():
                    return
                case Failed():
                    raise StateFailedError(answer.text)
                case _:
                    yield answer
        raise StateFailedError("the process that asks the database was ended from outside")

    def do(self, order: Order) -> None:
        """An order that nothing is answered to. Raises StateFailedError."""
        for _ in self.ask(order):
            pass

    def send(self, message: Opening | Order) -> None:
        with suppress(BrokenPipeError):  # what is read next tells of it
            self._orders.write(frame(message))
            self._orders.flush()

    def _coming(self) -> Iterator[Answer]:
        unframer = Unframer(_DECODER)  # after an order's last answer nothing comes unasked
        while data := self._answers.read(PIECE):
            yield from unframer.feed(data)


@contextmanager
def at_state(place: StatePlace) -> Iterator[StateChild]:
    """The process for one state; it ends with the block."""
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        child = StateChild(process.stdin, process.stdout)
        child.send(Opening(database=place.database, directory=str(place.directory), secret=place.secret))
        try:
            yield child
        finally:
            # Not waited for where its answers were not taken: it may have much left to say.
            process.stdin.close()
            process.stdout.close()
