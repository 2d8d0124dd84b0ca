"""What one exchange leaves: its records agree with each other, and a checkpoint says what the entry would."""

from dataclasses import dataclass

import pytest

from headrace.journal.logbook import MOST_MODEL, NO_BILL, Bill, Course, Logbook
from headrace.model.channel import BaseUrl, Channel, Credential
from headrace.model.entry import Checkpoint, Entry, Money, Opened, Record, Wire, lost_entry
from headrace.model.estimate import NO_TEXT
from headrace.model.key import Key
from headrace.model.outcome import End, Failure, Outcome
from headrace.model.problem import Kind, Problem
from headrace.model.request import Call, ReplyHead, RequestHead
from headrace.model.usage import Usage
from headrace.model.wire import Asked, WireProtocol
from headrace.protocols.chat import Chat

CHANNEL = Channel(
    "ch1",
    BaseUrl("https", "up", 443, ""),
    frozenset({WireProtocol.CHAT}),
    credentials=(Credential("main", "sk-upstream"),),
)
CALL = Call(WireProtocol.CHAT, "chat.completions", "m" * 300, Asked.EVENTS, b"")
COMPLETED = Outcome(End.COMPLETED, "stop")
MONEY = Money(cost=7, charge=14, counted=14, price="v1", multiplier=2_000_000_000)
CUT = Problem(Kind.UPSTREAM_INTERRUPTED, "cut", detail="d" * 500)


@dataclass
class Place:
    channel: Channel = CHANNEL
    credential: Credential = CHANNEL.credentials[0]
    upstream_model: str = "up"


@dataclass
class Facts:
    reused: bool = True
    replayed: bool = False
    maybe_executed: bool = False


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Journal:
    """Takes records."""

    def __init__(self) -> None:
        self.records: list[Record] = []

    def append(self, record: Record) -> None:
        self.records.append(record)

    @property
    def entry(self) -> Entry:
        assert isinstance(self.records[-1], Entry)
        return self.records[-1]


@pytest.fixture
def journal() -> Journal:
    return Journal()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def log(journal: Journal, clock: Clock) -> Logbook:
    head = RequestHead("POST", "/", "", [(b"x-request-id", b"mine-" + b"\xff" * 200)])
    key = Key("dev", b"digest", owner="team")
    return Logbook(journal, clock, "hr_1", key, "chat", "chat.completions", head)  # type: ignore[arg-type]


def course(answered: bool = True, early_open: bool = False, usage: int | None = None, events: int = 0) -> Course:
    observer = Chat().observer(CALL, added_usage=False)
    observer.served_model = "s" * 300
    if usage is not None:
        text = b'data: {"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":1}}\n\n' % usage
        observer.observe(text)
    bill = Bill(observer.usage, "upstream" if usage is not None else "none", MONEY, NO_TEXT, NO_TEXT)
    return Course(observer, bill, Wire(events=events), answered, early_open)


def test_the_opened_and_the_entry_know_the_same_exchange(log: Logbook, journal: Journal) -> None:
    log.open(CALL)
    log.close(COMPLETED, CALL, course())
    opened, entry = journal.records
    assert isinstance(opened, Opened) and isinstance(entry, Entry)
    for name in ("id", "at", "protocol", "operation", "key", "owner", "model", "stream", "client_request_id"):
        assert getattr(opened, name) == getattr(entry, name), name
    assert opened.owner == "team" and opened.model == "m" * MOST_MODEL and opened.stream
    assert opened.client_request_id.startswith("mine-ÿ") and len(opened.client_request_id) == 100


