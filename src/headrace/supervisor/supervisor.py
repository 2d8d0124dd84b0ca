"""The supervisor: starts, follows, rolls and drains one control process and the workers; it serves nothing itself.

    start ─▶ control process ready ─▶ workers ready ─▶ serving ──SIGTERM, SIGINT──▶ draining ─▶ exit 0
             (or 15 s, and there is                      │ SIGHUP: reload             └ second ─▶ ended at once, exit 1
              a snapshot from before)                    └ SIGUSR2: roll

Children start at once and import what they need; the workers get their boot, and so begin, when there is a snapshot for
them. Draining takes the workers first; the control process follows them, for it has their last records to take.
"""

import asyncio
import signal
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from headrace.link.address import SNAPSHOT
from headrace.link.messages import ControlBoot, Drain, End, Reload, WorkerBoot
from headrace.model.settings import ServerSettings, StateSettings
from headrace.supervisor.child import Child
from headrace.supervisor.crew import Crew, Role
from headrace.supervisor.seat import Phase
from headrace.supervisor.sockets import Sockets

CONTROL_S: Final = 15.0
"""So long a first start waits for the control process where a snapshot from before is there."""
END_S: Final = 2.0
"""So long children may take to end at once; then they get SIGTERM, and half of it again."""
DRAINED: Final = 0
FAILED: Final = 1


@dataclass(frozen=True, slots=True)
class Plan:
    """What a gateway is run with. `config` is the file's absolute path; the state has its secret."""

    config: str
    node: str
    server: ServerSettings
    state: StateSettings
    migrate: bool = True


