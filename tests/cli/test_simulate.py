"""`headrace simulate` as a process."""

import signal
import socket
import urllib.request
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from headrace.cli.app import app
from tests.cli import process


def test_it_answers_until_it_is_told_to_stop(tmp_path: Path) -> None:
    (tmp_path / "own.yaml").write_text("scenarios: {mine: {text: hello}}\n")
    with process.running("simulate", "--listen", "127.0.0.1:0", "--script", "own.yaml", folder=tmp_path) as simulator:
        url = simulator.line_with("simulator listens on http://127.0.0.1:").split()[-1]
        body = b'{"model":"mine","messages":[{"role":"user","content":"hi"}]}'
        with urllib.request.urlopen(f"{url}/chat/completions", body, 10) as response:
            answer = msgspec.json.decode(response.read())
        assert answer["choices"][0]["message"]["content"] == "hello"
        simulator.signal(signal.SIGTERM)
        assert simulator.end() == 0


def test_an_address_in_use() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        listen = f"127.0.0.1:{taken.getsockname()[1]}"
        result = CliRunner().invoke(app, ["simulate", "-l", listen])
    assert result.exit_code == 1
    assert result.stderr.startswith(f"cannot listen on {listen}: address in use; ")
    assert "--listen" in result.stderr


@pytest.mark.parametrize("listen", ["a:b", "1:2:99999", "127.0.0.1:x"])
def test_a_bad_address_is_bad_usage(listen: str) -> None:
    result = CliRunner().invoke(app, ["simulate", "--listen", listen])
    assert result.exit_code == 2
    assert "--listen" in result.stderr


@pytest.mark.parametrize(
    ("text", "message"), [("scenarios: {a: {bogus: 1}}", "scenarios.a.bogus: unknown field"), (None, "cannot be read")]
)
def test_a_bad_script(text: str | None, message: str, tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    if text is not None:
        script.write_text(text)
    result = CliRunner().invoke(app, ["simulate", "--listen", ":0", "--script", str(script)])
    assert result.exit_code == 2
    assert result.stderr.startswith(f"{script}: {message}")
