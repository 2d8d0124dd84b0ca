"""TLS towards clients: the same stream, event by event, with its aborts; and what is no TLS is turned away."""

import json
import re
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import openai
import pytest

from headrace.simulator.recorded import End as UpstreamEnd
from tests.line.body import sha256
from tests.line.certified import Certified, certified
from tests.line.paced import Paced
from tests.stand.client import End
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand, until
from tests.stand.wire import C3, CHAT, DONE, KEY, TEXT, chat, chunk, error_in, request, texts

HEALTH = request(method="GET", path="/healthz")


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return certified(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def paced() -> Iterator[Paced]:
    with Paced() as one:
        yield one


@pytest.fixture(scope="module")
def secure(tmp_path_factory: pytest.TempPathFactory, certs: Certified, paced: Paced) -> Iterator[Stand]:
    limits = "max_body: 1MiB\n  head_timeout: 300ms\n  idle_timeout: 2s"
    config = certs.configured(paced.configured(CONFIG)).replace("max_body: 1MiB", limits)
    config = re.sub(r"write_timeout: \w+", "write_timeout: 400ms", config)
    with Stand(tmp_path_factory.mktemp("secure"), config) as one:
        yield one


def test_each_event_arrives_before_the_next_is_sent(secure: Stand, certs: Certified, paced: Paced) -> None:
    model = secure.model("paced")
    with certs.connect(secure.port) as client:
        client.send(request(chat(model, usage=True)))
        paced.request()
        paced.head()
        for event in CHAT:
            paced.send(event)
            reply = client.read(until=event.encode())
            assert reply.pieces[-1].data == event.encode()
        paced.finish()
        assert client.rest().end is End.FRAMED
        client.send(HEALTH)
        assert client.head().status == 200, "the connection is kept"


@pytest.mark.sdk
def test_the_official_sdk_with_a_private_authority(secure: Stand, certs: Certified, paced: Paced) -> None:
    """Each chunk is in the caller's hands before the next is sent."""
    model = secure.model("paced")
    had = threading.Semaphore(0)

    def play() -> None:
        paced.request()
        paced.head()
        for event in CHAT:
            paced.send(event)
            if event != DONE:
                assert had.acquire(timeout=10), "the chunk did not arrive"
        paced.finish()

    player = threading.Thread(target=play)
    player.start()
    http = openai.DefaultHttpxClient(verify=certs.clients)
    said = ""
    with openai.OpenAI(api_key=KEY, base_url=f"https://localhost:{secure.port}/v1", http_client=http) as sdk:
        for one in sdk.chat.completions.create(
            model=model,
            messages=[{"role": "user", "content": "hi"}],
            stream=True,
            stream_options={"include_usage": True},
        ):
            said += "".join(choice.delta.content or "" for choice in one.choices)
            had.release()
    player.join()
    assert said == TEXT


@pytest.mark.sdk
def test_the_sdk_does_not_take_another_authority(secure: Stand) -> None:
    http = openai.DefaultHttpxClient(verify=ssl.create_default_context())
    url = f"https://localhost:{secure.port}/v1"
    with (
        openai.OpenAI(api_key=KEY, base_url=url, http_client=http, max_retries=0) as sdk,
        pytest.raises(openai.APIConnectionError),
    ):
        sdk.models.list()


CUT = {"text": "x" * 200_000, "cut": {"at_byte": 150_000, "how": "rst"}}


def test_an_abort_is_visible(secure: Stand, certs: Certified) -> None:
    """A body without events that breaks: no end of the framing, and no goodbye of TLS either."""
    model = secure.model("one", CUT)
    with certs.connect(secure.port) as client:
        client.send(request(chat(model, stream=False)))
        assert client.rest().end is End.RESET
    assert secure.entry(model).end == "interrupted"


@pytest.mark.parametrize("version", ["1.1", "1.0"])
def test_an_abort_is_visible_whatever_the_framing(secure: Stand, certs: Certified, version: str) -> None:
    model = secure.model("one", CUT | {"framing": "chunked"})
    with certs.connect(secure.port) as client:
        client.send(request(chat(model, stream=False), version=version))
        reply = client.rest()
        assert reply.header("transfer-encoding") == (None if version == "1.0" else "chunked")
        assert reply.end is End.RESET


@pytest.mark.sdk
def test_an_abort_raises_in_the_sdk(secure: Stand, certs: Certified) -> None:
    model = secure.model("one", CUT | {"framing": "chunked"})
    http = openai.DefaultHttpxClient(verify=certs.clients)
    url = f"https://localhost:{secure.port}/v1"
    with (
        openai.OpenAI(api_key=KEY, base_url=url, http_client=http, max_retries=0) as sdk,
        pytest.raises(openai.APIConnectionError),
    ):
        sdk.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])