class Supervisor:
    """Runs a gateway on sockets that listen. `say` has lines for the operator; `serving` is called once, when all
    workers serve for the first time. Must be made within a running loop."""

    def __init__(
        self,
        plan: Plan,
        sockets: Sockets,
        link: socket.socket,
        say: Callable[[str], None],
        serving: Callable[[], None],
        control_s: float = CONTROL_S,
    ) -> None:
        self._plan = plan
        self._sockets = sockets
        self._say = say
        self._serving = serving
        self._control_s = control_s
        self._change = asyncio.Event()
        self._signals = 0
        self._roll: asyncio.Task[None] | None = None
        self._roll_again = False
        boot = ControlBoot(
            node=plan.node, config=plan.config, server=plan.server, state=plan.state, link=link.fileno(),
            migrate=plan.migrate,
        )  # fmt: skip
        role = Role("control process", "headrace.control", boot, (link.fileno(),))
        self._control = Crew(role, say, self._changed, held=False)
        self._workers = [
            Crew(_worker(plan, slot, sockets), say, self._changed, held=True) for slot in range(plan.server.workers)
        ]

    async def run(self) -> int:
        """Until it has drained, was ended, or could not start; the exit code."""
        loop = asyncio.get_running_loop()
        for number, heard in (
            (signal.SIGTERM, self._stop),
            (signal.SIGINT, self._stop),
            (signal.SIGHUP, self._reload),
            (signal.SIGUSR2, self._ask_roll),
            (signal.SIGCHLD, self._reap),
        ):
            loop.add_signal_handler(number, heard)
        for crew in self._crews:
            crew.fill()
        if not await self._started():
            self._say(self._unable)
            await self._end()
            return FAILED
        await self._until(lambda: self._signals > 0)
        return await self._drained()

    @property
    def _crews(self) -> list[Crew]:
        return [self._control, *self._workers]

    @property
    def _is_over(self) -> bool:
        """Whether a start has come to its end before all serve."""
        return bool(self._signals or self._unable)

    @property
    def _unable(self) -> str:
        return next((crew.unable for crew in self._crews if crew.unable), "")

    # ---- starting

    async def _started(self) -> bool:
        """Whether it serves, or was told to stop before; False where a child says that it never can."""
        if not await self._until(lambda: self._control.serves or self._is_over, self._control_s):
            if (Path(self._plan.state.directory) / SNAPSHOT).exists():
                self._say("the control process is not ready; workers start with the snapshot from before")
            else:
                self._say("the control process is not ready, and there is no snapshot from before; workers wait for it")
                await self._until(lambda: self._control.serves or self._is_over)
        for crew in self._workers:
            crew.release()
        await self._until(lambda: all(crew.serves for crew in self._workers) or self._is_over)
        if self._signals:
            return True
        if self._unable:
            return False
        self._serving()
        return True

    # ---- signals

    def _stop(self) -> None:
        self._signals += 1
        self._changed()

    def _reload(self) -> None:
        if not self._control.serves:
            self._say("the control process is starting, and reads the file with that")
        self._control.say(Reload())

    def _ask_roll(self) -> None:
        if self._signals:
            return
        self._roll_again = True
        if self._roll is None or self._roll.done():
            self._roll = asyncio.get_running_loop().create_task(self._roll_all())

    def _reap(self) -> None:
        for crew in self._crews:
            crew.reap()

    # ---- rolling

    async def _roll_all(self) -> None:
        """Replace the workers one by one; asked meanwhile, once more."""
        while self._roll_again:
            self._roll_again = False
            self._say("rolling the workers")
            for crew in self._workers:
                if not await self._roll_one(crew):
                    self._say("the roll is given up; the workers that were not replaced serve on")
                    return
            self._say("the workers are rolled")

    async def _roll_one(self, crew: Crew) -> bool:
        """Whether the slot has another worker than before, and the old one accepts nobody any more."""
        if not self._control.serves:
            self._say("the roll waits for the control process")
        await self._until(lambda: self._control.serves and crew.seat.phase is Phase.TAKEN)
        old = crew.seat.sitting
        crew.replace()
        await self._until(lambda: crew.seat.phase not in (Phase.CHANGING, Phase.STARTING))
        if old is None or crew.seat.sitting == old:
            return False
        await self._until(lambda: not crew.accepts(old))
        return True

    # ---- stopping

    async def _drained(self) -> int:
        """Drain the workers, then the control process; a second signal ends all at once."""
        if self._roll is not None:
            self._roll.cancel()
        limit = self._plan.server.drain
        self._say(f"draining: streams may run for {limit:g} s more; a second signal ends them at once")
        for crew in self._workers:
            crew.close(Drain())
        await self._until(self._have_workers_left)
        if self._signals < 2:
            self._control.close(Drain())
            await self._until(lambda: self._signals > 1 or self._control.is_empty)
        if self._signals < 2:
            self._say("drained")
            return DRAINED
        await self._end()
        self._say("second signal: ended at once")
        return FAILED

    def _have_workers_left(self) -> bool:
        """Whether all have, or nobody is to wait for them; leaves the slots whose workers have."""
        for slot, crew in enumerate(self._workers):
            if crew.is_empty:
                self._sockets.leave(slot)
        return self._signals > 1 or all(crew.is_empty for crew in self._workers)

    async def _end(self) -> None:
        """End all children now; what does not hear gets SIGTERM. Nobody is killed."""
        for crew in self._crews:
            crew.close(End())
        if await self._until(lambda: not self._children, END_S):
            return
        for child in self._children:
            child.terminate()
        await self._until(lambda: not self._children, END_S / 2)
        for child in self._children:
            self._say(f"{child} does not end; it is left to itself")

    @property
    def _children(self) -> list[Child]:
        return [child for crew in self._crews for child in crew.children]

    # ---- waiting

    def _changed(self) -> None:
        self._change.set()

    async def _until(self, is_so: Callable[[], bool], most_s: float | None = None) -> bool:
        """Wait until it is so, at most for so long; whether it is."""
        try:
            async with asyncio.timeout(most_s):
                while not is_so():
                    self._change.clear()
                    await self._change.wait()
        except TimeoutError:
            pass
        return is_so()


def _worker(plan: Plan, slot: int, sockets: Sockets) -> Role:
    listeners = tuple(sock.fileno() for sock in sockets.of(slot))
    boot = WorkerBoot(node=plan.node, slot=slot, server=plan.server, state=plan.state, listeners=listeners)
    return Role(f"worker {slot}", "headrace.worker", boot, listeners)
