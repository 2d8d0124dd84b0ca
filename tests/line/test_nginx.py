"""nginx before the gateway, as it comes and as docs/how-to/behind-nginx.md has it: nothing is held back or hidden."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from headrace.simulator.recorded import End as UpstreamEnd
from tests.line.certified import Certified, certified
from tests.line.nginx import DEFAULT, PROGRAM, Nginx
from tests.line.paced import Paced
from tests.stand.client import Client, End
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand, until
from tests.stand.wire import CHAT, KEEPALIVE, TEXT, chat, error_in, request, texts

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="nginx is not installed")

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "behind-nginx.md"
LIMIT = 1024 * 1024


def documented(certs: Certified) -> str:
    """The page's own block; only addresses and files are the test's."""
    text = blocks()[0]
    for old, new in {
        "server 127.0.0.1:8080;": "server $GATEWAY;",
        "listen 443 ssl;": "listen 127.0.0.1:$PORT ssl;",
        "/etc/nginx/tls/cert.pem": str(certs.cert),
        "/etc/nginx/tls/key.pem": str(certs.key),
    }.items():
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def blocks() -> list[str]:
    """The page's pieces of configuration: TCP, and the `upstream` for a Unix socket."""
    return re.findall(r"```nginx\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def on_a_unix_socket(certs: Certified) -> str:
    """The page's block with its own `upstream` for a Unix socket."""
    upstream = blocks()[1]
    assert upstream.count("unix:/run/headrace/gateway.sock") == 1
    text, count = re.subn(
        r" *upstream headrace \{.*?\}\n",
        lambda _: upstream.replace("unix:/run/headrace/gateway.sock", "$GATEWAY"),
        documented(certs),
        flags=re.DOTALL,
    )
    assert count == 1 and "proxy_http_version 1.1;" in text, "the page says that a Unix socket needs it"
    return text


@dataclass(frozen=True)
class Front:
    """An nginx before the stand, and how its clients connect."""

    name: str
    nginx: Nginx
    certs: Certified | None = None

    def connect(self) -> Client:
        return self.certs.connect(self.nginx.port) if self.certs is not None else Client(self.nginx.port)


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return certified(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def paced() -> Iterator[Paced]:
    with Paced() as one:
        yield one


@pytest.fixture(scope="module")
def behind(tmp_path_factory: pytest.TempPathFactory, paced: Paced) -> Iterator[Stand]:
    folder = tmp_path_factory.mktemp("gateway")
    config = CONFIG.replace("listen: 127.0.0.1:0", f'listen: ["127.0.0.1:0", "unix:{folder}/gateway.sock"]')
    with Stand(folder, paced.configured(config)) as one:
        yield one


@pytest.fixture(scope="module", params=["default", "1.1", "documented", "unix"])
def front(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory, behind: Stand, certs: Certified
) -> Iterator[Front]:
    """nginx as it comes; the same with HTTP/1.1 upstream; the page's block; the page's block on a Unix socket."""
    kind: str = request.param
    folder = tmp_path_factory.mktemp("nginx")
    server, gateway, secured = DEFAULT, str(behind.port), None
    if kind == "1.1":
        server = DEFAULT.replace("proxy_pass", "proxy_http_version 1.1;\n            proxy_pass")
    elif kind != "default":
        server, secured = documented(certs) if kind == "documented" else on_a_unix_socket(certs), certs
        socket = behind.state.parent / "gateway.sock"
        gateway = f"127.0.0.1:{behind.port}" if kind == "documented" else f"unix:{socket}"
    with Nginx(folder, gateway, server) as nginx:
        yield Front(kind, nginx, secured)


def test_each_event_arrives_before_the_next_is_sent(front: Front, behind: Stand, paced: Paced) -> None:
    """Case B082. No clock: the upstream waits until the client has had the event."""
    model = behind.model("paced")
    with front.connect() as client:
        client.send(request(chat(model, usage=True)))
        paced.request()
        paced.head()
        for event in CHAT:
            paced.send(event)
            client.read(until=event.encode())
        paced.finish()
        reply = client.rest()
    assert reply.body.replace(KEEPALIVE, b"") == "".join(CHAT).encode()
    assert reply.end is End.FRAMED
    assert reply.header("content-type") == "text/event-stream"
    assert reply.header("cache-control") == "no-cache, no-transform"
    assert reply.header("content-length") is None
    assert behind.entry(model).end == "completed"


def test_small_events_are_not_collected(front: Front, behind: Stand, paced: Paced) -> None:
    """200 events of 50 bytes, far below every buffer of nginx, one at a time."""
    model = behind.model("paced")
    with front.connect() as client:
        client.send(request(chat(model, usage=True)))
        paced.request()
        paced.head()
        for number in range(200):
            event = f'data: {{"choices":[],"n":"{number:>20}"}}\n\n'
            paced.send(event)
            client.read(until=event.encode())
        paced.send(CHAT[-1])
        paced.finish()
        client.rest()


def test_keepalives_pass(front: Front, behind: Stand, paced: Paced) -> None:
    """Before the next event is sent at all."""
    model = behind.model("paced")
    with front.connect() as client:
        client.send(request(chat(model, usage=True)))
        paced.request()
        paced.head()
        paced.send(CHAT[0])
        client.read(until=KEEPALIVE)
        for event in CHAT[1:]:
            paced.send(event)
        paced.finish()
        assert texts(client.rest().body.replace(KEEPALIVE, b"")) == TEXT


def test_a_break_before_the_end_of_a_stream_ends_with_the_error_event(front: Front, behind: Stand) -> None:
    model = behind.model("one", {"events": CHAT, "cut": {"after_events": 2, "how": "rst"}})
    with front.connect() as client:
        client.send(request(chat(model)))
        reply = client.rest()
    assert error_in(reply.body)["code"] == "upstream_interrupted"
    assert reply.end is End.FRAMED


@pytest.mark.parametrize("framing", ["length", "chunked"])
def test_an_abort_arrives_as_an_abort(front: Front, behind: Stand, framing: str) -> None:
    """Case B086: a body that breaks has no end that a client could take for its own."""
    cut = {"text": "x" * 300_000, "framing": framing, "cut": {"at_byte": 200_000, "how": "rst"}}
    model = behind.model("one", cut)
    with front.connect() as client:
        client.send(request(chat(model, stream=False)))
        reply = client.rest()
    assert reply.status == 200
    assert reply.end in (End.CLOSED, End.RESET)
    assert reply.header("content-length") or reply.header("transfer-encoding") == "chunked"
    assert behind.entry(model).end == "interrupted"


def test_a_client_that_leaves_closes_the_upstream(front: Front, behind: Stand) -> None:
    model = behind.model("twice", {"text": "word ", "repeat": 2000, "gap": 0.02})
    with front.connect() as client:
        client.send(request(chat(model)))
        client.read(until=b"word")
    until(lambda: behind.ch1.calls(model)[0].end is UpstreamEnd.CLIENT_CLOSED, "the upstream's end")
    assert behind.entry(model).end == "client_gone"


def test_a_reply_without_streaming(front: Front, behind: Stand) -> None:
    model = behind.model("one", {"text": "word " * 50_000})
    with front.connect() as client:
        client.send(request(chat(model, stream=False)))
        reply = client.rest()
    assert json.loads(reply.body)["choices"][0]["message"]["content"].startswith("word word")
    assert reply.end is End.FRAMED
    assert reply.id == behind.entry(model).id


def test_errors_pass_with_their_words(front: Front) -> None:
    with front.connect() as client:
        client.send(request(chat("gpt-none")))
        reply = client.rest()
        assert (reply.status, error_in(reply.body)["code"]) == (404, "model_not_found")
        client.send(request(chat("gpt-none"), key="sk-none"))
        client.head()
        assert client.rest().status == 401


def test_too_large_a_body(front: Front, behind: Stand) -> None:
    """Case B105: the gateway's JSON, where nginx lets it decide; else nginx's own page."""
    model = behind.model("one", {"events": CHAT})
    with front.connect() as client:
        client.send(request(b"x" * (LIMIT + 1)))
        reply = client.rest()
        assert reply.status == 413
        if front.name in ("default", "1.1"):
            assert b"<html>" in reply.body
        else:
            assert error_in(reply.body)["code"] == "payload_too_large"
    with front.connect() as client:
        client.send(request(chat(model, pad="x" * 1_000_000)))
        assert texts(client.rest().body) == TEXT


def test_continue(front: Front, behind: Stand) -> None:
    model = behind.model("one", {"events": CHAT})
    start, _, body = request(chat(model), headers={"expect": "100-continue"}).partition(b"\r\n\r\n")
    with front.connect() as client:
        client.send(start + b"\r\n\r\n")
        client.interim(100)
        client.send(body)
        assert texts(client.rest().body) == TEXT


def test_the_clients_connection_is_kept(front: Front, behind: Stand) -> None:
    model = behind.model("one", {"events": CHAT})
    with front.connect() as client:
        for _ in range(3):
            client.send(request(chat(model)))
            client.head()
            assert texts(client.rest().body) == TEXT
    until(lambda: len(behind.entries(model)) == 3, "the third entry")


def test_connections_to_the_gateway_are_kept_where_the_page_says_so(front: Front, behind: Stand) -> None:
    model = behind.model("one", {"events": CHAT})

    def connected() -> int:
        return behind.gateway.call(lambda: len(behind.gateway.worker._server._edge.clients))  # type: ignore[union-attr]

    with front.connect() as client:
        counts = set()
        for _ in range(5):
            client.send(request(chat(model)))
            client.head()
            client.rest()
            counts.add(connected())
    if front.name in ("default", "1.1"):  # nginx as it comes opens one for each request, and closes it
        until(lambda: connected() == 0, "no connection")
    else:
        assert len(counts) == 1


def test_the_proof_can_fail(tmp_path: Path, behind: Stand, paced: Paced) -> None:
    """An nginx that is told not to listen to X-Accel-Buffering holds a small event back."""
    deaf = DEFAULT.replace("proxy_pass", "proxy_ignore_headers X-Accel-Buffering;\n            proxy_pass")
    model = behind.model("paced")
    with Nginx(tmp_path, str(behind.port), deaf) as nginx, Client(nginx.port, wait_s=0.15) as client:
        client.send(request(chat(model, usage=True)))
        paced.request()
        paced.head()
        paced.send(CHAT[0])
        with pytest.raises(TimeoutError):
            client.read(until=CHAT[0].encode())
        for event in CHAT[1:]:
            paced.send(event)
        paced.finish()
        assert texts(client.rest().body.replace(KEEPALIVE, b"")) == TEXT
