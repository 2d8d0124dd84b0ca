"""Malformed and hostile requests: the documented answer to each, nothing smuggled behind it, and the rest goes on."""

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.line.hostile import BOMBS, CL, CODINGS, NONE, SMUGGLED, TABLES, TE, Hostile, get, post, sized
from tests.line.test_bad_input import Bad, check, check_serving
from tests.stand.client import Client, End, Reply
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand, until
from tests.stand.wire import CHAT, KEY, TEXT, chat, request, texts

HEALTH = request(method="GET", path="/healthz", key=None)
MIB = 1024 * 1024


def ask(client: Client, case: Hostile) -> list[Reply]:
    """All answers to what is sent."""
    client.send(case.sent)
    replies = []
    for _ in case.statuses:
        reply = client.head()
        client.rest()
        assert reply.end is End.FRAMED, reply
        replies.append(reply)
    return replies


def check_case(stand: Stand, case: Hostile) -> None:
    with stand.connect() as client:
        replies = ask(client, case)
        assert [reply.status for reply in replies] == list(case.statuses), replies[-1].body[:300]
        last = replies[-1]
        if case.code is not None:
            check(Bad(b"", case.statuses[-1], case.code, case.says, case.param), last)
        check_heads(replies)
        if case.closes:
            client.shut()
            assert client.ended() in (End.CLOSED, End.RESET), "and nothing more is answered"
        else:
            assert last.header("connection") is None
            client.send(HEALTH)
            assert client.head().status == 200, "the connection goes on"
    with stand.connect() as client:
        client.send(HEALTH)
        assert client.head().status == 200, "the gateway goes on"


def check_heads(replies: list[Reply]) -> None:
    """Whatever was sent, a reply has no field but those that it always has."""
    usual = {
        "content-type",
        "content-length",
        "connection",
        "x-request-id",
        "request-id",
        "allow",
        "retry-after",
        "x-should-retry",
    }
    for reply in replies:
        assert {name for name, _ in reply.headers} <= usual, reply.headers
        assert KEY.encode() not in reply.body


@pytest.mark.parametrize("name", TABLES)
def test_a_hostile_request(stand: Stand, name: str) -> None:
    """Cases B105, B107, B108, B109."""
    check_case(stand, TABLES[name])


def test_there_are_enough_of_them() -> None:
    assert len(TABLES) >= 400
    assert len({case.sent for case in TABLES.values()}) == len(TABLES), "none stands twice"


def test_after_all_of_them_a_stream_is_served(stand: Stand) -> None:
    for case in list(TABLES.values())[::7]:
        with stand.connect() as client:
            client.send(case.sent)
    check_serving(stand)


# ----------------------------------------------------------------------------------------------------- cut and dribbled


@pytest.mark.parametrize(
    "name",
    [name for name, case in TABLES.items() if name.startswith(("framing: ", "chunk: ")) and len(case.sent) <= 2000][
        ::4
    ],
)
def test_a_byte_at_a_time_it_is_the_same(stand: Stand, name: str) -> None:
    """The answer does not depend on where the network cuts."""
    case = TABLES[name]
    with stand.connect() as client:
        for position in range(len(case.sent)):
            client.send(case.sent[position : position + 1])
        statuses = []
        for _ in case.statuses:
            statuses.append(client.head().status)
            client.rest()
        assert statuses == list(case.statuses)


# ------------------------------------------------------------------------------------------------------ interim replies


def continued(stand: Stand, head: bytes, body: bytes) -> Reply:
    """A request whose body waits for 100 Continue."""
    with stand.connect() as client:
        client.send(head)
        client.interim(100)
        client.send(body)
        client.head()
        return client.rest()


def test_continue_before_chunks(stand: Stand) -> None:
    reply = continued(stand, post(TE, b"expect: 100-continue"), b"15\r\n" + NONE + b"\r\n0\r\n\r\n")
    assert reply.status == 404


def test_continue_before_a_hostile_body(stand: Stand) -> None:
    reply = continued(stand, post(TE, b"expect: 100-continue"), b"zz\r\n" + SMUGGLED)
    assert (reply.status, reply.header("connection")) == (400, "close")


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (post(b"content-length: 99999999", b"expect: 100-continue"), 413),
        (post(CL, b"expect: 100-continue", path="/v1/nowhere"), 404),
        (post(CL, b"expect: 100-continue").replace(KEY.encode(), b"sk-none"), 401),
    ],
)
def test_no_continue_for_what_is_refused(stand: Stand, head: bytes, status: int) -> None:
    """The final answer is the first; a body that comes all the same is no request."""
    with stand.connect() as client:
        client.send(head)
        while b"\r\n\r\n" not in client._unread:
            assert client._read()
        assert client._unread.startswith(b"HTTP/1.1 %d " % status)
        client.head()
        client.send(SMUGGLED[:21])
        reply = client.rest()
        assert reply.status == status