def test_a_checkpoint_says_what_the_entry_would(log: Logbook, journal: Journal, clock: Clock) -> None:
    """The attempt that runs is in it, so that it is known where the money went."""
    log.open(CALL)
    clock.now += 1
    log.attempting(Place(), Facts())
    clock.now += 1
    log.attempted(Failure(CUT), "", None)
    log.attempting(Place(), Facts(reused=False))
    clock.now += 1
    log.answered(ReplyHead(200, [(b"x-request-id", b"theirs")]))
    so_far = course(usage=7, events=5)
    checkpoint = log.checkpoint(so_far, clock.now + 1)
    assert checkpoint == Checkpoint(
        id="hr_1",
        duration_s=4.0,
        status=200,
        served_model="s" * MOST_MODEL,
        usage=Usage(input_total=7, output_total=1),
        usage_origin="upstream",
        money=MONEY,
        attempts=checkpoint.attempts,
        wire=Wire(events=5),
    )
    clock.now += 1
    log.attempted(None, "relayed", None)
    log.close(COMPLETED, CALL, so_far)
    entry = journal.entry
    first, second = checkpoint.attempts
    assert first == entry.attempts[0] and (first.verdict, len(first.detail)) == ("upstream_interrupted", 300)
    assert (second.started_s, second.ended_s, second.status, second.verdict) == (2.0, 4.0, 200, "")
    assert second.upstream_request_id == entry.attempts[1].upstream_request_id == "theirs"
    assert entry.attempts[1].verdict == "relayed"
    opened = journal.records[0]
    assert isinstance(opened, Opened)
    lost = lost_entry(opened, checkpoint, "worker_lost")
    for name in (
        "status",
        "usage",
        "usage_origin",
        "money",
        "served_model",
        "wire",
        "duration_s",
        "model",
        "operation",
    ):
        assert getattr(lost, name) == getattr(entry, name), name


def test_between_attempts_a_checkpoint_has_those_that_are_over(log: Logbook) -> None:
    log.attempting(Place(), Facts())
    log.attempted(Failure(CUT), "", None)
    assert len(log.checkpoint(Course(None, NO_BILL, Wire(), True, True), 1001.0).attempts) == 1


def test_an_attempt_without_a_reply_has_no_status_of_the_one_before(log: Logbook) -> None:
    log.attempting(Place(), Facts())
    log.answered(ReplyHead(503, []))
    log.attempted(Failure(CUT), "", None)
    assert [log.last_status, log.maybe_executed] == [503, True], "it was lost behind its head"
    log.attempting(Place(), Facts())
    log.attempted(Failure(CUT), "", None)
    assert [log.last_status, log.maybe_executed] == [None, False]


def test_an_attempt_that_failed_when_the_client_had_left_is_nobodys_failure(log: Logbook, journal: Journal) -> None:
    gone = Outcome(End.CLIENT_GONE, "client left")
    log.attempting(Place(), Facts())
    log.attempted(Failure(CUT), "", gone)
    log.close(gone, CALL, course())
    assert [(one.verdict, one.detail) for one in journal.entry.attempts] == [("client_gone", "")]


def test_it_is_closed_once_its_entry_was_written_or_could_not_be(log: Logbook, journal: Journal) -> None:
    assert not log.closed
    log.close(COMPLETED, CALL, course())
    assert log.closed


def test_what_counts_as_moving(log: Logbook) -> None:
    """Events, and bytes of one that passes plainly; not heartbeats."""
    assert not log.has_moved(0, 0, 0)
    assert log.has_moved(events=1, heartbeats=0, released=100)
    assert not log.has_moved(events=1, heartbeats=0, released=100)
    assert not log.has_moved(events=1, heartbeats=3, released=160)
    assert log.has_moved(events=2, heartbeats=4, released=300)
    assert log.has_moved(events=2, heartbeats=4, released=5000)
    assert not log.has_moved(events=2, heartbeats=4, released=5000)


@pytest.mark.parametrize(
    ("answered", "early_open", "status"), [(True, False, 429), (False, False, None), (True, True, 200)]
)
def test_the_status_is_what_the_client_saw(
    log: Logbook, journal: Journal, answered: bool, early_open: bool, status: int | None
) -> None:
    log.attempting(Place(), Facts())
    log.answered(ReplyHead(429, []))
    log.close(Outcome(End.INTERRUPTED, "cut", CUT), CALL, course(answered, early_open))
    assert journal.entry.status == status
