"""Clients that leave, that do not read, and that are many: each has its own stream and nobody else's."""

import gzip
import json
import random
import threading
import time
import uuid
from collections.abc import Mapping

import pytest

from headrace.model.entry import Entry
from headrace.simulator.recorded import End as UpstreamEnd
from tests.line.body import sha256
from tests.stand.client import End
from tests.stand.gateway import GatewayThread
from tests.stand.stand import Stand, until
from tests.stand.wire import (
    C3,
    CHAT,
    DONE,
    chat,
    chunk,
    request,
    texts,
)

Fields = Mapping[str, object]


@pytest.mark.parametrize("how", ["reset", "close"])
@pytest.mark.parametrize("stream", [True, False])
def test_a_client_that_leaves_closes_the_upstream(stand: Stand, how: str, stream: bool) -> None:
    """Case B058."""
    fields: Fields = {"text": "word ", "repeat": 2000, "gap": 0.02} if stream else {"text": "x", "first_delay": 30}
    model = stand.model("twice", fields)
    with stand.connect() as client:
        client.send(request(chat(model, stream=stream)))
        if stream:
            client.read(until=b"word")
        else:
            until(lambda: stand.ch1.calls(model), "the upstream's call")
        left = time.monotonic()
        getattr(client, how)()
    call = stand.calls(model)[0]
    assert time.monotonic() - left < 5, "it would have run for 30 s and more"
    assert call.end is UpstreamEnd.CLIENT_CLOSED
    entry = stand.entry(model)
    assert (entry.end, entry.reason, len(entry.attempts)) == ("client_gone", "client left", 1)


def test_a_client_that_leaves_before_the_head_closes_the_upstream(stand: Stand) -> None:
    model = stand.model("twice", {"head_delay": 30})
    with stand.connect() as client:
        client.send(request(chat(model)))
        until(lambda: stand.ch1.calls(model), "the upstream's call")
    assert stand.calls(model)[0].end is UpstreamEnd.CLIENT_CLOSED
    assert stand.entry(model).end == "client_gone"


def test_a_client_that_leaves_before_the_head_is_nobodys_failure(stand: Stand) -> None:
    model = stand.model("twice", {"head_delay": 30})
    with stand.connect() as client:
        client.send(request(chat(model)))
        until(lambda: stand.ch1.calls(model), "the upstream's call")
    entry = stand.entry(model)
    assert (entry.end, entry.status, entry.usage_origin) == ("client_gone", None, "none")
    assert [one.verdict for one in entry.attempts] == ["client_gone"]


def test_a_client_that_leaves_while_its_body_is_decoded_asks_for_nothing(stand: Stand) -> None:
    """The exchange is over before its first attempt: nothing may be sent up, and nothing may wait for ever."""
    model = stand.model("one", {"text": "x", "first_delay": 30})
    body = gzip.compress(json.dumps(chat(model)).encode() + b" " * 200_000)
    for _ in range(20):
        with stand.connect() as client:
            client.send(request(body, headers={"content-encoding": "gzip"}))
            client.reset()
    assert stand.ask(chat(stand.model("one", {"events": CHAT}))).status == 200  # those before it have been accepted
    gateway = stand.gateway
    assert isinstance(gateway, GatewayThread)
    worker = gateway.worker
    assert worker is not None
    until(lambda: not gateway.call(lambda: len(worker._front.running)), "the end of every exchange")
    entries = stand.entries(model)  # without those whose model was not learned before they ended
    assert {(entry.end, len(entry.attempts)) for entry in entries} <= {("client_gone", 0), ("client_gone", 1)}
    assert len(stand.calls(model)) <= sum(len(entry.attempts) for entry in entries)


def test_a_client_that_leaves_behind_the_end_has_had_it(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "tail_hold": 0.2})
    with stand.connect() as client:
        client.send(request(chat(model)))
        client.read(until=DONE.encode())
        client.reset()
    assert stand.entry(model).end == "completed"


def test_a_client_that_leaves_while_sending_is_gone(stand: Stand) -> None:
    with stand.connect() as client:
        client.send(request(b"x" * 100)[:-50])
        client.reset()

    def entries() -> list[Entry]:
        return [one for one in stand.records() if isinstance(one, Entry) and one.end == "client_gone" and not one.model]

    assert until(entries, "the entry")[-1].status is None


