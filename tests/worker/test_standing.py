"""What a worker tells of itself: every running exchange once a round, in slices."""

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import cast

from headrace.exchange import Exchange
from headrace.link.messages import Gauges
from headrace.model.wire import WireProtocol
from headrace.worker.standing import Standing


@dataclass(eq=False)
class Running:
    """An exchange as far as it is looked at; it began at 100."""

    id: str
    call: object = None
    released: int = 0
    last_at: float = 0.0
    key: SimpleNamespace = field(default_factory=lambda: SimpleNamespace(name="dev"))

    @property
    def api(self) -> SimpleNamespace:
        return SimpleNamespace(protocol=WireProtocol.CHAT)

    @property
    def log(self) -> SimpleNamespace:
        return SimpleNamespace(began=100.0)

    @property
    def trace(self) -> SimpleNamespace:
        return SimpleNamespace(released=self.released, events=7, last_at=self.last_at)


CALL = SimpleNamespace(model="m")


def exchanges(*running: Running) -> dict[Exchange, object]:
    return {cast(Exchange, one): None for one in running}


def test_an_exchange_says_where_it_stands() -> None:
    running = exchanges(Running("a"), Running("b", CALL), Running("c", CALL, released=10, last_at=103.5))
    told = Standing(running, {}, lambda: 104.0).slice()
    assert (told.first, told.last) == (True, True)
    assert [(one.id, one.model, one.state, one.silent_s) for one in told.streams] == [
        ("a", "", "reading", 4.0),
        ("b", "m", "waiting", 4.0),
        ("c", "m", "committed", 0.5),
    ]
    one = told.streams[2]
    assert (one.protocol, one.key, one.age_s, one.events) == ("chat", "dev", 4.0, 7)


def test_a_round_has_each_one_once_and_leaves_out_who_has_ended_before_its_turn() -> None:
    many = [Running(f"{number}") for number in range(25)]
    running = exchanges(*many)
    standing = Standing(running, {}, lambda: 104.0)
    slices = [standing.slice(10)]
    del running[cast(Exchange, many[12])]
    running[cast(Exchange, Running("new"))] = None
    slices += [standing.slice(10), standing.slice(10)]
    assert [(one.first, one.last) for one in slices] == [(True, False), (False, False), (False, True)]
    assert [stream.id for one in slices for stream in one.streams] == [f"{n}" for n in range(25) if n != 12]
    assert "new" in [
        stream.id for one in (standing.slice(10), standing.slice(10), standing.slice(10)) for stream in one.streams
    ]


def test_nothing_runs() -> None:
    standing = Standing({}, {"not_found": 2}, lambda: 104.0)
    for _ in range(2):
        told = standing.slice()
        assert (told.first, told.last, told.streams) == (True, True, ())
    assert standing.gauges(draining=True) == Gauges(open=0, draining=True, counts={"not_found": 2})
