"""From the command line to the supervisor: the same process, with another program in it.

    headrace serve ── checks the file, takes the lock, binds ──exec──▶ python -m headrace.supervisor

What the checks need (pydantic, YAML, the command line's libraries) is 50 MiB that nobody would use again for as long as
the gateway runs. The lock and the sockets stay open; the plan goes by a descriptor, for it has the gateway's secret.
"""

import os
import sys
from typing import NoReturn

import msgspec

from headrace.supervisor.directory import Lock
from headrace.supervisor.interpreter import command
from headrace.supervisor.sockets import Sockets
from headrace.supervisor.supervisor import Plan

MODULE = "headrace.supervisor"


class Handover(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor begins with; numbers are descriptors."""

    plan: Plan
    lock: int
    link: int
    sockets: tuple[tuple[int, ...], ...]
    """By address, then by slot."""
    announcement: tuple[str, ...]
    """Lines for stdout, once all workers serve."""


def hand_over(plan: Plan, lock: Lock, link: int, sockets: Sockets, announcement: tuple[str, ...]) -> NoReturn:
    """Go on as the supervisor."""
    handover = Handover(
        plan=plan, lock=lock.descriptor, link=link, sockets=sockets.descriptors, announcement=announcement
    )
    letter = _letter(msgspec.msgpack.encode(handover))
    for descriptor in (letter, handover.lock, link, *(one for each in handover.sockets for one in each)):
        os.set_inheritable(descriptor, True)
    sys.stdout.flush()
    sys.stderr.flush()
    arguments = command(MODULE, letter)
    os.execv(arguments[0], arguments)


def take_over(descriptor: int) -> tuple[Handover, Lock, Sockets]:
    """What was handed over. None of it goes on to children by itself."""
    with os.fdopen(descriptor, "rb") as letter:
        handover = msgspec.msgpack.decode(letter.read(), type=Handover)
    for number in (handover.lock, handover.link, *(one for each in handover.sockets for one in each)):
        os.set_inheritable(number, False)
    return handover, Lock.inherited(handover.lock), Sockets.inherited(handover.sockets)


def _letter(data: bytes) -> int:
    """A descriptor that `data` can be read from: memory on Linux, elsewhere a pipe, which holds 16 KiB and more."""
    in_memory = getattr(os, "memfd_create", None)
    if in_memory is not None:
        letter: int = in_memory("headrace-plan")
        with os.fdopen(os.dup(letter), "wb") as file:
            file.write(data)
        os.lseek(letter, 0, os.SEEK_SET)
        return letter
    reading, writing = os.pipe()
    with os.fdopen(writing, "wb") as file:
        file.write(data)
    return reading
