"""A worker's standing in Valkey: entered, kept by a beat, and entered again after an outage.

AWAY ──connected, known, scripts loaded──▶ ENTERED ──own places, holds and parts written──▶ HERE ──▶ AWAY
  ▲                                          │                                              │
  └──────── a pause ◀── no answer for long, an error, the connection or the session ended ◀─┤
                                                                                            │
HERE ──no answer in time──▶ SLOW ──all answers came, what changed meanwhile written──▶ HERE │
                              └──────── no answer for long ─────────────────────────────────┘

AWAY: nothing is sent; a try begins every `probe_s`. ENTERED: commands of earlier sessions count no more. HERE: `call`
works. SLOW: as AWAY for everybody else, but what was given can be given back. What changes while it is not HERE has to
be named in `changed`.
"""

import asyncio
import re
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass

import hiredis

from headrace.shared.address import ValkeyAddress
from headrace.shared.pipeline import Answer, Pipeline, Reply, connect, text_from_reply
from headrace.shared.records import Command, Records
from headrace.shared.scripts import NAMES, script_text

OLDEST = 7
"""The first major version of Redis, whose numbers Valkey continues, with all that the scripts use."""
_BATCH = 100
_SWEPT_KEYS = 500


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds, and where the scripts' time comes from."""

    timeout_s: float = 0.08
    """For a command to be answered: what an outage may add to a request."""
    patience_s: float = 1.0
    """For a connection to be made and the worker to be known there, and for a slow connection to catch up."""
    probe_s: float = 0.5
    """Between two tries."""
    beat_s: float = 3.0
    life_s: float = 15.0
    """How long a worker counts as living without a beat. Others find it dead a beat later."""
    time_ms: Callable[[], str] = lambda: ""
    """Milliseconds on a clock of all workers' own; empty: Valkey's."""


USUAL = Timing()