def test_a_body_before_the_continue_gets_none(stand: Stand) -> None:
    """The client did not wait, so nothing is to be said (RFC 9110 section 10.1.1)."""
    with stand.connect() as client:
        client.send(sized(NONE, b"expect: 100-continue"))
        while b"\r\n\r\n" not in client._unread:
            assert client._read()
        assert client._unread.startswith(b"HTTP/1.1 404 ")


# ------------------------------------------------------------------------------------------------------------- HEAD


@pytest.mark.parametrize(
    ("start", "status"),
    [
        (b"HEAD /healthz HTTP/1.1", 200),
        (b"HEAD / HTTP/1.1", 200),
        (b"HEAD /nowhere HTTP/1.1", 404),
        (b"HEAD /v1/models HTTP/1.1", 401),
        (b"HEAD /v1/chat/completions HTTP/1.1", 405),
        (b"HEAD //evil HTTP/1.1", 400),
        (b"HEAD /healthz HTTP/1.2", 505),
    ],
)
def test_head_has_no_body(stand: Stand, start: bytes, status: int) -> None:
    with stand.connect() as client:
        client.send(get(start=start))
        reply = client.head(method="HEAD")
        assert (reply.status, reply.body) == (status, b"")
        assert int(reply.header("content-length") or 0) > 0
        if status in (400, 505):
            assert client.ended() in (End.CLOSED, End.RESET)
        else:
            client.send(HEALTH)
            assert client.head().status == 200


# ----------------------------------------------------------------------------------------------------------- injection


def test_a_model_name_cannot_begin_a_line(stand: Stand) -> None:
    """A name that a pattern takes goes up as it is, inside JSON; heads and entries hold nothing of it."""
    model = "one-\r\nset-cookie: a=b\r\n\r\nHTTP/1.1 200 OK"
    stand.ch1.scenario(model, {"events": CHAT})
    reply = stand.ask(chat(model, usage=True))
    assert texts(reply.body) == TEXT
    assert reply.header("set-cookie") is None
    call = stand.calls(model)[0]
    assert json.loads(call.body)["model"] == model
    assert not [value for name, value in call.headers if "set-cookie" in name + value]


@pytest.mark.parametrize(
    "value", [b"\xe4\xff", "北京".encode(), b"a\tb", b"%0d%0aset-cookie: x", b"<script>", b"y" * 8000]
)
def test_a_clients_own_ids_are_not_echoed(stand: Stand, value: bytes) -> None:
    with stand.connect() as client:
        client.send(get(b"x-request-id: " + value, b"x-client-request-id: " + value, b"traceparent: " + value))
        reply = client.rest()
        assert reply.status == 200
        assert re.fullmatch("hr_[0-9a-z]{26}", reply.id)
        check_heads([reply])


def test_headers_for_an_upstream_stay_lines_of_their_own(stand: Stand) -> None:
    """Bytes that are not ASCII go up as they came; what could end a line never gets this far."""
    model = stand.model("one", {"events": CHAT})
    value = b"\xe4\xff\xc2\x85\xe2\x80\xa8"
    body = json.dumps(chat(model)).encode()
    with stand.connect() as client:
        client.send(post(b"content-length: %d" % len(body), b"openai-beta: " + value, body=body))
        assert texts(client.rest().body) == TEXT
    assert stand.calls(model)[0].header("openai-beta") == value.decode("latin-1")


# ------------------------------------------------------------------------------------------------------------ slowness


