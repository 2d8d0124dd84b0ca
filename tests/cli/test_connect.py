"""`headrace connect`: what it prints runs as it is printed."""

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app
from headrace.cli.snippets import PROMPT
from headrace.simulator import SimulatorThread
from tests.cli import process
from tests.cli.served import Served, made_file
from tests.sdk.node_calls import INSTALLED

QUICK = "one two three"
SDK_PROTOCOLS = ["responses", "chat", "messages", "gemini"]
TIMEOUT_S = 40.0


def connect(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["connect", *arguments])


def printed(*arguments: str) -> str:
    result = connect(*arguments)
    assert (result.exit_code, result.stderr) == (0, ""), result.stderr
    return result.stdout


def run(*command: str, folder: Path, text: str = "", **more: str) -> str:
    """What a program prints; none of the variables that SDKs would read are set."""
    known = ("OPENAI_", "ANTHROPIC_", "GEMINI_", "GOOGLE_", "HEADRACE_")
    environ = {name: value for name, value in os.environ.items() if not name.startswith(known)}
    done = subprocess.run(
        command, input=text, cwd=folder, env=environ | more, capture_output=True, text=True, timeout=TIMEOUT_S,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.sdk
@pytest.mark.parametrize("protocol", SDK_PROTOCOLS)
def test_the_program_for_python_runs_as_it_is(protocol: str, served: Served, tmp_path: Path) -> None:
    text = (
        printed("python", "--config", served.file, "--model", "quick", "--protocol", protocol)
        if protocol in ("responses", "chat")
        else printed("python", "--config", served.file, "--model", "any-name", "--protocol", protocol)
    )
    said = run(sys.executable, "-", folder=tmp_path, text=text)
    assert said == (QUICK if protocol in ("responses", "chat") else PROMPT) + "\n"


@pytest.mark.sdk
@pytest.mark.skipif(not INSTALLED.exists(), reason="the npm packages are not installed: `make setup`, with a network")
@pytest.mark.parametrize("protocol", SDK_PROTOCOLS)
def test_the_program_for_node_runs_as_it_is(protocol: str, served: Served, tmp_path: Path) -> None:
    text = printed("node", "--config", served.file, "--model", "any-name", "--protocol", protocol)
    (tmp_path / "node_modules").symlink_to(INSTALLED.parent)
    (tmp_path / "hello.mjs").write_text(text)
    assert run(str(Path(sys.executable).parent / "node"), "hello.mjs", folder=tmp_path) == f"{PROMPT}\n"


@pytest.mark.parametrize("protocol", SDK_PROTOCOLS)
def test_the_command_for_curl_runs_as_it_is(protocol: str, served: Served, tmp_path: Path) -> None:
    text = printed("curl", "--config", served.file, "--model", "any-name", "--protocol", protocol)
    body = run("sh", folder=tmp_path, text=text)
    assert "hello." in body
    assert body.count("data: ") > 1


def test_a_key_in_a_variable_is_taken_from_there(served: Served, tmp_path: Path) -> None:
    key = Path(served.key_file).read_text().strip()
    arguments = ("--url", served.root, "--key", "env:MY_KEY", "--model", "quick", "--protocol", "chat")
    for client, command in (("python", (sys.executable, "-")), ("curl", ("sh",))):
        text = printed(client, *arguments)
        assert key not in text
        assert "one" in run(*command, folder=tmp_path, text=text, MY_KEY=key)


@pytest.fixture
def made(tmp_path: Path, upstream: SimulatorThread) -> Served:
    """A file that nothing serves."""
    return made_file(tmp_path, upstream)


def test_the_first_model_that_the_client_can_ask(made: Served) -> None:
    assert "'quick'" in printed("curl", "-c", made.file).replace('"', "'")
    assert "ANTHROPIC_MODEL=said-by-claude" in printed("claude", "-c", made.file)
    assert "GEMINI_MODEL=said-by-gemini" in printed("gemini", "-c", made.file)


def test_codex(made: Served) -> None:
    settings, _, shell = printed("codex", "-c", made.file).partition("# then, in a shell\n")
    assert tomllib.loads(settings) == {
        "model": "quick",
        "model_provider": "headrace",
        "model_providers": {
            "headrace": {
                "name": "Headrace",
                "base_url": f"{made.root}/v1",
                "env_key": "HEADRACE_KEY",
                "wire_api": "responses",
            }
        },
    }
    assert shell == f'export HEADRACE_KEY="$(cat {made.key_file})"\ncodex\n'


def test_claude_code(made: Served, tmp_path: Path) -> None:
    text = printed("claude", "-c", made.file, "--model", "said-by-claude")
    told = run("sh", folder=tmp_path, text=text.replace("\nclaude\n", "\nenv\n"), ANTHROPIC_API_KEY="other")
    environ = dict(line.split("=", 1) for line in told.splitlines() if line.startswith("ANTHROPIC_"))
    assert environ == {
        "ANTHROPIC_BASE_URL": made.root,
        "ANTHROPIC_AUTH_TOKEN": Path(made.key_file).read_text().strip(),
        "ANTHROPIC_MODEL": "said-by-claude",
    }


def test_claude_code_asks_for_no_other_models_where_there_are_none(tmp_path: Path) -> None:
    process.configuration(tmp_path, "http://127.0.0.1:1/v1", listen="127.0.0.1:8080")
    file = tmp_path / "headrace.yaml"
    file.write_text(file.read_text().replace('"*":', "mine:").replace("[chat]", "[messages]"))
    text = connect("claude", "-c", str(file)).stdout
    assert [line for line in text.splitlines() if "DEFAULT" in line] == [
        f"export ANTHROPIC_DEFAULT_{tier}_MODEL=mine" for tier in ("OPUS", "SONNET", "HAIKU")
    ]


def test_gemini_cli(made: Served, tmp_path: Path) -> None:
    settings, _, shell = printed("gemini", "-c", made.file).partition("# then, in a shell\n")
    (line,) = [line for line in settings.splitlines() if line and not line.startswith("#")]
    assert json.loads(line) == {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    told = run("sh", folder=tmp_path, text=shell.replace("\ngemini\n", "\nenv\n"), GOOGLE_GENAI_USE_VERTEXAI="true")
    environ = dict(line.split("=", 1) for line in told.splitlines() if line.startswith(("GOOGLE_", "GEMINI_")))
    assert environ == {
        "GOOGLE_GEMINI_BASE_URL": made.root,
        "GEMINI_API_KEY": Path(made.key_file).read_text().strip(),
        "GEMINI_MODEL": "said-by-gemini",
    }


def test_odd_names_and_paths_are_quoted(made: Served, tmp_path: Path) -> None:
    odd = tmp_path / 'it\'s $HOME "here"'
    odd.mkdir()
    (odd / "k").write_text("sk-odd\n")
    model = "a'b\"c$d"
    arguments = ("--url", "http://127.0.0.1:1", "--key", f"file:{odd / 'k'}", "--model", model)
    shell = printed("claude", *arguments).replace("\nclaude\n", "\nenv\n")
    told = run("sh", folder=tmp_path, text=shell)
    assert "ANTHROPIC_AUTH_TOKEN=sk-odd\n" in told
    assert f"ANTHROPIC_MODEL={model}\n" in told
    compile(printed("python", *arguments), "hello.py", "exec")
    assert tomllib.loads(printed("codex", *arguments).partition("# then")[0])["model"] == model


def test_the_secrets_of_upstreams_need_not_be_there(made: Served) -> None:
    assert "OPENAI_API_KEY" not in os.environ or made.environ["OPENAI_API_KEY"] != os.environ["OPENAI_API_KEY"]
    assert printed("python", "-c", made.file)


def test_a_key_in_the_file_itself_is_not_repeated(tmp_path: Path) -> None:
    file = process.configuration(tmp_path, "http://127.0.0.1:1/v1", listen="0.0.0.0:8080")
    result = connect("python", "-c", str(file), "-m", "x")
    assert result.exit_code == 0
    assert "HEADRACE_KEY" in result.stderr
    assert process.KEY not in result.stdout
    assert 'os.environ["HEADRACE_KEY"]' in result.stdout
    assert "http://127.0.0.1:8080/v1" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["codex", "-m", "said-by-claude"], "is not offered through this endpoint. It takes: anthropic_messages"),
        (["python", "-m", "quick", "-k", "other"], "has no key 'other' that works; it has: dev"),
        (["python", "-m", "vectors"], "It takes: /v1/embeddings"),
    ],
)
def test_what_does_not_fit(arguments: list[str], message: str, made: Served) -> None:
    result = connect(*arguments, "-c", made.file)
    assert (result.exit_code, result.stdout) == (1, "")
    assert message in result.stderr


