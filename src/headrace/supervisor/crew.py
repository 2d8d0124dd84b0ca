"""The children of one seat: does what the seat's machine asks, and tells the operator what becomes of them."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from headrace.link.messages import Drain, Leaving, Ready, ToSupervisor, Unable, WorkerBoot
from headrace.supervisor.child import Child, words_for
from headrace.supervisor.seat import Action, Phase, Replaced, Rest, Seat, Spawn


@dataclass(frozen=True, slots=True)
class Role:
    """What the children of one seat are. `boot` is their first message, `descriptors` what it refers to."""

    title: str
    module: str
    boot: object
    descriptors: tuple[int, ...]


class Crew:
    """All children of one seat: the one that sits, its successor, and those that have left it and drain.

    While `held` is true nobody gets the boot message, so children start and wait. `say` has lines for the operator,
    `changed` is called after each change.
    """

    def __init__(self, role: Role, say: Callable[[str], None], changed: Callable[[], None], *, held: bool) -> None:
        self.seat = Seat()
        self.unable = ""
        """What the last child said that could not serve."""
        self._role = role
        self._say = say
        self._changed = changed
        self._held = held
        self._loop = asyncio.get_running_loop()
        self._children: dict[int, Child] = {}
        self._waiting: set[int] = set()
        """Those without a boot."""
        self._left: set[int] = set()
        """Those that accept nobody any more."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._rest: asyncio.TimerHandle | None = None

    @property
    def serves(self) -> bool:
        """Whether a child serves."""
        return self.seat.phase in (Phase.TAKEN, Phase.CHANGING)

    @property
    def is_empty(self) -> bool:
        """Whether no process of it is left."""
        return not self._children and not self._tasks

    @property
    def children(self) -> tuple[Child, ...]:
        """All of its processes."""
        return tuple(self._children.values())

    def accepts(self, number: int) -> bool:
        """Whether this child may still accept connections."""
        return number in self._children and number not in self._left

    def fill(self) -> None:
        """Start the first child."""
        self._perform(self.seat.fill(self._loop.time()))

    def replace(self) -> None:
        """Start a successor of the child that serves."""
        self._perform(self.seat.replace(self._loop.time()))

    def release(self) -> None:
        """Nobody is held any more."""
        self._held = False
        for number in tuple(self._waiting):
            self._boot(number)

    def close(self, word: object) -> None:
        """Nobody follows any more; `word` is said to all that are here."""
        self.seat.close()
        if self._rest is not None:
            self._rest.cancel()
        self.say(word)

    def say(self, word: object) -> None:
        """Send a message to all."""
        for child in self._children.values():
            child.send(word)

    def reap(self) -> None:
        """See who has ended."""
        for child in self.children:
            child.reap()

    # ---- what the seat asks

    def _perform(self, actions: tuple[Action, ...]) -> None:
        for action in actions:
            match action:
                case Spawn(number):
                    task = self._loop.create_task(self._spawn(number))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)
                case Replaced(number):
                    self._children[number].send(Drain(replaced=True))
                    self._say(f"{self._children[number]} is replaced and drains")
                case Rest(seconds):
                    self._say(f"{self._role.title} is started again in {seconds:g} s: it ends soon after each start")
                    self._rest = self._loop.call_later(seconds, self._rested)
        self._changed()

    def _rested(self) -> None:
        self._rest = None
        self._perform(self.seat.rested(self._loop.time()))

    async def _spawn(self, number: int) -> None:
        child = Child(
            self._role.title,
            self._role.module,
            lambda _, message: self._take(number, message),
            lambda _: self._gone(number),
        )
        try:
            await child.spawn(self._role.descriptors)
        except OSError as error:
            self._say(f"{self._role.title} cannot be started: {error.strerror}")
            self._perform(self.seat.died(number, self._loop.time()))
            return
        self._children[number] = child
        self._waiting.add(number)
        if self.seat.phase is Phase.CLOSED:
            child.send(Drain())
        elif not self._held:
            self._boot(number)
        child.reap()  # it may have ended before it was listed

    def _boot(self, number: int) -> None:
        self._waiting.discard(number)
        boot = self._role.boot
        if isinstance(boot, WorkerBoot) and number == self.seat.successor:
            boot = msgspec.structs.replace(boot, succeeds=True)
        self._children[number].send(boot)

    # ---- what children say and do

    def _take(self, number: int, message: ToSupervisor) -> None:
        match message:
            case Ready():
                self._say(f"{self._children[number]} serves")
                self._perform(self.seat.ready(number))
            case Leaving():
                self._left.add(number)
                self._changed()
            case Unable(reason=reason):
                self._children[number].reason = self.unable = reason
                self._changed()

    def _gone(self, number: int) -> None:
        child = self._children.pop(number)
        self._waiting.discard(number)
        left = number in self._left
        self._left.discard(number)
        status = child.status or 0
        expected = status == 0 and (left or self.seat.phase is Phase.CLOSED)
        why = f": {child.reason}" if child.reason else ""
        self._say(f"{child} has drained" if expected else f"{child} ended ({words_for(status)}){why}")
        self._perform(self.seat.died(number, self._loop.time()))
