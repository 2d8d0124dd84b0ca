"""The journal under a running gateway: what the disk and an upstream may do to it, and what a dead worker leaves."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from headrace.journal import segment as segment_module
from headrace.journal import writer as writer_module
from headrace.journal.place import Position, incarnations
from headrace.journal.reader import is_live, read_all, read_batch
from headrace.model.entry import Checkpoint, Entry, Opened, lost_entry
from tests.stand.alone import worker_alone
from tests.stand.client import Client, End
from tests.stand.fixtures import stand as stand  # noqa: PLC0414  it is a fixture here too
from tests.stand.gateway import GatewayThread
from tests.stand.messages import ANTH, BLOCK, CONFIG, PATH, START, message, text
from tests.stand.stand import Stand, until
from tests.stand.wire import C4, CHAT, DONE, chat, error_in, request

ENDLESS = {"text": "word ", "repeat": 100_000, "gap": 0.02}
HELD = {"events": [START, BLOCK, text("A"), text("B")], "cut": {"how": "stall"}}
EVERY_S = 0.1


class FullDisk:
    """`os` for the journal alone, without room."""

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def write(self, file: int, data: bytes) -> int:
        """Nothing fits."""
        raise OSError(errno.ENOSPC, "no space left on device")


def no_room(file: int, offset: int, size: int) -> None:
    """Nothing can be taken beforehand."""
    raise OSError(errno.ENOSPC, "no space left on device")


@pytest.fixture
def reports(stand: Stand, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the journal says to the operator in this test."""
    assert isinstance(stand.gateway, GatewayThread) and stand.gateway.worker is not None
    lines: list[str] = []
    monkeypatch.setattr(stand.gateway.worker._journal, "_report", lines.append)
    monkeypatch.setattr(writer_module, "RETRY_S", 0.1)
    return lines


# ---- a full disk


