"""Where clients connect and upstreams are: IPv4, IPv6 and Unix sockets, several at once."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from headrace.model.settings import Address
from tests.line.certified import Certified, certified
from tests.line.extended import extended
from tests.stand.client import Client
from tests.stand.gateway import GatewayThread
from tests.stand.settings import CONFIG
from tests.stand.stand import Stand
from tests.stand.upstreams import Upstreams
from tests.stand.wire import CHAT, TEXT, chat, request, texts

HEALTH = request(method="GET", path="/healthz")


def has_ipv6() -> bool:
    try:
        with socket.create_server(("::1", 0), family=socket.AF_INET6):
            return True
    except OSError:
        return False


pytestmark = pytest.mark.skipif(not has_ipv6(), reason="there is no IPv6 on this machine")


def connected(address: Address) -> Client:
    """A raw client of an address of any kind."""
    if address.path:
        sock = socket.socket(socket.AF_UNIX)
        sock.connect(address.path)
    else:
        sock = socket.create_connection((address.host, address.port), timeout=10)
    return Client(address.port, connected=sock)


@pytest.fixture(scope="module")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Certified:
    return certified(tmp_path_factory.mktemp("certs"))


@pytest.fixture(scope="module")
def six(certs: Certified) -> Iterator[tuple[Upstreams, Upstreams]]:
    """Simulators on ::1, one plain and one with TLS."""
    with Upstreams(1, host="::1") as plain, Upstreams(1, certs.server, host="::1") as secure:
        yield plain, secure


@pytest.fixture(scope="module")
def everywhere(
    tmp_path_factory: pytest.TempPathFactory, certs: Certified, six: tuple[Upstreams, Upstreams]
) -> Iterator[Stand]:
    """Listens on three addresses; the socket's path is relative to the file, and a dead server's file lies there."""
    folder = tmp_path_factory.mktemp("everywhere")
    leave_a_dead_socket(folder / "gateway.sock")
    listen = 'listen: ["127.0.0.1:0", "[::1]:0", "unix:gateway.sock"]'
    config = CONFIG.replace("listen: 127.0.0.1:0", listen)
    config = extended("six", f"http://[::1]:{six[0][0].port}/v1", config, allow_http="true")
    config = extended("tls-six", f"https://[::1]:{six[1][0].port}/v1", config, ca=f"'{certs.ca}'")
    with Stand(folder, config) as one:
        yield one


def leave_a_dead_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()


def addresses(stand: Stand) -> tuple[Address, ...]:
    assert isinstance(stand.gateway, GatewayThread)
    assert stand.gateway.worker is not None
    return stand.gateway.worker.addresses


@pytest.mark.parametrize("index", [0, 1, 2])
def test_a_stream_through_each_address(everywhere: Stand, index: int) -> None:
    address = addresses(everywhere)[index]
    assert (address.host, bool(address.path)) == (("127.0.0.1", False), ("::1", False), ("", True))[index]
    model = everywhere.model("one", {"events": CHAT, "gap": 0.01})
    with connected(address) as client:
        client.send(request(chat(model)))
        reply = client.rest()
        assert texts(reply.body) == TEXT
        client.send(HEALTH)
        assert client.head().status == 200
    assert everywhere.entry(model).id == reply.id


def test_a_large_body_and_a_client_that_leaves_on_a_unix_socket(everywhere: Stand) -> None:
    model = everywhere.model("twice", {"text": "word ", "repeat": 2000, "gap": 0.02})
    with connected(addresses(everywhere)[2]) as client:
        client.send(request(chat(model, pad="x" * 900_000)))
        client.read(until=b"word")
    assert everywhere.entry(model).end == "client_gone"


def test_an_abort_on_a_unix_socket_is_visible(everywhere: Stand) -> None:
    """Without RST, but without the framing's end as well."""
    model = everywhere.model("one", {"text": "x" * 200_000, "cut": {"at_byte": 150_000, "how": "rst"}})
    with connected(addresses(everywhere)[2]) as client:
        client.send(request(chat(model, stream=False)))
        reply = client.rest()
        assert reply.end.name in ("CLOSED", "RESET")
        assert len(reply.body) < int(reply.header("content-length") or 0)


def test_a_unix_socket_is_for_owner_and_group(everywhere: Stand) -> None:
    assert Path(addresses(everywhere)[2].path).stat().st_mode & 0o777 == 0o660


def test_a_plain_upstream_on_ipv6(everywhere: Stand, six: tuple[Upstreams, Upstreams]) -> None:
    upstream = six[0][0]
    model = everywhere.model("six")
    upstream.scenario(model, {"events": CHAT})
    assert texts(everywhere.ask(chat(model)).body) == TEXT
    assert upstream.calls(model)[0].header("host") == f"[::1]:{upstream.port}"


def test_a_tls_upstream_on_ipv6(everywhere: Stand, six: tuple[Upstreams, Upstreams]) -> None:
    """Verified against the address in its certificate."""
    upstream = six[1][0]
    model = everywhere.model("tls-six")
    upstream.scenario(model, {"events": CHAT})
    assert texts(everywhere.ask(chat(model)).body) == TEXT


def serve(folder: Path, listen: str) -> "subprocess.Popen[str]":
    folder.mkdir(exist_ok=True)
    config = folder / "headrace.yaml"
    config.write_text(f"server: {{listen: {listen}}}\nstate: {{directory: {folder / 'state'}}}\n")
    return subprocess.Popen(
        [sys.executable, "-m", "headrace", "serve", "--config", str(config)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        umask=0,
    )


def test_a_process_names_all_addresses_and_keeps_a_living_socket(tmp_path: Path) -> None:
    """A second start finds the socket in use, leaves it alone, and serves nowhere."""
    path = tmp_path / "s"
    with serve(tmp_path, f"['unix:{path}', '[::1]:0', '127.0.0.1:0']") as first:
        try:
            assert first.stdout is not None
            lines = [first.stdout.readline() for _ in range(3)]
            assert lines[0].endswith(f"listens on unix:{path}\n")
            assert "listens on http://[::1]:" in lines[1]
            assert "listens on http://127.0.0.1:" in lines[2]
            assert path.stat().st_mode & 0o777 == 0o660
            with serve(tmp_path / "second", f"['127.0.0.1:0', 'unix:{path}']") as second:
                said = second.communicate(timeout=20)[1]
                assert second.returncode == 1
                assert f"cannot listen on unix:{path}: address in use" in said
            with connected(Address(path=str(path))) as client:
                client.send(HEALTH)
                assert client.head().status == 200
        finally:
            os.kill(first.pid, signal.SIGTERM)
            assert first.stdout is not None
            first.communicate(timeout=20)
        assert first.returncode == 0