def test_a_good_end_for_http_1_0_says_goodbye(secure: Stand, certs: Certified) -> None:
    """Close-delimited, so close_notify is all that tells an end from a cut."""
    model = secure.model("one", {"events": CHAT})
    with certs.connect(secure.port) as client:
        client.send(request(chat(model), version="1.0"))
        reply = client.rest()
        assert (texts(reply.body), reply.end) == (TEXT, End.CLOSED)


@pytest.mark.parametrize("how", ["goodbye", "close", "reset"])
@pytest.mark.parametrize("begun", [True, False])
def test_a_client_that_leaves_closes_the_upstream(secure: Stand, certs: Certified, how: str, begun: bool) -> None:
    """By close_notify, by FIN alone, and by RST; Case B058."""
    model = secure.model("twice", {"text": "word ", "repeat": 2000, "gap": 0.02} if begun else {"head_delay": 30})
    with certs.connect(secure.port) as client:
        client.send(request(chat(model)))
        if begun:
            client.read(until=b"word")
        else:
            until(lambda: secure.ch1.calls(model), "the upstream's call")
        sock = client._socket
        assert isinstance(sock, ssl.SSLSocket)
        if how == "goodbye":
            sock.setblocking(False)
            with suppress(ssl.SSLError):  # the gateway's own goodbye may not have come yet
                sock.unwrap()
        getattr(client, "reset" if how == "reset" else "close")()
    assert secure.calls(model)[0].end is UpstreamEnd.CLIENT_CLOSED
    assert secure.entry(model).end == "client_gone"


def test_a_slow_client_gets_everything(secure: Stand, certs: Certified) -> None:
    """Back-pressure through the TLS transport: the upstream is made to wait, and nothing is lost."""
    events = [{"text": chunk({"content": "x" * 8000}), "repeat": 600}, C3, DONE]
    model = secure.model("one", {"events": events})
    with certs.connect(secure.port) as client:
        client.send(request(chat(model)))
        client.head()
        client.read_for(0.1)
        reply = client.rest()
    assert reply.end is End.FRAMED
    assert sha256(reply.body) == secure.calls(model)[0].sent_sha256


def test_a_client_that_does_not_read_is_cut(secure: Stand, certs: Certified) -> None:
    model = secure.model("one", {"events": [{"text": chunk({"content": "x" * 8000}), "repeat": 4000}, C3, DONE]})
    with certs.connect(secure.port) as client:
        client.send(request(chat(model)))
        entry = secure.entry(model)
        assert (entry.end, entry.reason) == ("client_gone", "write_timeout")
    assert secure.calls(model)[0].events_written < 4000


def test_a_large_body(secure: Stand, certs: Certified) -> None:
    model = secure.model("one", {"events": CHAT})
    body = json.dumps(chat(model, usage=True, pad="x" * 900_000)).encode()
    with certs.connect(secure.port) as client:
        client.send(request(body))
        assert texts(client.rest().body) == TEXT
    assert secure.calls(model)[0].body_length == len(body)


