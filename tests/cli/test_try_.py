"""`headrace try` against a running gateway."""

import http.server
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app
from headrace.simulator import SimulatorThread
from tests.cli import process
from tests.cli.served import Served, free_port

QUICK = "one two three"


def attempt(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["try", *arguments])


def test_the_text_and_then_what_became_of_it(served: Served) -> None:
    result = attempt("quick", "hi", "--config", served.file)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"{QUICK}\n\nexchange hr_")
    assert "\n  asked       quick through responses, streaming; key dev\n" in result.stdout
    assert result.stdout.endswith("\nwhat came here\n  equal  byte for byte what the upstream sent\n")


@pytest.mark.parametrize(
    ("model", "protocol"),
    [
        ("quick", "responses"),
        ("said-by-claude", "messages"),
        ("said-by-gemini", "gemini"),
        ("behind-a-pattern", "responses"),
    ],
)
def test_the_protocol_is_what_the_model_offers_first(model: str, protocol: str, served: Served) -> None:
    told = json.loads(attempt(model, "hi there", "--config", served.file, "--json").stdout)
    assert (told["protocol"], told["status"], told["error"]) == (protocol, 200, "")
    assert told["text"] == (QUICK if model == "quick" else "hi there")
    assert (told["capture"], told["entry"]["id"], told["entry"]["protocol"]) == ("equal", told["id"], protocol)


@pytest.mark.parametrize("protocol", ["responses", "chat", "messages", "gemini"])
def test_the_protocol_can_be_chosen(protocol: str, served: Served) -> None:
    told = json.loads(attempt("any", "水車 says\thi", "-c", served.file, "-p", protocol, "--json").stdout)
    assert (told["protocol"], told["text"], told["capture"]) == (protocol, "水車 says\thi", "equal")


def test_a_name_behind_a_pattern_that_takes_one_format_only(tmp_path: Path, upstream: SimulatorThread) -> None:
    file = process.configuration(tmp_path, upstream.url, listen=f"127.0.0.1:{free_port()}")
    with process.running("serve", folder=tmp_path) as gateway:
        gateway.line_with("listens on")
        told = json.loads(attempt("quick", "hi", "-c", str(file), "--json").stdout)
    assert (told["protocol"], told["text"]) == ("chat", QUICK)


def test_a_stream_that_breaks_off_is_1(served: Served) -> None:
    result = attempt("sim-cut", "hi", "-c", served.file, "-p", "chat")
    assert result.exit_code == 1
    assert "broke off" in result.stderr
    assert "\n  ended       interrupted: upstream was cut (upstream_interrupted), after" in result.stdout
    assert "of the gateway's own between\n" in result.stdout


def test_an_upstream_that_fails_is_1(served: Served) -> None:
    result = attempt("sim-503", "hi", "-c", served.file)
    assert result.exit_code == 1
    assert result.stderr.startswith("502 upstream_error: ")
    assert "\n  client saw  status 502 with the error upstream_error\n" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("vectors", "hi"), "is not offered in a format that streams text"),
        (("quick", "hi", "-p", "gemini"), "is not offered through this endpoint"),
        (("quick", "hi", "-k", "env:HEADRACE_TEST_UNSET"), "HEADRACE_TEST_UNSET, which is not set here"),
        (("quick", "hi", "-k", "file:none.key"), "cannot read the key in "),
        (("quick", "hi", "-k", "other"), "no key 'other' that works; it has: dev"),
        (("quick", "hi", "-u", "ftp://x"), "is no base URL"),
    ],
)
def test_what_cannot_be_asked(arguments: tuple[str, ...], message: str, served: Served) -> None:
    result = attempt(*arguments, "-c", served.file)
    assert result.exit_code == 1
    assert message in result.stderr


def test_a_wrong_key(served: Served, tmp_path: Path) -> None:
    (tmp_path / "k").write_text("sk-hr-wrong-but-long-enough\n")
    result = attempt("quick", "hi", "-c", served.file, "--key", f"file:{tmp_path / 'k'}")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("401 invalid_api_key: ")


def test_a_model_that_is_mistyped(tmp_path: Path, upstream: SimulatorThread) -> None:
    file = process.configuration(tmp_path, upstream.url, listen=f"127.0.0.1:{free_port()}")
    file.write_text(file.read_text().replace('"*":', "quick:"))
    with process.running("serve", folder=tmp_path) as gateway:
        gateway.line_with("listens on")
        result = attempt("quik", "hi", "-c", str(file))
    assert result.exit_code == 1
    assert (
        result.stderr
        == "404 model_not_found: There is no model 'quik'. Choose one from GET /v1/models. Did you mean quick?\n"
    )


def test_no_gateway(tmp_path: Path) -> None:
    file = process.configuration(tmp_path, "http://127.0.0.1:1/v1", listen=f"127.0.0.1:{free_port()}")
    result = attempt("x", "hi", "--config", str(file))
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith("no gateway listens at http://127.0.0.1:")
    assert "headrace serve" in result.stderr


def test_without_a_file_the_entry_is_elsewhere(served: Served, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = attempt("quick", "hi", "--url", f"{served.root}/v1", "--key", f"file:{served.key_file}")
    assert (result.exit_code, result.stdout) == (0, f"{QUICK}\n\n")
    assert result.stderr.startswith("its entry is where the gateway runs: headrace explain hr_")


def test_through_a_unix_socket(tmp_path: Path, upstream: SimulatorThread) -> None:
    file = process.configuration(tmp_path, upstream.url, listen="unix:gate")
    with process.running("serve", folder=tmp_path) as gateway:
        gateway.line_with("listens on")
        told = json.loads(attempt("quick", "hi", "-c", str(file), "--json").stdout)
    assert (told["text"], told["capture"]) == (QUICK, "equal")


@contextmanager
def other_server(status: int, body: bytes, length: int | None = None) -> Iterator[str]:
    """Something that is no gateway: it answers everything alike. Its base URL."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body) if length is None else length))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET  # noqa: N815 - the name is the library's

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("status", "body", "length", "message"),
    [
        (200, b"<html>", None, "is this a Headrace gateway?"),
        (503, b"\x1b[2Jbusy", None, "503: \\x1b[2Jbusy"),
        (500, b"", None, "500: no message"),
        (200, b"{", 10, "broke off"),
    ],
)
def test_what_is_no_gateway(status: int, body: bytes, length: int | None, message: str, served: Served) -> None:
    with other_server(status, body, length) as url:
        result = attempt("quick", "hi", "--url", url, "--key", f"file:{served.key_file}", "-c", served.file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


@pytest.mark.parametrize("arguments", [[], ["m"], ["m", "t", "-p", "embeddings"], ["m", "t", "-c", "none.yaml"]])
def test_bad_usage(arguments: list[str]) -> None:
    assert attempt(*arguments).exit_code == 2
