"""The line as a whole: whatever fails in it, one response is sent, one entry is written, and nothing stays behind."""

import asyncio
import gc
from collections.abc import Callable, Iterator

import pytest

from headrace.exchange import Exchange
from headrace.journal.writer import JournalError, Writer
from headrace.listener.sink import ClientSink
from headrace.model.entry import Entry, Opened, Record
from headrace.protocols.chat import Chat
from headrace.protocols.chat_observer import ChatObserver
from headrace.relay.machine import Machine
from tests.stand.client import End
from tests.stand.fixtures import stand as stand  # noqa: PLC0414  it is a fixture here too
from tests.stand.gateway import GatewayThread
from tests.stand.stand import Stand, until
from tests.stand.wire import C0, C1, CHAT, TEXT, chat, error_in, events, request, texts


def raising(*_: object, **__: object) -> object:
    raise RuntimeError("a defect")


@pytest.fixture
def gateway(stand: Stand) -> Iterator[GatewayThread]:
    """The gateway; what it reports in this test is expected."""
    assert isinstance(stand.gateway, GatewayThread)
    yield stand.gateway
    stand.gateway.reports.clear()


# ---- our own faults


@pytest.mark.parametrize("where", ["inspect", "address", "observer", "seed"])
def test_a_defect_before_the_commit_is_a_500_and_an_entry(
    stand: Stand, gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    model = stand.model("pair", {"events": CHAT}, {"events": CHAT})
    with monkeypatch.context() as patch:
        patch.setattr(Chat, where, raising)
        reply = stand.ask(chat(model))
    assert (reply.status, error_in(reply.body)["code"]) == (500, "internal")
    assert "a defect" not in str(reply.body)
    entry = stand.entry(id=reply.id)
    assert (entry.end, entry.reason, entry.kind, entry.source) == ("interrupted", "internal", "internal", "gateway")
    assert entry.detail == "RuntimeError: a defect"
    assert any(reply.id in line and "a defect" in line for line in gateway.reports)
    assert texts(stand.ask(chat(model)).body) == TEXT


def test_a_defect_of_the_meter_changes_nothing_on_the_wire(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> None:
    model = stand.model("one", {"events": CHAT})
    with monkeypatch.context() as patch:
        patch.setattr(ChatObserver, "observe", raising)
        reply = stand.ask(chat(model, usage=True))
    assert reply.body.startswith("".join(CHAT).encode())
    assert reply.end is End.FRAMED
    assert stand.entry(model).wire.unreadable == len(CHAT)


def test_a_defect_of_the_relay_is_said_in_the_stream(
    stand: Stand, gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = stand.model("one", {"events": CHAT, "gap": 0.05})
    feed = Machine.feed

    def failing(machine: Machine, data: bytes, now: float) -> bytes:
        if "C" in data.decode() and '"C"' in data.decode():
            raise RuntimeError("a defect")
        return feed(machine, data, now)

    with monkeypatch.context() as patch:
        patch.setattr(Machine, "feed", failing)
        reply = stand.ask(chat(model))
    assert events(reply.body)[:2] == [C0.encode(), C1.encode()]
    assert error_in(reply.body)["message"]
    entry = stand.entry(model)
    assert entry.end == "interrupted"
    assert any("a defect" in fault for fault in gateway.faults)
    gateway.faults.clear()


# ---- the journal


def refusing(kind: type[Record]) -> Callable[[Writer, Record], None]:
    """`Writer.append` that cannot write records of this kind."""
    append = Writer.append

    def try_append(writer: Writer, record: Record) -> None:
        if isinstance(record, kind):
            raise JournalError("the journal cannot be written: disk full")
        append(writer, record)

    return try_append


def test_nothing_goes_upstream_that_cannot_be_noted_before(
    stand: Stand, gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = stand.model("one", {"events": CHAT})
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "append", refusing(Opened))
        reply = stand.ask(chat(model))
    assert (reply.status, error_in(reply.body)["code"]) == (503, "overloaded")
    assert reply.header("retry-after")
    assert not stand.calls(model)
    assert stand.entry(model).end == "refused"


def test_an_entry_that_cannot_be_written_is_reported(
    stand: Stand, gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = stand.model("one", {"status": 400})
    with monkeypatch.context() as patch:
        patch.setattr(Writer, "append", refusing(Opened))
        patch.setattr(Writer, "append", refusing(Entry))
        reply = stand.ask({"model": ""})
        assert reply.status == 400
        until(lambda: any(reply.id in line and "disk full" in line for line in gateway.reports), "the report")
    assert stand.ask(chat(model)).status == 400


@pytest.mark.parametrize("stream", [True, False])
def test_the_entry_is_written_in_the_turn_in_which_the_client_gets_the_end(
    stand: Stand, gateway: GatewayThread, monkeypatch: pytest.MonkeyPatch, stream: bool
) -> None:
    """Not in the task's next: a worker may be killed at any moment."""
    happened: list[str] = []
    finish, append = ClientSink.finish, Writer.append

    def finishing(sink: ClientSink) -> None:
        happened.append("end")
        asyncio.get_running_loop().call_soon(happened.append, "next turn")
        finish(sink)

    def appending(writer: Writer, record: Record) -> None:
        if isinstance(record, Entry):
            happened.append("entry")
        append(writer, record)

    model = stand.model("one", {"events": CHAT, "gap": 0.01} if stream else {"text": "word"})
    with monkeypatch.context() as patch:
        patch.setattr(ClientSink, "finish", finishing)
        patch.setattr(Writer, "append", appending)
        assert stand.ask(chat(model, stream=stream)).end is End.FRAMED
        assert stand.entry(model).end == "completed"
        until(lambda: len(happened) == 3, "the next turn")
    assert happened == ["end", "entry", "next turn"]


def test_what_may_cost_money_is_noted_before_it_goes_up(stand: Stand) -> None:
    model = stand.model("one", {"head_delay": 30})
    with stand.connect() as client:
        client.send(request(chat(model)))
        until(lambda: stand.ch1.calls(model), "the call")
        opened = [record for record in stand.records() if isinstance(record, Opened) and record.model == model]
        assert len(opened) == 1
        assert not stand.entries(model)
    assert stand.entry(model).id == opened[0].id


# ---- the entry


def test_an_entry_tells_the_course_of_a_stream(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gaps": {2: 0.12}, "id": "x"})
    reply = stand.ask(chat(model), headers={"x-request-id": "mine"})
    entry = stand.entry(model)
    wire = entry.wire
    call = stand.calls(model)[0]
    assert (entry.protocol, entry.model, entry.key, entry.stream, entry.status) == ("chat", model, "dev", True, 200)
    assert (entry.served_model, entry.finish_reasons, entry.reason) == ("up", ("stop",), "stop")
    assert entry.client_request_id == "mine"
    assert entry.attempts[0].upstream_request_id == reply.header("x-upstream-request-id")
    assert wire.received == len(call.sent) == wire.released + wire.removed
    assert wire.released == len(reply.body)
    assert wire.events == len(CHAT) - 1
    assert wire.first_event_s is not None
    assert wire.last_event_s is not None
    assert 0 < wire.first_event_s <= wire.last_event_s <= entry.duration_s
    assert sum(wire.gaps) == wire.events - 1
    assert wire.longest_gaps[0][0] == 2
    assert [size for _, size in wire.first_marks] == [len(event) for event in events(reply.body)]


def test_an_entry_holds_no_content(stand: Stand) -> None:
    secret = "a very secret sentence"
    model = stand.model("one", {"text": secret, "cut": {"after_events": 3, "how": "rst"}})
    stand.ask(chat(model, messages=[{"role": "user", "content": secret}]))
    entry = stand.entry(model)
    assert "secret" not in str(entry).replace("sk-", "")


# ---- nothing stays behind


def some_of_each(stand: Stand) -> None:
    """Exchanges of every kind of end."""
    scenarios: list[tuple[str, dict[str, object], bool]] = [
        ("one", {"events": CHAT}, True),
        ("one", {"text": "whole"}, False),
        ("one", {"status": 400}, True),
        ("one", {"status": 500}, True),
        ("one", {"events": CHAT, "cut": {"after_events": 2, "how": "rst"}}, True),
        ("one", {"refuse": {"when": "body", "how": "rst"}}, True),
        ("early-one", {"events": CHAT, "head_delay": 0.3}, True),
        ("twice", {"sequence": [{"status": 500, "headers": {"retry-after-ms": "10"}}, {}]}, True),
    ]
    for pattern, fields, stream in scenarios:
        model = stand.model(pattern, fields)
        stand.ask(chat(model, stream=stream))
        stand.entry(model)
    model = stand.model("one", {"text": "word ", "repeat": 1000, "gap": 0.01})
    with stand.connect() as client:
        client.send(request(chat(model)))
        client.read(until=b"word")
    stand.entry(model)


def test_a_finished_exchange_leaves_no_cycle(stand: Stand, gateway: GatewayThread) -> None:
    """Full collections are rare in a worker, so nothing may wait for one."""
    some_of_each(stand)
    gateway.call(gc.collect)
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        some_of_each(stand)
        gateway.call(gc.collect)
        left = [
            type(thing).__qualname__
            for thing in gc.garbage
            if type(thing).__module__.startswith("headrace.") and ".simulator" not in type(thing).__module__
        ]
        assert not left
        assert not [thing for thing in gc.garbage if isinstance(thing, Exchange)]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def test_no_task_or_exchange_outlives_its_response(stand: Stand, gateway: GatewayThread) -> None:
    """Case B071, in small."""
    some_of_each(stand)

    def quiet() -> bool:
        return gateway.call(lambda: len(asyncio.all_tasks())) <= 2  # the worker's own, and this question

    until(quiet, "the end of the last task")
    assert gateway.worker is not None
    assert not gateway.worker._front.running
    exchanges = [thing for thing in gc.get_objects() if isinstance(thing, Exchange)]
    assert not exchanges
