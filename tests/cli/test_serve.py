"""`headrace serve` as a process: a request through it, and every way to end it."""

import http.client
import json
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

from typer.testing import CliRunner, Result

from headrace.cli.app import app
from headrace.simulator import SimulatorThread
from tests.cli import process
from tests.cli.process import KEY, Running


@contextmanager
def serving(folder: Path, upstream: SimulatorThread) -> Iterator[tuple[Running, str]]:
    """The running process, and its base URL."""
    process.configuration(folder, upstream.url)
    with process.running("serve", folder=folder) as gateway:
        yield gateway, gateway.line_with("listens on").split()[-1]


@contextmanager
def streaming(url: str, model: str) -> Iterator[http.client.HTTPResponse]:
    """A stream whose head has come."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    body = json.dumps({"model": model, "stream": True, "messages": [{"role": "user", "content": "hi"}]})
    try:
        connection.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {KEY}"})
        yield connection.getresponse()
    finally:
        connection.close()


def test_a_running_stream_ends_before_the_process(tmp_path: Path, upstream: SimulatorThread) -> None:
    with serving(tmp_path, upstream) as (gateway, url):
        with streaming(url, "paced") as response:
            assert response.status == 200
            first = response.readline()
            gateway.signal(signal.SIGTERM)
            assert "a second signal" in gateway.said_with("draining")
            rest = response.read()
        assert gateway.end() == 0
        assert "drained" in gateway.stderr.read()
    assert first.startswith(b"data: ")
    assert rest.endswith(b"data: [DONE]\n\n")
    told = process.run("explain", "last", folder=tmp_path)
    assert told.returncode == 0
    assert response.headers["x-request-id"] in told.stdout
    assert "completed" in told.stdout


def test_a_second_signal_ends_it_at_once(tmp_path: Path, upstream: SimulatorThread) -> None:
    with serving(tmp_path, upstream) as (gateway, url), streaming(url, "hold") as response:
        assert response.readline().startswith(b"data: ")
        gateway.signal(signal.SIGINT)
        gateway.said_with("draining")
        gateway.signal(signal.SIGTERM)
        assert gateway.end() == 1  # long before the drain would be over: that takes ten minutes
        assert "ended at once" in gateway.stderr.read()


def test_an_address_in_use(tmp_path: Path, upstream: SimulatorThread) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        result = serve(process.configuration(tmp_path, upstream.url, listen=listen))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"cannot listen on {listen}: address in use; ")


def test_a_journal_that_cannot_be_written(tmp_path: Path, upstream: SimulatorThread) -> None:
    (tmp_path / "headrace-data").mkdir()
    (tmp_path / "headrace-data" / "journal").touch()
    process.configuration(tmp_path, upstream.url)
    result = process.run("serve", folder=tmp_path)
    assert (result.returncode, result.stdout) == (1, "")
    assert "\ncannot write the journal in " in result.stderr


def test_a_bad_file(tmp_path: Path) -> None:
    file = tmp_path / "headrace.yaml"
    file.write_text("server: {listen: [}\n")
    result = serve(file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{file}:1: ")


def serve(file: Path) -> Result:
    """A start that fails in this process: before it becomes the supervisor."""
    return CliRunner().invoke(app, ["serve", "--config", str(file)])


def test_a_unix_socket(tmp_path: Path, upstream: SimulatorThread) -> None:
    process.configuration(tmp_path, upstream.url, listen="unix:gate")
    with process.running("serve", folder=tmp_path) as gateway:
        assert gateway.line_with("listens on").endswith(f"unix:{tmp_path}/gate")
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(tmp_path / "gate"))
            client.sendall(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n")
            assert client.recv(100).startswith(b"HTTP/1.1 200 ")
        gateway.signal(signal.SIGTERM)
        assert gateway.end() == 0