class Session:
    """See above. `went` is called with the reason when HERE ends, or when a try fails after that or at first; `came`
    when it begins; `beaten` with every beat."""

    def __init__(
        self,
        address: ValkeyAddress,
        incarnation: str,
        records: Records,
        timing: Timing,
    ) -> None:
        self._address = address
        self._incarnation = incarnation
        self._records = records
        self._timing = timing
        self._life_ms = int(timing.life_s * 1000)
        self._shas: dict[str, str] = {}
        self._number = 0
        self._pipeline: Pipeline | None = None
        self._ended: asyncio.Future[str] | None = None
        self._task: asyncio.Task[None] | None = None
        self._tried = asyncio.Event()
        self.name = ""
        """What the scripts know this session by."""
        self.here = False
        self._is_slow = False
        self.changed: set[str] = set()
        """Keys whose writing would be out of date."""
        self.came: Callable[[], None] = unheard
        self.went: Callable[[str], None] = unheard
        self.beaten: Callable[[], None] = unheard

    async def start(self) -> None:
        """Begin, and wait for the first try to end, well or not."""
        self._task = asyncio.get_running_loop().create_task(self._keep(), name="valkey session")
        await self._tried.wait()

    def call(self, command: Command, answer: Answer) -> None:
        """Run a script, with what else is asked in this turn; `answer` gets a `ConnectionError` if not HERE."""
        self.send(self._words(command) if self.here else (), answer)

    def send(self, words: tuple[str | int, ...], answer: Answer) -> None:
        """Send a plain command likewise."""
        if self._pipeline is None or not self.here:
            answer(ConnectionResetError("Valkey is away"))
        else:
            self._pipeline.send(words, answer)

    def call_if_slow(self, command: Command) -> None:
        """Run a script behind what is still to be answered; nothing happens if not SLOW."""
        if self._pipeline is not None and self._is_slow:
            self._pipeline.send(self._words(command), unheard)

    async def ask(self, command: Command) -> Reply | Exception:
        """The reply to a script, also if it is an error."""
        return await self.ask_plainly(*(self._words(command) if self.here else ()))

    async def ask_plainly(self, *words: str | int) -> Reply | Exception:
        """The reply to a plain command likewise."""
        if self._pipeline is None or not self.here:
            return ConnectionResetError("Valkey is away")
        try:
            return await self._pipeline.ask(*words)
        except (OSError, hiredis.ReplyError) as error:
            return error

    def drop(self, reason: str) -> None:
        """End this session, which is of no use any more; another is begun."""
        if self._pipeline is not None:
            self._pipeline.abort(reason)

    def close(self) -> None:
        """Give everything back and end for good."""
        if self._task is not None:
            self._task.cancel()
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            if self.here:
                self.here = False
                leave = Command("leave", (), (self._incarnation, self.name, _SWEPT_KEYS))
                pipeline.send(self._words(leave), unheard)
            pipeline.close()

    # ---- pipeline.Watcher

    def lost(self, reason: str) -> None:
        """See Watcher."""
        self.here = self._is_slow = False
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(reason)

    def slow(self) -> None:
        """See Watcher."""
        self._is_slow, self.here = self.here, False

    def caught_up(self) -> None:
        """See Watcher."""
        if self._pipeline is not None:
            self._resume(self._pipeline)

    # ---- the states

    async def _keep(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            begun = loop.time()
            reason = await self._live()
            self.went(reason)
            self._tried.set()
            # A session that has lived, and now has ended, may well begin anew at once: the server was only emptied.
            await asyncio.sleep(self._timing.probe_s - min(loop.time() - begun, self._timing.probe_s))

    async def _live(self) -> str:
        """One session, from AWAY to AWAY. The reason why it ended."""
        self._ended = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self._timing.patience_s):
                pipeline = await connect(self._address, self._timing.patience_s, self)
                self._pipeline = pipeline
                members = await self._enter(pipeline)
            await self._write(pipeline, members)
            while not (await asyncio.wait((self._ended,), timeout=self._timing.beat_s))[0]:
                await self._beat(pipeline)
        except TimeoutError:
            return "it does not answer"
        except (OSError, hiredis.ReplyError) as error:
            return self._ended.result() if self._ended.done() else _said(error)
        finally:
            self._part()
        return self._ended.result()

    async def _enter(self, pipeline: Pipeline) -> set[str]:
        """Be known there. What Valkey holds of this worker."""
        address, timing = self._address, self._timing
        if address.password:
            user = (address.user,) if address.user else ()
            await pipeline.ask("AUTH", *user, address.password)
        if address.database:
            await pipeline.ask("SELECT", address.database)
        if (version := _version(await pipeline.ask("INFO", "server"))) < OLDEST:
            raise hiredis.ReplyError(f"it is of version {version}, and {OLDEST} is the oldest that will do")
        for name in NAMES:
            sha = await pipeline.ask("SCRIPT", "LOAD", script_text(name))
            self._shas[name] = text_from_reply(sha)
        self._number += 1
        self.name = str(self._number)
        arguments = (self._incarnation, self.name, timing.time_ms(), self._life_ms)
        members = await pipeline.ask(*self._words(Command("enter", (), arguments)))
        return {text_from_reply(one) for one in members} if isinstance(members, list) else set()

    async def _write(self, pipeline: Pipeline, members: set[str]) -> None:
        """Write what is this worker's own, in batches that keep nobody waiting. The last one and the change to HERE are
        one step, so that nothing can change between them."""
        self.changed = members | set(self._records.keys())
        while len(self.changed) > _BATCH:
            await asyncio.gather(*self._writes(pipeline, [self.changed.pop() for _ in range(_BATCH)]))
        pipeline.timeout_s = self._timing.timeout_s
        self._resume(pipeline)
        self._tried.set()
        self.came()

    def _resume(self, pipeline: Pipeline) -> None:
        for asked in self._writes(pipeline, self.changed):
            asked.add_done_callback(self._look)
        self.changed = set()
        self.here, self._is_slow = True, False

    def _look(self, asked: "asyncio.Future[Reply]") -> None:
        """What could not be written does not stand there: begin anew."""
        if isinstance(error := asked.exception(), hiredis.ReplyError):
            self.drop(str(error))

    def _writes(self, pipeline: Pipeline, keys: Iterable[str]) -> list[asyncio.Future[Reply]]:
        commands = (one for key in keys for one in self._records.commands(key, self.name))
        return [pipeline.ask(*self._words(command)) for command in commands]

    async def _beat(self, pipeline: Pipeline) -> None:
        arguments = (self._incarnation, self.name, self._timing.time_ms(), self._life_ms, _SWEPT_KEYS)
        with suppress(TimeoutError):  # told by `slow`
            if not await pipeline.ask(*self._words(Command("beat", (), arguments))):
                self.drop("it took this worker for dead")
            else:
                self.beaten()

    def _words(self, command: Command) -> tuple[str | int, ...]:
        script, keys, arguments = command
        return ("EVALSHA", self._shas[script], len(keys), *keys, *arguments)

    def _part(self) -> None:
        """A session is over, however it ended."""
        self.here = self._is_slow = False
        pipeline, self._pipeline = self._pipeline, None
        if pipeline is not None:
            pipeline.close()


def _version(info: Reply) -> int:
    """The major version out of INFO."""
    found = re.search(r"^redis_version:(\d+)", text_from_reply(info), re.MULTILINE)
    return int(found[1]) if found else 0


def _said(error: Exception) -> str:
    """An error as a reason. Valkey's own words repeat no password."""
    return str(error) or type(error).__name__


def unheard(*_: object) -> None:
    """Nobody wants to hear of it."""
