"""Large bodies, long answers and fast ones in a real process: what they cost in memory and work, and who notices.

Bounds are bytes, orders, and ratios of one run to another, so that a busy machine fails nothing.
"""

import json
import statistics
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.line.spending import SPENDING, balance, secret_of
from tests.stand import procfs
from tests.stand.client import Client
from tests.stand.gateway import GatewayProcess
from tests.stand.messages import message
from tests.stand.stand import Stand, until
from tests.stand.wire import C0, C3, C4, CHAT, DONE, TEXT, chat, chunk, error_in, request, texts

pytestmark = pytest.mark.skipif(not procfs.IS_THERE, reason="processes are looked at through /proc")

MIB = 1024 * 1024
BODIES = 32 * MIB
"""`server.bodies` here."""
BODY = 28 * MIB // 10
"""A request with screenshots, a tenth of the reported one; so is the budget for bodies."""
FIT = BODIES // BODY
SENT_AT_ONCE = 40
NOISE = 12 * MIB
"""What the process may grow by for reasons of its own."""
SLOW = 20
EACH = 2 * MIB
"""What a client that does not read, or slowly, may cost: a buffer, and an event that is not whole."""
HEAVY = 10
REASONED = 2 * MIB
PIECE = 8000
STILL = 20
"""Looks for which a count must not have changed."""


