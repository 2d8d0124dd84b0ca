"""Stopping: what runs may end, what still runs at the deadline is told so, and nothing is left behind."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from headrace.model.entry import Entry
from tests.stand.client import Client, End
from tests.stand.gateway import GatewayProcess, GatewayThread
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand
from tests.stand.waiting import until
from tests.stand.wire import CHAT, TEXT, chat, chunk, error_in, request, texts

ENDLESS = {"text": "word ", "repeat": 100_000, "gap": 0.02}
MakeStand = Callable[..., AbstractContextManager[Stand]]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[MakeStand]:
    """A stand whose gateway drains with these limits."""

    def stand(notice: str = "0s", drain: str = "5s", process: bool = False) -> Stand:
        text = CONFIG.replace("drain_notice: 0s", f"drain_notice: {notice}").replace("drain: 5s", f"drain: {drain}")
        return Stand(tmp_path, text, process=process)

    yield stand


def gateway_of(stand: Stand) -> GatewayThread:
    """Its thread."""
    assert isinstance(stand.gateway, GatewayThread)
    return stand.gateway


def begin(stand: Stand, client: Client, model: str) -> None:
    """A stream whose first event is there."""
    client.send(request(chat(model)))
    client.read(until=b"data: ")


def test_streams_end_in_their_own_time(make: MakeStand) -> None:
    with make() as stand:
        model = stand.model("one", {"events": CHAT, "gap": 0.1})
        with stand.connect() as client, stand.connect() as idle:
            assert stand.send(idle, path="/readyz", method="GET").status == 200
            begin(stand, client, model)
            gateway_of(stand).drain()
            assert idle.ended() is End.CLOSED, "an idle connection is closed at once"
            reply = client.rest()
            assert (reply.end, texts(reply.body)) == (End.FRAMED, TEXT)
            assert client.ended() is End.CLOSED, "and each other one behind its response"
        gateway_of(stand).wait()
        assert stand.entry(model).end == "completed"
        with pytest.raises(ConnectionRefusedError):
            stand.connect()


@pytest.mark.parametrize("streams", [1, 20])
def test_the_deadline_ends_the_rest_in_words(make: MakeStand, streams: int) -> None:
    """Case B119."""
    with make(drain="300ms") as stand:
        model = stand.model("one", ENDLESS)
        clients = [stand.connect() for _ in range(streams)]
        for client in clients:
            begin(stand, client, model)
        gateway_of(stand).drain()
        for client in clients:
            reply = client.rest()
            assert reply.end is End.FRAMED
            error = error_in(reply.body)
            assert error["code"] == "stopped"
            assert "again" not in str(error["message"])
            client.close()
        gateway_of(stand).wait()
        assert {(entry.end, entry.reason) for entry in stand.entries(model)} == {("stopped", "shutdown")}
        assert len(stand.entries(model)) == streams


def test_whatever_an_exchange_is_at_the_deadline_ends_it(make: MakeStand) -> None:
    """Without an event yet, without streaming, in the body's upload, in the pause before a repeat: an HTTP error;
    behind the start of a reply: a reset."""
    with make(drain="300ms") as stand:
        models = [
            stand.model("twice", {"head_delay": 30}),
            stand.model("twice", {"events": CHAT, "first_delay": 30}),
            stand.model("twice", {"status": 503, "headers": {"retry-after-ms": "2900"}}),
        ]
        clients = [stand.connect() for _ in range(6)]
        for model, client in zip(models, clients, strict=False):
            client.send(request(chat(model)))
        whole = stand.model("twice", {"text": "x", "head_delay": 30})
        clients[3].send(request(chat(whole, stream=False)))
        clients[4].send(request(chat(whole))[:-10])
        started = stand.model("twice", {"text": "word ", "repeat": 60_000, "cut": {"at_byte": 200_000, "how": "stall"}})
        clients[5].send(request(chat(started, stream=False)))
        clients[5].read(until=b"word")
        until(lambda: all(stand.ch1.calls(model) for model in [*models, whole]), "every call")
        gateway_of(stand).drain()
        for client in clients[:5]:
            reply = client.rest()
            assert (reply.status, error_in(reply.body)["code"]) == (503, "stopped")
            assert reply.header("x-should-retry") == "false"
            client.close()
        assert clients[5].rest().end is End.RESET
        clients[5].close()
        gateway_of(stand).wait()
        entries = [one for one in stand.records() if isinstance(one, Entry)]
        assert [entry.end for entry in entries] == ["stopped"] * 6


def test_a_client_that_does_not_read_holds_up_nothing(make: MakeStand) -> None:
    """Case B119."""
    with make(drain="200ms") as stand:
        model = stand.model("one", {"events": [{"text": chunk({"content": "x" * 8000}), "repeat": 4000}]})
        with stand.connect(receive_buffer=4096) as client:
            begin(stand, client, model)
            began = time.monotonic()
            gateway_of(stand).drain()
            gateway_of(stand).wait()
            assert time.monotonic() - began < 10
        assert stand.entry(model).end in ("stopped", "client_gone")


def test_requests_are_taken_until_the_notice_is_over(make: MakeStand) -> None:
    """/readyz fails at once, so that load balancers turn away before anybody is refused."""
    with make(notice="1500ms") as stand:
        running = stand.model("one", ENDLESS)
        model = stand.model("one", {"events": CHAT})
        with stand.connect() as client, stand.connect() as other:
            begin(stand, client, running)
            gateway_of(stand).drain()

            def not_ready() -> bool:
                reply = stand.send(other, path="/readyz", method="GET")
                return other.rest() is reply and reply.status == 503

            until(not_ready, "the notice")
            assert texts(stand.ask(chat(model)).body) == TEXT
            assert stand.send(other, path="/healthz", method="GET").status == 200
            other.rest()
            client.close()


def test_a_request_behind_the_notice_is_told_to_go_elsewhere(make: MakeStand) -> None:
    with make() as stand:
        running = stand.model("one", {"events": CHAT, "gap": 0.1})
        with stand.connect() as client, stand.connect() as late:
            begin(stand, client, running)
            late.send(request(chat(running))[:20])  # keeps the connection from being idle
            time.sleep(0.02)
            gateway_of(stand).drain()
            client.read(until="北".encode())
            late.send(request(chat(running))[20:])
            reply = late.rest()
            assert (reply.status, error_in(reply.body)["code"]) == (503, "draining")
            assert reply.header("retry-after") == "1"
            assert reply.header("connection") == "close"
            assert client.rest().end is End.FRAMED


@pytest.mark.parametrize("process", [False, True])
def test_who_connects_during_a_drain_is_answered_and_not_left_waiting(make: MakeStand, process: bool) -> None:
    with make(process=process) as stand:
        running = stand.model("one", {"events": CHAT, "gap": 0.2})
        with stand.connect() as client:
            begin(stand, client, running)
            if isinstance(stand.gateway, GatewayProcess):
                stand.gateway.signal(signal.SIGTERM)
            else:
                stand.gateway.drain()
            until(lambda: stand.ask(path="/readyz", method="GET").status == 503, "the drain")
            for _ in range(3):
                reply = stand.ask(chat(running))
                assert (reply.status, error_in(reply.body)["code"]) == (503, "draining")
                assert reply.header("connection") == "close"
            assert client.rest().end is End.FRAMED
            assert texts(client.rest().body) == TEXT
        if isinstance(stand.gateway, GatewayProcess):
            assert stand.gateway.exit_code() == 0


def test_sigterm_drains_the_process(make: MakeStand) -> None:
    with make(drain="1500ms", process=True) as stand:
        ending = stand.model("one", {"events": CHAT, "gap": 0.05})
        endless = stand.model("one", ENDLESS)
        with stand.connect() as one, stand.connect() as two:
            begin(stand, one, ending)
            begin(stand, two, endless)
            assert isinstance(stand.gateway, GatewayProcess)
            stand.gateway.signal(signal.SIGTERM)
            assert texts(one.rest().body) == TEXT
            assert error_in(two.rest().body)["code"] == "stopped"
        assert stand.gateway.exit_code() == 0
        assert [stand.entry(model).end for model in (ending, endless)] == ["completed", "stopped"]
        stand.audit()


def test_a_second_sigterm_ends_the_process_at_once(make: MakeStand) -> None:
    with make(drain="60s", process=True) as stand:
        model = stand.model("one", ENDLESS)
        with stand.connect() as client:
            begin(stand, client, model)
            assert isinstance(stand.gateway, GatewayProcess)
            stand.gateway.signal(signal.SIGTERM)
            client.read_for(0.2)
            stand.gateway.signal(signal.SIGTERM)
            assert stand.gateway.exit_code(5) == 1
            reply = client.rest()
            assert (reply.end, error_in(reply.body)["code"]) == (End.FRAMED, "stopped")
        assert stand.entry(model).end == "stopped"


def test_kill_9_leaves_no_clean_end(make: MakeStand) -> None:
    """Case B086."""
    with make(process=True) as stand:
        model = stand.model("one", ENDLESS)
        with stand.connect() as client:
            begin(stand, client, model)
            assert isinstance(stand.gateway, GatewayProcess)
            os.kill(stand.gateway.child("worker 0"), signal.SIGKILL)
            assert client.rest().end in (End.CLOSED, End.RESET)
