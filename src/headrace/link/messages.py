"""The messages between the processes of one gateway.

    supervisor ──WorkerBoot, ControlBoot──▶ child      over a socket pair of theirs; its end is the word to drain
    supervisor ──Drain, Reload, End──▶ child
    supervisor ◀──Ready, Unable, Leaving── child
    worker ──Hello, Gauges, OpenStreams, AskSpent──▶ control     over the Unix socket `link.sock`, which lies in the
    worker ◀──Covered, Lessons, Catalogue, Stop, SpentAnswer── control     state directory
    worker ◀──HandOver── control;  worker ──Held, Given, Released──▶ control ──they, Gone──▶ its successor (see there)

A message is MessagePack with a tag; `frame` has the bytes around it. A roll may bring a later version's worker to an
earlier one's supervisor and control process, so a field that is added has a default.
"""

import msgspec

from headrace.model.allowance import Spent
from headrace.model.catalogue import CatalogueParts
from headrace.model.estimate import Learned
from headrace.model.settings import ServerSettings, StateSettings, StreamSettings
from headrace.model.succession import Gone, HandOver, Succeeding


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """What a worker needs and may change while it runs. `version` names the content: equal ones are equal."""

    version: str
    stream: StreamSettings
    parts: CatalogueParts


class WorkerBoot(msgspec.Struct, frozen=True, kw_only=True, tag="worker_boot"):
    """Who a worker is, and what stays as it is for its life. Descriptors are inherited listening sockets."""

    node: str
    slot: int
    server: ServerSettings
    state: StateSettings
    listeners: tuple[int, ...]
    succeeds: bool = False
    """Whether another worker serves in the slot: it hands over what it holds."""


class ControlBoot(msgspec.Struct, frozen=True, kw_only=True, tag="control_boot"):
    """Who the control process is. `link` is the inherited listening socket of the link."""

    node: str
    config: str
    """The configuration file's absolute path."""
    server: ServerSettings
    state: StateSettings
    link: int
    migrate: bool = True


class Ready(msgspec.Struct, frozen=True, tag="ready"):
    """A child serves."""


class Unable(msgspec.Struct, frozen=True, kw_only=True, tag="unable"):
    """A child cannot serve, and ends; the reason is a sentence for the operator."""

    reason: str


class Leaving(msgspec.Struct, frozen=True, tag="leaving"):
    """A worker accepts no connection any more; what runs in it goes on."""


class Drain(msgspec.Struct, frozen=True, kw_only=True, tag="drain"):
    """Stop in good order. With a successor on the same sockets nothing is announced: accepting stops at once."""

    replaced: bool = False


class End(msgspec.Struct, frozen=True, tag="end"):
    """Stop at once: what runs is ended with a word to its clients."""


class Reload(msgspec.Struct, frozen=True, tag="reload"):
    """The control process reads the file again."""


class Hello(msgspec.Struct, frozen=True, kw_only=True, tag="hello"):
    """A worker's first word on the link."""

    slot: int
    incarnation: str
    pid: int
    snapshot: str
    """The version that it works with."""
    hands_over: bool = False
    """Whether it counts limits itself, so that a successor has to be told what it holds."""


class Gauges(msgspec.Struct, frozen=True, kw_only=True, tag="gauges"):
    """Once a second: how a worker is."""

    open: int
    draining: bool = False
    counts: dict[str, int] = {}
    """Requests that made no exchange, by kind of problem, since the worker began."""


class OpenStream(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """One running exchange. Times are seconds."""

    id: str
    protocol: str
    key: str
    model: str
    age_s: float
    state: str
    events: int
    silent_s: float


class OpenStreams(msgspec.Struct, frozen=True, kw_only=True, tag="open_streams"):
    """Some of the running exchanges, in turn; with `first` a round begins, with `last` it is whole."""

    first: bool
    last: bool
    streams: tuple[OpenStream, ...]


class Catalogue(msgspec.Struct, frozen=True, kw_only=True, tag="catalogue"):
    """A new snapshot for new exchanges; running ones keep theirs."""

    snapshot: Snapshot


class Covered(msgspec.Struct, frozen=True, kw_only=True, tag="covered"):
    """What the ledger has of budgets: of all at a worker's first word, then of those that have changed. A catalogue
    with a new budget comes behind what has been spent of it."""

    spent: tuple[Spent, ...]


class Lessons(msgspec.Struct, frozen=True, kw_only=True, tag="lessons"):
    """What completed entries taught, by model: of all models at a worker's first word, then where it is another."""

    learned: dict[str, Learned]


class AskSpent(msgspec.Struct, frozen=True, kw_only=True, tag="ask_spent"):
    """A worker has to know what was spent of these, with all that its node's journals hold at this moment."""

    number: int
    """The answer has the same; no two questions on one connection share it."""
    purses: tuple[str, ...]


class SpentAnswer(msgspec.Struct, frozen=True, kw_only=True, tag="spent_answer"):
    """What was spent; None where the database cannot tell it in time."""

    number: int
    spent: tuple[Spent, ...] | None


class Stop(msgspec.Struct, frozen=True, kw_only=True, tag="stop"):
    """End one exchange: an operator wants it."""

    id: str


FromSupervisor = WorkerBoot | ControlBoot | Drain | End | Reload
ToSupervisor = Ready | Unable | Leaving
FromWorker = Hello | Gauges | OpenStreams | AskSpent | Succeeding
ToWorker = Covered | Lessons | Catalogue | Stop | SpentAnswer | HandOver | Succeeding | Gone