@pytest.fixture(scope="module")
def stand(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    text = SPENDING.replace("max_body: 1MiB", f"max_body: 8MiB\n  bodies: {BODIES}B")
    with Stand(Path(tmp_path_factory.mktemp("heavy")), text, process=True) as made:
        assert made.ask(chat(made.model("priced", {"events": CHAT}))).status == 200
        yield made


def worker(stand: Stand) -> int:
    assert isinstance(stand.gateway, GatewayProcess)
    return stand.gateway.child("worker 0")


# ---- request bodies


def screenshots(model: str) -> bytes:
    """A request whose body is `BODY` bytes, most of it base64."""
    part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,"}}
    empty = json.dumps(chat(model, messages=[{"role": "user", "content": [part]}])).encode()
    return empty.replace(b"base64,", b"base64," + b"iVBORw0K" * ((BODY - len(empty)) // 8))


def sized(body: bytes, key: str) -> tuple[bytes, bytes]:
    """The request in two parts."""
    whole = request(body, key=key)
    return whole[:-1], whole[-1:]


def chunked(body: bytes, key: str) -> tuple[bytes, bytes]:
    head = request(b"", key=key, headers={"transfer-encoding": "chunked"}).replace(b"content-length: 0\r\n", b"")
    pieces = (body[at : at + 65536] for at in range(0, len(body), 65536))
    return head + b"".join(b"%x\r\n%b\r\n" % (len(one), one) for one in pieces), b"0\r\n\r\n"


@pytest.mark.parametrize("framed", [sized, chunked])
def test_bodies_in_flight_are_bounded_and_held_once(
    stand: Stand, framed: Callable[[bytes, str], tuple[bytes, bytes]]
) -> None:
    """Case B073: what does not fit is refused before it is whole, small requests pass meanwhile, and none costs more
    than twice its size."""
    model, small = stand.model("priced", {"events": CHAT}), stand.model("priced", {"events": CHAT})
    first, last = framed(screenshots(model), secret_of("racing"))
    before = procfs.resident_bytes(worker(stand))
    procfs.forget_peak(worker(stand))
    with ExitStack() as opened, ThreadPoolExecutor(SENT_AT_ONCE) as pool:
        clients = [opened.enter_context(stand.connect()) for _ in range(SENT_AT_ONCE)]
        list(pool.map(lambda client: client.send(first), clients))
        until(lambda: sum(map(Client.has_answer, clients)) >= SENT_AT_ONCE - FIT, "the refusals")
        refused = [client for client in clients if client.has_answer()]
        taken = [client for client in clients if client not in refused]
        assert texts(stand.ask(chat(small)).body) == TEXT
        list(pool.map(lambda client: client.send(last), taken))
        replies = [client.rest() for client in clients]
    served = [reply for reply in replies if reply.status == 200]
    assert [texts(reply.body) for reply in served] == [TEXT] * len(served)
    assert 0 < len(served) <= FIT
    for reply in replies:
        if reply not in served:
            assert (reply.status, error_in(reply.body)["code"]) == (503, "overloaded")
            assert int(reply.header("retry-after") or "0") >= 1
    assert procfs.peak_bytes(worker(stand)) - before <= 2 * FIT * BODY + NOISE
    assert len(stand.calls(model)) == len(served)
    assert balance(stand, "racing")["key"]["budget"]["held"] == "0"


# ---- clients that do not read


def test_slow_clients_cost_a_buffer_each_and_hold_up_nobody(stand: Stand) -> None:
    """Case B070: their upstreams are made to wait."""
    flood = stand.model("priced", {"events": [{"text": chunk({"content": "x" * PIECE}), "repeat": 4000}, C3, DONE]})
    model = stand.model("priced", {"events": CHAT, "gap": 0.02})
    before = procfs.resident_bytes(worker(stand))
    with ExitStack() as opened:
        clients = [opened.enter_context(stand.connect(receive_buffer=4096)) for _ in range(SLOW)]
        for client in clients:
            client.send(request(chat(flood)))
        until(lambda: len(stand.ch1.calls(flood)) == SLOW, "every flood")
        assert texts(stand.ask(chat(model)).body) == TEXT
        still = Still(lambda: sum(call.events_written for call in stand.ch1.calls(flood)))
        until(still, "a halt of every upstream")
        assert procfs.resident_bytes(worker(stand)) - before <= SLOW * EACH + NOISE
        assert max(call.events_written for call in stand.ch1.calls(flood)) < 4000
        for client in clients:
            client.read(until=b"x" * PIECE)
    assert {entry.end for entry in stand.entries(flood, count=SLOW)} == {"client_gone"}


class Still:
    """Whether a count is the same as when it was asked a while ago."""

    def __init__(self, count: Callable[[], int]) -> None:
        self._count = count
        self._seen: list[int] = []

    def __call__(self) -> bool:
        self._seen.append(self._count())
        return len(self._seen) > STILL and self._seen[-1] == self._seen[-STILL]


# ---- a loop for everybody


def test_a_fast_stream_starves_nobody(stand: Stand) -> None:
    """Case B075: others begin and end while one comes as fast as it can and is read as fast. How long a short answer
    takes is told in bytes of the fast one."""
    flood = stand.model("priced", {"events": [{"text": chunk({"content": "x" * PIECE}), "repeat": 1_000_000}]})
    model = stand.model("priced", {"events": CHAT, "gap": 0.01})
    taken: list[int] = []
    enough = threading.Event()
    waits: list[int] = []
    with stand.connect() as client, stand.connect() as other:
        stand.send(client, chat(flood))

        def read() -> None:
            while not enough.is_set():
                taken.append(client.skip())

        reader = threading.Thread(target=read)
        reader.start()
        try:
            until(lambda: sum(taken) > 2 * MIB, "the flood")
            for _ in range(20):
                before = sum(taken)
                assert stand.send(other, path="/healthz", method="GET", key=None).status == 200
                other.rest()
                waits.append(sum(taken) - before)
            bodies = [stand.ask(chat(model)).body for _ in range(3)]
        finally:
            enough.set()
            reader.join()
    assert [texts(body) for body in bodies] == [TEXT] * 3
    assert statistics.median(waits) < 4 * MIB
    assert sum(waits) > 0, "and it went on meanwhile"


def reasoned(stand: Stand, ends: list[str]) -> str:
    """A model that answers 2 MB of reasoning, and then ends like this."""
    piece = chunk({"reasoning_content": "What turns the wheel? 水 " * (PIECE // 26)})
    return stand.model("priced", {"events": [C0, {"text": piece, "repeat": REASONED // PIECE}, *ends], "done": False})


def test_an_estimate_costs_no_more_than_the_stream_that_it_is_of(stand: Stand) -> None:
    """Case B074: ten long answers break off and have to be estimated, and long requests are counted. The gateway uses
    no more of the processor than for ten that tell their usage, and answers others meanwhile."""
    told, cut = reasoned(stand, [C3, C4, DONE]), reasoned(stand, [])
    healthy, spent = [], []
    for model, origin in ((told, "upstream"), (cut, "estimated")):
        began = procfs.cpu_s(worker(stand))
        with ThreadPoolExecutor(HEAVY) as pool:
            asked = [pool.submit(stand.ask, chat(model)) for _ in range(HEAVY)]
            while not all(one.done() for one in asked):
                healthy.append(stand.ask(path="/healthz", method="GET", key=None).status)
        spent.append(procfs.cpu_s(worker(stand)) - began)
        entries = stand.entries(model, count=HEAVY)
        assert {entry.usage_origin for entry in entries} == {origin}
        if origin == "estimated":
            assert min(entry.usage.output_total or 0 for entry in entries) > REASONED / 10
    assert set(healthy) == {200} and len(healthy) >= 4
    assert spent[1] <= 2 * spent[0], spent


def test_a_long_request_is_counted_by_a_sample(stand: Stand) -> None:
    """Case B074: for a key with a budget, 5 MB cost about what they cost without."""
    model = stand.model("priced", {"text": "hi"})
    body = message(model, stream=False, messages=[{"role": "user", "content": "What turns the wheel? 水 " * 200_000}])
    sent = json.dumps(body, ensure_ascii=False).encode()
    assert len(sent) > 4_800_000
    spent = []
    for key in ("twice", "racing"):
        began = procfs.cpu_s(worker(stand))
        for path in ("/v1/messages", "/v1/messages/count_tokens") * 2:
            assert stand.ask(sent, path=path, key=secret_of(key)).status == 200
        spent.append(procfs.cpu_s(worker(stand)) - began)
    assert spent[1] <= 2 * spent[0] + 0.05, spent