def test_a_refusal_in_the_middle_of_a_body_can_be_read(secure: Stand, certs: Certified) -> None:
    """Over TLS no half can be closed; the reply must not be lost to a reset all the same."""
    with certs.connect(secure.port) as client:
        client.send(request(b"x" * 1_060_000))  # more than is taken, less than is read and dropped before a reset
        reply = client.rest()
        assert (reply.status, error_in(reply.body)["code"]) == (413, "payload_too_large")
        assert reply.header("connection") == "close"


NO_TLS = {
    "plain HTTP": HEALTH,
    "a plain POST": request(chat("one-x")),
    "an HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "noise": bytes(range(256)) * 4,
    "a broken ClientHello": b"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03",
    "a record that is too long": b"\x16\x03\x01\xff\xff" + b"x" * 100,
    "an alert": b"\x15\x03\x03\x00\x02\x02\x28",
}


@pytest.mark.parametrize("name", NO_TLS)
def test_what_is_no_tls_is_closed_without_an_answer(secure: Stand, certs: Certified, name: str) -> None:
    """No byte of HTTP, at most an alert of TLS."""
    with socket.create_connection(("127.0.0.1", secure.port), timeout=10) as plain:
        plain.sendall(NO_TLS[name])
        heard = b""
        with suppress(ConnectionResetError):
            while data := plain.recv(4096):
                heard += data
        assert heard == b"" or (heard[0] == 0x15 and len(heard) < 10), heard
    with certs.connect(secure.port) as client:
        client.send(HEALTH)
        assert client.head().status == 200


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01"])
def test_a_handshake_that_does_not_come_is_not_waited_for(secure: Stand, sent: bytes) -> None:
    """It has as long as a head has."""
    with socket.create_connection(("127.0.0.1", secure.port), timeout=10) as plain:
        plain.sendall(sent)
        with suppress(ConnectionResetError):
            assert plain.recv(4096) == b""


def test_a_head_that_does_not_come(secure: Stand, certs: Certified) -> None:
    with certs.connect(secure.port) as client:
        client.send(HEALTH[:20])
        assert client.rest().status == 408


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_versions(secure: Stand, certs: Certified, version: ssl.TLSVersion) -> None:
    context = ssl.create_default_context(cafile=str(certs.ca))
    context.minimum_version = context.maximum_version = version
    context.set_alpn_protocols(["h2", "http/1.1"])
    with (
        socket.create_connection(("127.0.0.1", secure.port), timeout=10) as plain,
        context.wrap_socket(plain, server_hostname="127.0.0.1") as tls,
    ):
        assert tls.version() == version.name.replace("v1_", "v1.")
        assert tls.selected_alpn_protocol() == "http/1.1"
        tls.sendall(HEALTH)
        assert tls.recv(4096).startswith(b"HTTP/1.1 200 ")


def test_older_versions_are_refused(secure: Stand, certs: Certified) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(str(certs.ca))
    context.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.warns(DeprecationWarning):
        context.minimum_version = ssl.TLSVersion.TLSv1
        context.maximum_version = ssl.TLSVersion.TLSv1_1
    with (
        socket.create_connection(("127.0.0.1", secure.port), timeout=10) as plain,
        pytest.raises((ssl.SSLError, ConnectionResetError)),
    ):
        context.wrap_socket(plain, server_hostname="127.0.0.1")


def test_a_process_with_tls_says_so_and_drains(tmp_path: Path, certs: Certified) -> None:
    with Stand(tmp_path, certs.configured(), process=True) as stand:
        model = stand.model("one", {"events": CHAT, "gap": 0.05})
        with certs.connect(stand.port) as client:
            client.send(request(chat(model)))
            client.head()
            stand.gateway.signal()  # type: ignore[union-attr]  # it is a process
            assert texts(client.rest().body) == TEXT
        assert stand.gateway.exit_code() == 0  # type: ignore[union-attr]
