"""What workers are told of money and of models: over the link as it changes, and on the disk for those that start.

    the ingestion ──took──▶ sums, lessons ──changed──▶ Covered (5 a second), Lessons (one in 10 s) ──▶ workers
                                          └──────────▶ the file `figures`: every 3 s, before a catalogue is published
                                                       that needs it, and before a journal is deleted

While nothing is known of the database nothing new is told, and the file stays as it is.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final, Protocol

from headrace.control.spending import Spending
from headrace.journal.place import Incarnation, Position
from headrace.link.figures import FIGURES_FILE
from headrace.link.messages import Covered, Lessons
from headrace.link.sealed_file import SealedFileError
from headrace.model.catalogue import CatalogueParts
from headrace.model.entry import Entry, Record
from headrace.model.estimate import Learned
from headrace.model.purses import Budgets
from headrace.model.settings import StateSettings

TELL_S: Final = 0.2
KEEP_S: Final = 3.0
LEARN_S: Final = 10.0
SAMPLE: Final = 100
"""Entries of one batch that are learned from, at most. Each costs 10 µs, and a busy gateway's teach the same."""


class Source(Protocol):
    """The ingestion, as far as it is asked."""

    @property
    def positions(self) -> Mapping[str, Position]:
        """How far each journal has been taken, by incarnation."""

    def wake(self) -> None:
        """Look at once."""


class Learner(Protocol):
    """Learns from completed entries what models use."""

    def add(self, entry: Entry) -> None:
        """One more."""

    def learned(self) -> dict[str, Learned]:
        """What it knows by now, by model."""


class Telling:
    """Follows the ingestion `source` (ingest.Follower). `say` has lines for the operator.

    Must be made within a running loop; `start`, then `close`.
    """

    def __init__(
        self, state: StateSettings, source: Source, spending: Spending, learner: Learner, say: Callable[[str], None]
    ) -> None:
        self._directory = Path(state.directory)
        self._secret = state.secret
        self._source = source
        self._spending = spending
        self._learner = learner
        self._say = say
        self._tell: Callable[[object], None] = lambda message: None
        self._learned = self._learned_before()
        self._is_known = asyncio.Event()
        self._to_tell = asyncio.Event()
        self._to_keep = asyncio.Event()
        self._to_learn = asyncio.Event()
        self._writing = asyncio.Lock()
        self._cannot_write = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, tell: Callable[[object], None]) -> None:
        """Begin to tell; `tell` brings a message to every worker that is there."""
        self._tell = tell
        loop = asyncio.get_running_loop()
        for event, do, pause_s in (
            (self._to_tell, self._tell_spent, TELL_S),
            (self._to_keep, self._keep, KEEP_S),
            (self._to_learn, self._learn, LEARN_S),
        ):
            self._tasks.append(loop.create_task(_whenever(event, do, pause_s)))

    def greeting(self) -> Sequence[object]:
        """What a worker is told first."""
        words: list[object] = []
        if spent := self._spending.sums:
            words.append(Covered(spent=spent))
        if self._learned:
            words.append(Lessons(learned=self._learned))
        return words

    async def cover(self, parts: CatalogueParts, most_s: float) -> None:
        """See that workers know what was spent of these budgets, before a catalogue with them is published.

        Where the database does not tell it in so many seconds they will hear of it later.
        """
        if not self._spending.budget(Budgets.of(parts)):
            return
        self._is_known.clear()
        self._source.wake()
        try:
            async with asyncio.timeout(most_s):
                await self._is_known.wait()
        except TimeoutError:
            return
        await self._keep()
        await self._tell_spent()

    def teach(self, entries: Iterable[Entry]) -> None:
        """Learn from entries, the oldest first."""
        for entry in entries:
            self._learner.add(entry)
            self._to_learn.set()

    async def close(self) -> None:
        """Stop, and leave what is known by now for workers that start."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._to_keep.is_set():
            await self._keep()

    # ---- the ingestion's

    def took(self, source: Incarnation, records: Sequence[Record], settled: Sequence[Entry]) -> None:
        """These went into the database."""
        self._spending.take(source, records, settled)
        ended = [record for record in records if isinstance(record, Entry)]
        self.teach(ended[:: len(ended) // SAMPLE + 1])
        self._note()

    def lost_track(self) -> None:
        """What is in the database has to be read again."""
        self._spending.lose()

    async def looked(self) -> None:
        """A look is over."""
        await self._spending.refresh()
        if self._spending.is_known:
            self._is_known.set()
        self._note()

    async def may_delete(self) -> bool:
        """The file on the disk covers all that was taken. A disk that cannot take it does not keep what fills it."""
        if not self._spending.is_empty:
            if not self._spending.is_known:
                return False
            await self._keep()
        return True

    # ---- telling

    def _note(self) -> None:
        if self._spending.has_changed:
            self._to_tell.set()
            self._to_keep.set()

    async def _tell_spent(self) -> None:
        if spent := self._spending.changed():
            self._tell(Covered(spent=spent))

    async def _learn(self) -> None:
        learned = self._learner.learned()
        changed = {model: lesson for model, lesson in learned.items() if self._learned.get(model) != lesson}
        if changed:
            self._learned = self._learned | changed
            self._tell(Lessons(learned=changed))
            self._to_keep.set()

    # ---- the disk

    def _learned_before(self) -> dict[str, Learned]:
        """What an earlier run has learned."""
        try:
            figures = FIGURES_FILE.read(self._directory, self._secret)
        except SealedFileError as error:
            self._say(str(error))
            return {}
        return figures.learned if figures is not None else {}

    async def _keep(self) -> None:
        """Write the file, with what is known at this moment. A disk that cannot take it is said once."""
        async with self._writing:
            if not self._spending.is_known:
                return
            figures = self._spending.figures(self._source.positions, self._learned)
            try:
                await asyncio.to_thread(FIGURES_FILE.write, self._directory, self._secret, figures)
            except OSError as error:
                if not self._cannot_write:
                    self._say(f"what was spent cannot be written: {error.strerror}; a worker that starts may miss some")
                self._cannot_write = True
            else:
                self._cannot_write = False


async def _whenever(event: asyncio.Event, do: Callable[[], Awaitable[None]], pause_s: float) -> None:
    """Do it when it is called for, with a pause behind each time."""
    while True:
        await event.wait()
        event.clear()
        await do()
        await asyncio.sleep(pause_s)