def test_a_full_disk_stops_the_first_request_and_loses_no_entry(
    stand: Stand, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = stand.model("one", {"events": CHAT})
    with monkeypatch.context() as patch:
        patch.setattr(segment_module, "os", FullDisk())
        reply = stand.ask(chat(model))
        assert reply.status == 503
        assert not stand.calls(model) and not stand.entries(model)
    until(lambda: len(stand.entries(model)) == 1, "the entry, by the timer")
    assert stand.entry(model).id == reply.id
    assert not [record for record in stand.records() if isinstance(record, Opened) and record.model == model]
    until(lambda: "the journal has room again" in reports, "the reports")
    assert "cannot be written: no space left" in reports[0]


def test_while_there_is_a_reserve_what_runs_runs_on(
    stand: Stand, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No room can be taken any more: what is new is refused, and the entry of what runs is written."""
    running, new = stand.model("one", {**ENDLESS, "repeat": 40}), stand.model("one", {"events": CHAT})
    assert isinstance(stand.gateway, GatewayThread) and stand.gateway.worker is not None
    journal = stand.gateway.worker._journal
    with stand.connect() as client, monkeypatch.context() as patch:
        client.send(request(chat(running)))
        client.read(until=b"data: ")
        patch.setattr(segment_module, "preallocate", no_room)
        patch.setattr(journal, "_reserve", 64 * writer_module.MIB)
        for _ in range(2):  # the first is the write behind which it is found out
            refused = stand.ask(chat(new))
        assert refused.status == 503 and error_in(refused.body)["code"] == "overloaded"
        assert client.rest().end is End.FRAMED
        assert stand.entry(running).end == "completed" and stand.entries(new)
        assert any("short of room: no space left" in line for line in reports)
    until(lambda: reports[-1] == "the journal has room again", "room again")
    assert stand.ask(chat(new)).status == 200


def test_when_nothing_can_be_written_what_runs_is_stopped(
    stand: Stand, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Told to the client in the stream, and in the entry, which is there once there is room."""
    running, new = stand.model("one", ENDLESS), stand.model("one", {"events": CHAT})
    with stand.connect() as client, monkeypatch.context() as patch:
        client.send(request(chat(running)))
        client.read(until=b"data: ")
        patch.setattr(segment_module, "os", FullDisk())
        assert stand.ask(chat(new)).status == 503
        reply = client.rest()
        assert reply.end is End.FRAMED and error_in(reply.body)["code"] == "stopped"
        assert not stand.entries(running)
    entry = stand.entry(running)
    assert (entry.end, entry.reason, entry.kind) == ("stopped", "journal_full", "stopped")
    assert entry.wire.events and stand.entry(new).end == "refused"
    until(lambda: reports[-1] == "the journal has room again", "room again")
    assert [line for line in reports if "running exchanges are stopped" in line]
    assert stand.ask(chat(new)).status == 200


def test_an_absurd_count_is_not_known_and_said(stand: Stand) -> None:
    usage = C4.replace('"prompt_tokens": 1', f'"prompt_tokens": {10**25}')
    model = stand.model("one", {"events": [*CHAT[:4], usage, DONE]})
    assert stand.ask(chat(model)).status == 200
    entry = stand.entry(model)
    assert (entry.end, entry.status) == ("completed", 200)
    assert "input_total is too large to be true" in entry.usage.inconsistent
    assert entry.usage.output_total == 3


def test_an_opened_says_what_a_lost_exchange_is_known_by(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT})
    reply = stand.ask(chat(model), headers={"x-request-id": "mine"})
    (opened,) = [record for record in stand.records() if isinstance(record, Opened) and record.id == reply.id]
    entry = stand.entry(model)
    for name in ("id", "at", "protocol", "operation", "key", "owner", "model", "stream", "client_request_id"):
        assert getattr(opened, name) == getattr(entry, name), name
    assert (opened.operation, opened.stream, opened.client_request_id) == ("chat.completions", True, "mine")


# ---- checkpoints


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A stand whose channels speak Messages, which has usage from the first event on, and often notes how far it is."""
    with Stand(tmp_path_factory.mktemp("speaking"), CONFIG) as one:
        assert isinstance(one.gateway, GatewayThread) and one.gateway.worker is not None
        one.gateway.worker._checkpoints._every_s = EVERY_S
        yield one


def begin(client: Client, model: str, until: bytes = b"event: ") -> str:
    """A stream that has come so far; its id."""
    client.send(request(message(model), path=PATH))
    return client.read(until=until).id


def noted(stand: Stand, id: str) -> list[Checkpoint]:
    return [record for record in stand.records() if isinstance(record, Checkpoint) and record.id == id]


def test_a_running_stream_is_noted_while_it_moves(speaking: Stand) -> None:
    """Once it is held, once more and no more; heartbeats are no moving; with its entry it is over."""
    moving = speaking.model("one", {**ENDLESS, "gap": 0.03})
    held = speaking.model("one", {**HELD, "heartbeats": {"during": "stall", "every": 0.05}})
    with speaking.connect() as first, speaking.connect() as second:
        still = begin(second, held, until=b'"B"}}\n\n')
        mobile = begin(first, moving)
        until(lambda: len(noted(speaking, mobile)) >= 5, "five checkpoints")
        (only,) = noted(speaking, still)
        several = noted(speaking, mobile)
        assert [one.wire.events for one in several] == sorted({one.wire.events for one in several}), "each further"
        assert [one.duration_s for one in several] == sorted(one.duration_s for one in several)
    assert all(one.wire.hash_in == one.wire.hash_out for one in several), "what is counted is what was delivered"
    assert only.wire.events == 4 and only.status == 200 and only.served_model == "up"
    assert (only.usage.input_total, only.usage_origin) == (9, "upstream_partial")
    (attempt,) = only.attempts
    assert (attempt.channel, attempt.credential, attempt.status, attempt.verdict) == ("ch1", "main", 200, "")
    entries = speaking.entries(held, count=1) + speaking.entries(moving, count=1)
    assert [entry.end for entry in entries] == ["client_gone"] * 2
    assert entries[0].wire.heartbeats > 2 and entries[0].wire.events == 4
    counts = len(noted(speaking, still)), len(noted(speaking, mobile))
    assert entries[1].wire.events >= noted(speaking, mobile)[-1].wire.events
    other = speaking.model("one", {**ENDLESS, "gap": 0.03})
    with speaking.connect() as client:
        id = begin(client, other)
        until(lambda: len(noted(speaking, id)) >= 2, "two more intervals")
    assert (len(noted(speaking, still)), len(noted(speaking, mobile))) == counts


def test_a_short_exchange_leaves_none(speaking: Stand) -> None:
    model = speaking.model("one", {"events": ANTH})
    with speaking.connect() as client:
        id = begin(client, model, until=b"message_stop")
    assert speaking.entry(model).id == id and not noted(speaking, id)


def test_what_a_killed_worker_leaves(tmp_path: Path) -> None:
    """Its last checkpoint has what had come by then: a lost exchange is billed for that."""
    with Stand(tmp_path, CONFIG) as stand:
        model = stand.model("one", HELD)
        silent = stand.model("one", {"head_delay": 30})
        config = (tmp_path / "headrace.yaml").read_text().replace(str(stand.state), str(tmp_path / "alone"))
        (tmp_path / "alone.yaml").write_text(config)
        (tmp_path / "alone.yaml").chmod(0o600)
        with (
            worker_alone(tmp_path / "alone.yaml", EVERY_S) as (process, port),
            Client(port) as client,
            Client(port) as waiting,
        ):
            waiting.send(request(message(silent), path=PATH))
            id = begin(client, model, until=b'"B"}}\n\n')
            (where,) = incarnations(tmp_path / "alone")
            until(lambda: [one for one in read_all(tmp_path / "alone") if isinstance(one, Checkpoint)])
            until(lambda: stand.ch1.calls(silent), "the call")
            assert is_live(where)
            process.kill()
            process.wait()
        batch = read_batch(where, Position())
        assert batch.ended and not batch.damaged_bytes
        opened = {record.model: record for record in batch.records if isinstance(record, Opened)}
        (reached,) = [record for record in batch.records if isinstance(record, Checkpoint)]
        assert not [record for record in batch.records if isinstance(record, Entry)]
        entry = lost_entry(opened[model], reached, "worker_lost")
    assert (entry.id, entry.model, entry.stream, entry.status) == (id, model, True, 200)
    assert (entry.usage.input_total, entry.usage.output_total, entry.served_model) == (9, 1, "up")
    assert entry.wire.events == 4 and entry.wire.hash_in == entry.wire.hash_out
    assert entry.wire.released == len("".join([START, BLOCK, text("A"), text("B")]).encode())
    assert [line.channel for line in entry.attempts] == ["ch1"]
    nothing = lost_entry(opened[silent], None, "worker_lost")
    assert (nothing.model, nothing.usage.known, nothing.attempts) == (silent, False, ())