@pytest.fixture(scope="module")
def hurried(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A gateway that waits for no slow client."""
    limits = "max_body: 1MiB\n  head_timeout: 250ms\n  body_timeout: 200ms\n  idle_timeout: 400ms"
    with Stand(tmp_path_factory.mktemp("hurried"), CONFIG.replace("max_body: 1MiB", limits)) as one:
        yield one


def drip(client: Client, start: bytes, piece: bytes, pause_s: float) -> Reply:
    """Send `piece` again and again until an answer comes."""
    client.send(start)
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        client.send(piece)
        try:
            client._socket.settimeout(pause_s)
            client._read()
            break
        except TimeoutError:
            continue
        finally:
            client._socket.settimeout(5)
    client.head()
    return client.rest()


SLOW_HEADS = {
    "a first line": (b"GET /", b"a"),
    "fields": (b"GET /healthz HTTP/1.1\r\nhost: g\r\n", b"x: y\r\n"),
    "a value": (b"GET /healthz HTTP/1.1\r\nhost: g\r\nx: ", b"y"),
}


@pytest.mark.parametrize("name", SLOW_HEADS)
def test_a_head_that_dribbles(hurried: Stand, name: str) -> None:
    """Its limit is for all of it: bytes do not buy time."""
    with hurried.connect() as client:
        check(Bad(b"", 408, "request_timeout", "again"), drip(client, *SLOW_HEADS[name], 0.05))
        assert client.ended() in (End.CLOSED, End.RESET)


@pytest.mark.parametrize("framing", [b"content-length: 500", TE])
def test_a_body_that_stops(hurried: Stand, framing: bytes) -> None:
    with hurried.connect() as client:
        client.send(post(framing, body=b"5\r\nabcde\r\n"))
        check(Bad(b"", 408, "request_timeout", "again"), client.rest())


def test_a_body_that_is_only_slow_is_served(hurried: Stand) -> None:
    model = hurried.model("one", {"events": CHAT})
    body = json.dumps(chat(model)).encode()
    with hurried.connect() as client:
        client.send(post(b"content-length: %d" % len(body)))
        step = len(body) // 5 + 1
        for position in range(0, len(body), step):
            client.send(body[position : position + step])
            assert not client._unread
            time.sleep(0.06)
        assert texts(client.rest().body) == TEXT


def test_chunks_without_data_buy_no_time_for_ever(hurried: Stand) -> None:
    """Extensions that dribble are bytes of the framing, not of the body."""
    with hurried.connect() as client:
        assert drip(client, post(TE, body=b"5;a="), b"b" * 10, 0.05).status in (408, 431)


def test_silence_between_requests_is_closed_without_a_word(hurried: Stand) -> None:
    with hurried.connect() as client:
        client.send(HEALTH)
        assert client.rest().status == 200
        assert client.ended() is End.CLOSED


def test_many_slow_clients_cost_a_good_one_nothing(hurried: Stand) -> None:
    slow = [hurried.connect() for _ in range(100)]
    try:
        for client in slow:
            client.send(b"POST /v1/chat/completions HTTP/1.1\r\nhost: g\r\n")
        check_serving(hurried)
        for client in slow:
            assert client.head().status == 408
    finally:
        for client in slow:
            client.close()


# -------------------------------------------------------------------------------------------------------------- memory


class Memory:
    """The resident memory of the gateway's process, and its peak since the last look."""

    def __init__(self, pid: int) -> None:
        self._folder = Path(f"/proc/{pid}")

    def forget(self) -> int:
        """Begin a new peak; what is resident now (bytes)."""
        (self._folder / "clear_refs").write_text("5")
        return self._field("VmRSS")

    @property
    def peak(self) -> int:
        return self._field("VmHWM")

    def _field(self, name: str) -> int:
        text = (self._folder / "status").read_text()
        return int(re.search(rf"{name}:\s+(\d+) kB", text)[1]) * 1024  # type: ignore[index]  # it is always there


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    """A gateway in a process of its own, warmed up."""
    with Stand(tmp_path_factory.mktemp("alone"), process=True) as one:
        for case in (*CODINGS.values(), *list(TABLES.values())[::5]):
            with one.connect() as client:
                ask(client, case)
        yield one


@pytest.fixture
def memory(alone: Stand) -> Memory:
    return Memory(alone.gateway._process.pid)  # type: ignore[union-attr]  # it is a process


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_costs_little(alone: Stand, memory: Memory, name: str) -> None:
    """100 MB that are taken as 1 MiB at most: bodies, pieces and a decoder's window, not what they expand to."""
    before = memory.forget()
    with alone.connect() as client:
        assert ask(client, BOMBS[name])[0].status == 413
    assert memory.peak - before < 24 * MIB


def test_all_of_them_together_leave_nothing(alone: Stand, memory: Memory) -> None:
    """Neither a peak nor a rest that grows with what is sent."""
    before = memory.forget()
    sent = 0
    for case in TABLES.values():
        with alone.connect() as client:
            ask(client, case)
            sent += len(case.sent)
    assert memory.peak - before < 32 * MIB
    settled = memory.forget()
    for case in TABLES.values():
        with alone.connect() as client:
            ask(client, case)
    assert memory.forget() - settled < 4 * MIB
    assert sent > 10 * MIB


@pytest.mark.parametrize(
    "endless", [b"GET /" + b"a" * 65536, get()[:-2] + b"x: y\r\n" * 10_000, post(TE, body=b"1;" + b"e" * 65536)]
)
def test_what_does_not_end_is_not_kept(alone: Stand, memory: Memory, endless: bytes) -> None:
    before = memory.forget()
    with alone.connect() as client:
        client.send(endless)
        for _ in range(20):
            client.send(b"x" * MIB)
        assert client.head().status in (400, 413, 431)
    assert memory.peak - before < 8 * MIB


def test_a_pipeline_that_does_not_end_is_not_kept(alone: Stand, memory: Memory) -> None:
    """While one is answered one more is kept; what comes then is dropped, and after a while its sender is reset."""
    model = alone.model("twice", {"first_delay": 20})
    before = memory.forget()
    with alone.connect() as client:
        client.send(request(chat(model)))
        until(lambda: alone.ch1.calls(model), "the upstream's call")
        for _ in range(40):
            client.send(sized(b"x" * 200_000))
        assert client.ended() in (End.CLOSED, End.RESET)
    assert memory.peak - before < 8 * MIB
    assert alone.entry(model).end == "client_gone"