FLOOD: Fields = {"events": [{"text": chunk({"content": "x" * 8000}), "repeat": 4000}, C3, DONE]}


def test_a_client_that_does_not_read_is_cut(stand: Stand) -> None:
    """Case B062."""
    model = stand.model("impatient", FLOOD)
    with stand.connect(receive_buffer=4096) as client:
        client.send(request(chat(model)))
        entry = stand.entry(model)
        assert (entry.end, entry.reason) == ("client_gone", "write_timeout")
        assert client.rest().end is End.RESET
    call = stand.calls(model)[0]
    assert call.end is UpstreamEnd.CLIENT_CLOSED
    assert call.events_written < 4000, "case B070: the upstream was made to wait"


def test_a_slow_client_holds_up_its_own_upstream_and_nobody_else(stand: Stand) -> None:
    """Cases B070, B075."""
    slow_model = stand.model("one", FLOOD)
    model = stand.model("one", {"events": CHAT, "gap": 0.02})
    with stand.connect(receive_buffer=4096) as slow:
        slow.send(request(chat(slow_model)))
        until(lambda: stand.ch1.calls(slow_model), "the flood")
        reply = stand.ask(chat(model, usage=True))
        assert reply.body == "".join(CHAT).encode()
        gaps = [later.at - piece.at for piece, later in zip(reply.pieces, reply.pieces[1:], strict=False)]
        assert max(gaps) < 4, "not until the slow client is cut"
        written = stand.ch1.calls(slow_model)[0].events_written
        assert written < 4000
        slow.read(until=b"x" * 8000)
    assert stand.entry(slow_model).end == "client_gone"


def test_a_slow_client_that_reads_on_gets_everything(stand: Stand) -> None:
    flood = {"events": [{"text": chunk({"content": "x" * 8000}), "repeat": 600}, C3, DONE]}
    model = stand.model("one", flood)
    with stand.connect(receive_buffer=4096) as client:
        client.send(request(chat(model)))
        client.head()
        client.read_for(0.05)
        time.sleep(0.1)
        reply = client.rest()
    assert reply.end is End.FRAMED
    assert sha256(reply.body) == stand.calls(model)[0].sent_sha256
    assert stand.entry(model).end == "completed"


def test_no_foreign_bytes(stand: Stand) -> None:
    """Case B064: many streams at once, half of them left in the middle, surplus bytes behind some."""
    streams = 300
    rng = random.Random(64)
    marks = [uuid.uuid4().hex for _ in range(streams)]
    models = [
        stand.model(
            "one",
            {
                "text": [mark, *[f" {mark}"] * 20],
                "gap": 0.005,
                "surplus": f"HTTP/1.1 200 OK\r\n\r\n{mark}" if number % 3 == 0 else "",
            },
        )
        for number, mark in enumerate(marks)
    ]
    bodies = [b""] * streams

    def one(number: int) -> None:
        with stand.connect() as client:
            for _ in range(2):
                client.send(request(chat(models[number])))
                client.head()
                if number % 2:
                    bodies[number] += client.read_for(rng.uniform(0.0, 0.3)).body
                    client.reset()
                    return
                bodies[number] += client.rest().body

    threads = [threading.Thread(target=one, args=(number,)) for number in range(streams)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, body in enumerate(bodies):
        assert not [mark for mark in marks if mark != marks[number] and mark.encode() in body]
        if number % 2 == 0:
            assert texts(body) == (marks[number] + f" {marks[number]}" * 20) * 2
    for model in models:
        for call in stand.calls(model):
            assert call.model == model


def test_many_streams_have_one_entry_each(stand: Stand) -> None:
    model = stand.model("one", {"events": CHAT, "gap": 0.005})
    ids: list[str] = []

    def some() -> None:
        with stand.connect() as client:
            for _ in range(5):
                stand.send(client, chat(model))
                ids.append(client.rest().id)

    threads = [threading.Thread(target=some) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    until(lambda: len(stand.entries(model)) == 50, "the last entry")
    assert sorted(ids) == sorted(entry.id for entry in stand.entries(model))
    assert len({json.dumps(call.json()) for call in stand.calls(model)}) == 1
