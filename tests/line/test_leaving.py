"""Clients that leave, or stay and read nothing: what becomes of their upstreams, of their places, and of the bill."""

import asyncio
import gc
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from headrace.model.entry import Entry
from headrace.simulator.recorded import End as UpstreamEnd
from tests.line.spending import SPENDING, balance, secret_of
from tests.metering.counted_texts import counted_texts
from tests.stand import gemini
from tests.stand.client import End
from tests.stand.gateway import GatewayThread
from tests.stand.messages import PATH as MESSAGES_PATH
from tests.stand.messages import message
from tests.stand.stand import Stand, until
from tests.stand.wire import C0, C3, CHAT, DONE, TEXT, chat, chunk, request, texts

CLIENTS = 100
CAP = 10
"""`drain_streams` of `priced-drained-*`."""
BEHIND_S = 1.5
TOKENS = 500
"""What the upstream says in the end."""
PROSE = next(text for text in counted_texts("o200k_base") if text.kind == "english")
PIECES = [PROSE.text(at, at + 100) for at in range(0, 400, 100)]
"""100 tokens each."""
RELAYED_TOKENS = 401
USED = {"prompt_tokens": 1, "completion_tokens": TOKENS, "total_tokens": TOKENS + 1}
LONG: dict[str, object] = {"text": "word ", "repeat": 200, "gap": 0.1}
"""20 s."""
ASKED: dict[str, Callable[[str, str], bytes]] = {
    "chat": lambda model, key: request(chat(model), key=key),
    "responses": lambda model, key: request(
        {"model": model, "input": "hi", "stream": True}, path="/v1/responses", key=key
    ),
    "messages": lambda model, key: request(message(model), path=MESSAGES_PATH, key=key),
    "gemini": lambda model, key: request(gemini.BODY, path=gemini.path(model), key=key),
}


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    with Stand(Path(tmp_path_factory.mktemp("leaving")), SPENDING) as made:
        yield made


@pytest.fixture
def uncollected() -> Iterator[None]:
    """Nothing may be closed by a collection that happens to come."""
    gc.disable()
    yield
    gc.enable()


def gateway_of(stand: Stand) -> GatewayThread:
    assert isinstance(stand.gateway, GatewayThread)
    return stand.gateway


def is_quiet(stand: Stand) -> bool:
    """No exchange runs, no stream is read on, no upstream connection is in use, and no task is there but the worker's
    own and this question."""
    gateway = gateway_of(stand)
    worker = gateway.worker
    assert worker is not None

    def look() -> bool:
        front = worker._front
        pool = front._stages.upstream.pool
        in_use = pool.open_connections - pool.idle_connections
        return not (front.running or front._stages.share.draining or in_use) and len(asyncio.all_tasks()) <= 2

    return gateway.call(look)


# ---- who leaves closes the upstream


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("how", ["close", "reset"])
@pytest.mark.parametrize("dialect", ASKED)
def test_who_leaves_closes_the_upstream_in_each_protocol(stand: Stand, dialect: str, how: str) -> None:
    """Case B058: also on a connection that had an answer before; place, task and connection are given back."""
    whole, model = stand.model("priced", {}), stand.model("priced", LONG)
    key = secret_of("single")
    with stand.connect() as client:
        client.send(ASKED[dialect](whole, key))
        assert client.rest().status == 200
        client.send(ASKED[dialect](model, key))
        client.head()
        client.read(until=b"word")
        client.read_for(0.3)
        getattr(client, how)()
    (call,) = stand.calls(model)
    assert call.end is UpstreamEnd.CLIENT_CLOSED
    assert call.events_written < 100, "of 200 and more: not half of its 20 s"
    until(lambda: is_quiet(stand), "the end of all that it had")
    assert balance(stand, "single")["key"]["concurrent"]["used"] == 0
    assert stand.entry(model).end == "client_gone"


# ---- reading on


def finished_later(after: int, gap: float, events: int) -> dict[str, object]:
    """So many events at once, the others with a gap, and usage in the end."""
    first = [C0, *(chunk({"content": piece}) for piece in PIECES[: after - 1])]
    return {
        "events": [*first, {"text": chunk({"content": " more"}), "delay": gap, "repeat": events}, C3,
                   f'data: {{"choices": [], "usage": {json.dumps(USED)}}}\n\n', DONE],
    }  # fmt: skip


