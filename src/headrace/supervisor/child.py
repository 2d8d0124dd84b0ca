"""One child process: started with the descriptors that it needs and no other, spoken to over a socket pair.

Its first message, the boot, may be held back: the child imports what it needs meanwhile. The end of the pair is the end
of the supervisor for the child, whatever became of that; the end of the process comes by SIGCHLD.
"""

import asyncio
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from headrace.link.channel import Channel
from headrace.link.messages import ToSupervisor
from headrace.supervisor.interpreter import command

_DECODER: Final = msgspec.msgpack.Decoder(ToSupervisor)


class Child:
    """A process that runs `python -m module`; `title` names it to the operator.

    `on_message` has its words; `on_gone` is called once, when it has ended and all that it said was heard.
    """

    def __init__(
        self,
        title: str,
        module: str,
        on_message: Callable[["Child", ToSupervisor], None],
        on_gone: Callable[["Child"], None],
    ) -> None:
        self.title = title
        self.reason = ""
        """Its own word on why it cannot serve."""
        self._module = module
        self._on_message = on_message
        self._on_gone = on_gone
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: Channel[ToSupervisor] = Channel(_DECODER, self._take, self._closed)
        self._heard_all = False

    def __str__(self) -> str:
        return f"{self.title} (pid {self.pid})"

    @property
    def pid(self) -> int:
        """Its process; 0 before there is one."""
        return self._process.pid if self._process is not None else 0

    @property
    def status(self) -> int | None:
        """Its exit status once it has ended, as subprocess has it."""
        return self._process.returncode if self._process is not None else None

    async def spawn(self, descriptors: Sequence[int]) -> None:
        """Start the process, with `descriptors` inherited under the same numbers. Raises OSError."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        ours.setblocking(False)
        with theirs:
            try:
                self._process = _started(self._module, theirs.fileno(), descriptors)
            except OSError:
                ours.close()
                raise
        await asyncio.get_running_loop().create_unix_connection(lambda: self._channel, sock=ours)

    def send(self, message: object) -> None:
        """Say something to it; the first message is its boot."""
        self._channel.send(message)

    def terminate(self) -> None:
        """SIGTERM, for one that does not hear."""
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGTERM)

    def reap(self) -> None:
        """See whether it has ended."""
        if self._process is not None and self._process.returncode is None and self._process.poll() is not None:
            self._check()

    def _take(self, message: ToSupervisor) -> None:
        self._on_message(self, message)

    def _closed(self, reason: str) -> None:
        self._heard_all = True
        self._check()

    def _check(self) -> None:
        if self._heard_all and self.status is not None:
            self._on_gone(self)


def words_for(status: int) -> str:
    """An exit status as it is told: "exit code 1", "SIGKILL"."""
    if status >= 0:
        return f"exit code {status}"
    try:
        return signal.Signals(-status).name
    except ValueError:
        return f"signal {-status}"


def _started(module: str, pair: int, descriptors: Sequence[int]) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        command(module, pair),
        stdin=subprocess.DEVNULL,
        pass_fds=(pair, *descriptors),
        start_new_session=True,  # a terminal's Ctrl-C is for the supervisor alone
    )