def test_only_patterns(tmp_path: Path) -> None:
    file = process.configuration(tmp_path, "http://127.0.0.1:1/v1", listen="127.0.0.1:8080")
    result = connect("python", "-c", str(file))
    assert result.exit_code == 1
    assert "has only patterns for models that speak responses or chat or messages or gemini (*)" in result.stderr
    result = connect("claude", "-c", str(file))
    assert "has no model for the key 'dev' that speaks messages" in result.stderr


@pytest.mark.parametrize(
    ("listen", "message"), [("127.0.0.1:0", "leaves the port to the system"), ("unix:gate", "a Unix socket only")]
)
def test_an_address_that_only_the_gateway_knows(listen: str, message: str, tmp_path: Path) -> None:
    file = process.configuration(tmp_path, "http://127.0.0.1:1/v1", listen=listen)
    result = connect("python", "-c", str(file), "-m", "x")
    assert result.exit_code == 1
    assert message in result.stderr


@pytest.mark.parametrize(
    "arguments",
    [[], ["vim"], ["codex", "-p", "chat"], ["python", "-p", "embeddings"], ["python", "-c", "none.yaml"]],
)
def test_bad_usage(arguments: list[str]) -> None:
    assert connect(*arguments).exit_code == 2


def test_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert connect("python").exit_code == 2
    assert "headrace init" in connect("python").stderr
    assert connect("python", "--url", "http://h", "--key", "env:K").exit_code == 1
    text = printed("python", "--url", "https://gate.example/v1/", "--key", "env:K", "--model", "m")
    assert 'base_url="https://gate.example/v1"' in text


def test_for_programs(made: Served) -> None:
    told = json.loads(printed("codex", "-c", made.file, "--json"))
    assert (told["client"], told["base_url"], told["protocol"]) == ("codex", made.root, "responses")
    assert (told["model"], told["key"]) == ("quick", f"file:{made.key_file}")
    assert told["text"] == printed("codex", "-c", made.file)