@pytest.mark.usefixtures("uncollected")
def test_a_drained_stream_is_read_to_its_usage_and_no_longer_than_its_cap(stand: Stand) -> None:
    """Case B058: with `client_gone: drain`."""
    short = stand.model("priced-drained", finished_later(5, 0.3, 1))
    endless = stand.model("priced-drained", LONG)
    for model in (short, endless):
        with stand.connect() as client:
            stand.send(client, chat(model))
            client.read(until=b"data: ")
    entry = stand.entry(short)
    assert (entry.end, entry.usage_origin, entry.usage.output_total) == ("client_gone", "upstream", TOKENS)
    (whole,), (cut,) = stand.calls(short), stand.calls(endless)
    assert (whole.end, cut.end) == (UpstreamEnd.COMPLETE, UpstreamEnd.CLIENT_CLOSED)
    entry = stand.entry(endless)
    assert (entry.end, entry.usage_origin) == ("client_gone", "estimated")
    until(lambda: is_quiet(stand), "the end of all that it had")


def most_at_once(spans: list[tuple[float, float]]) -> int:
    """How many of the spans there were at the same time, at most."""
    steps = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    found = now = 0
    for _, step in steps:
        now += step
        found = max(found, now)
    return found


def test_of_100_who_leave_no_more_than_the_cap_are_read_on(stand: Stand) -> None:
    """Case B065: whose usage came is billed for that; the others for what was relayed to them, flagged as estimated."""
    model = stand.model("priced-drained", finished_later(5, BEHIND_S, 1))
    left: dict[str, float] = {}
    clients = [stand.connect() for _ in range(CLIENTS)]
    for client in clients:
        client.send(request(chat(model), key=secret_of("racing")))
    for client in clients:
        found = client.read(until=json.dumps(PIECES[3]).encode()).id
        client.close()
        left[found] = time.time()
    entries = stand.entries(model, count=CLIENTS)
    assert {entry.end for entry in entries} == {"client_gone"}
    drained = [entry for entry in entries if entry.usage_origin == "upstream"]
    others = [entry for entry in entries if entry.usage_origin == "estimated"]
    assert len(drained) + len(others) == CLIENTS and len(drained) >= CAP
    assert sum(call.end is UpstreamEnd.COMPLETE for call in stand.calls(model)) == len(drained)
    assert most_at_once([(left[one.id], one.at + one.duration_s) for one in drained]) <= CAP
    assert {one.usage.output_total for one in drained} == {TOKENS}
    relayed = RELAYED_TOKENS
    assert {abs((one.usage.output_total or 0) - relayed) <= relayed / 10 for one in others} == {True}
    assert_held_nothing(stand, entries)


def test_who_leaves_before_the_first_event_is_not_read_on(stand: Stand) -> None:
    """Case B065: nothing was generated that anybody knows of, so nothing is billed, and the entry says that."""
    model = stand.model("priced-drained", {"events": CHAT, "first_delay": 30})
    clients = [stand.connect() for _ in range(CLIENTS)]
    for client in clients:
        client.send(request(chat(model), key=secret_of("racing")))
    until(lambda: len(stand.ch1.calls(model)) == CLIENTS, "every call")
    for client in clients:
        client.close()
    entries = stand.entries(model, count=CLIENTS)
    assert {(one.end, one.usage_origin, one.money.charge) for one in entries} == {("client_gone", "none", 0)}
    assert {call.end for call in stand.calls(model)} == {UpstreamEnd.CLIENT_CLOSED}
    assert_held_nothing(stand, entries)


def assert_held_nothing(stand: Stand, entries: list[Entry]) -> None:
    """The key "racing" has no place and no hold any more, and each of the exchanges counts once."""
    until(lambda: balance(stand, "racing")["key"]["concurrent"]["used"] == 0, "the last place")
    assert balance(stand, "racing")["key"]["budget"]["held"] == "0"
    assert len({entry.id for entry in entries}) == len(entries)


# ---- who stays and reads nothing


def test_who_reads_nothing_gives_its_place_back(stand: Stand) -> None:
    """Case B062: 20 MB come fast; once nothing is taken for `write_timeout`, both sides are closed."""
    model = stand.model("priced-impatient", {"events": [{"text": chunk({"content": "x" * 8000}), "repeat": 2500}, C3]})
    good = stand.model("priced", {"events": CHAT})
    with stand.connect(receive_buffer=4096) as client:
        client.send(request(chat(model), key=secret_of("single")))
        until(lambda: balance(stand, "single")["key"]["concurrent"]["used"] == 1, "its place")
        entry = stand.entry(model)
        assert (entry.end, entry.reason, entry.usage_origin) == ("client_gone", "write_timeout", "estimated")
        until(lambda: is_quiet(stand), "the end of all that it had")
        assert texts(stand.ask(chat(good), key=secret_of("single")).body) == TEXT
        assert client.rest().end is End.RESET
    assert stand.calls(model)[0].end is UpstreamEnd.CLIENT_CLOSED
