"""`headrace init`."""

import json
import stat
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app
from headrace.cli.init import KEY_PREFIX
from headrace.cli.providers import PROVIDERS, Provider
from headrace.config.draft import Draft, load

OPENAI = {"OPENAI_API_KEY": "sk-real-openai"}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, and an environment without any provider's variables."""
    monkeypatch.chdir(tmp_path)
    for provider in PROVIDERS:
        for name in (*provider.variables, provider.base_variable):
            monkeypatch.delenv(name or "UNUSED", raising=False)
    return tmp_path


def init(*arguments: str, **environ: str) -> Result:
    return CliRunner().invoke(app, ["init", *arguments], env=environ)


def loaded(**environ: str) -> Draft:
    return load(Path("headrace.yaml"), environ)


def test_a_file_that_can_be_served(folder: Path) -> None:
    environ = OPENAI | {"ANTHROPIC_API_KEY": "sk-ant", "GOOGLE_API_KEY": "goog"}
    result = init(**environ)
    assert (result.exit_code, result.stderr) == (0, "")
    draft = loaded(**environ)
    assert draft.warnings == ()
    assert {channel.name: channel.credentials[0].secret for channel in draft.channels} == {
        "openai": "sk-real-openai",
        "anthropic": "sk-ant",
        "gemini": "goog",
    }
    assert not any(channel.allow_http for channel in draft.channels)
    models = {model.name: [route.channel for route in model.routes] for model in draft.models}
    assert models["gpt-*"] == ["openai"]
    assert models["claude-*"] == ["anthropic"]
    assert models["gemini-*"] == ["gemini"]
    assert "*" not in models
    assert any(not model.is_pattern for model in draft.models)


def test_no_secret_stands_in_the_file_or_on_the_screen(folder: Path) -> None:
    result = init(**OPENAI)
    key = (folder / "headrace.key").read_text().strip()
    assert key.startswith(KEY_PREFIX)
    assert len(key) >= len(KEY_PREFIX) + 43  # 256 bits in base64
    for text in (result.stdout, (folder / "headrace.yaml").read_text()):
        assert key not in text
        assert "sk-real-openai" not in text
    assert loaded(**OPENAI).key_secrets == (key,)


def test_only_the_owner_may_read_them(folder: Path) -> None:
    init(**OPENAI)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {"headrace.yaml": 0o600, "headrace.key": 0o600}


def test_it_says_what_to_do_next() -> None:
    result = init(**OPENAI)
    steps = [line.split("  ") for line in result.stdout.partition("\nnext\n")[2].splitlines()]
    assert [step[1] for step in steps] == [
        "headrace serve",
        "headrace connect python",
        'headrace try gpt-5.6-sol "Hello"',
    ]
    assert "OPENAI_API_KEY" in steps[0][-1]


def test_another_file_is_named_in_the_next_steps(folder: Path) -> None:
    result = init("my gateway.yaml", **OPENAI)
    assert "headrace serve --config 'my gateway.yaml'" in result.stdout
    assert (folder / "my gateway.key").exists()


def test_another_address_gets_what_nothing_else_fits() -> None:
    environ = OPENAI | {"OPENAI_BASE_URL": "http://127.0.0.1:9090/v1/", "ANTHROPIC_API_KEY": "sk-ant"}
    result = init(**environ)
    assert "headrace connect python --model MODEL" not in result.stdout  # Anthropic's are known by name
    draft = loaded(**environ)
    openai = draft.channels[0]
    assert (openai.base_url.host, openai.base_url.port, openai.base_url.path) == ("127.0.0.1", 9090, "/v1")
    assert openai.allow_http
    models = {model.name: [route.channel for route in model.routes] for model in draft.models}
    assert models["*"] == ["openai"]
    assert models["claude-*"] == ["anthropic"]
    assert "gpt-*" not in models


@pytest.mark.parametrize(
    ("variable", "key", "written", "path"),
    [
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "https://proxy.example", "/v1"),
        ("ANTHROPIC_BASE_URL", "ANTHROPIC_API_KEY", "https://proxy.example/v1", "/v1"),
        ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", "https://proxy.example/g/", "/g/v1beta"),
        ("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_KEY", "https://proxy.example/v1beta", "/v1beta"),
        ("OPENAI_BASE_URL", "OPENAI_API_KEY", "https://proxy.example/openai", "/openai"),
    ],
)
def test_base_urls_are_read_as_their_sdk_does(variable: str, key: str, written: str, path: str) -> None:
    environ = {key: "k" * 20, variable: written}
    assert init(**environ).exit_code == 0
    assert loaded(**environ).channels[0].base_url.path == path


def test_without_a_provider_it_says_what_it_looks_for(folder: Path) -> None:
    result = init(OPENAI_API_KEY=" ")
    assert (result.exit_code, result.stdout) == (1, "")
    for provider in PROVIDERS:
        assert all(name in result.stderr for name in provider.variables)
    assert "headrace init --simulate" in result.stderr
    assert list(folder.iterdir()) == []


def test_before_the_simulator_it_needs_nothing() -> None:
    result = init("--simulate", **OPENAI)
    assert result.exit_code == 0
    assert "  headrace simulate " in result.stdout
    (channel,) = loaded().channels
    assert channel.name == "simulator"
    assert {"chat", "responses", "messages", "gemini"} <= {protocol.value for protocol in channel.protocols}


def test_what_is_there_stays_there(folder: Path) -> None:
    (folder / "headrace.yaml").write_text("mine")
    result = init(**OPENAI)
    assert result.exit_code == 1
    assert "--force" in result.stderr
    assert {path.name: path.read_text() for path in folder.iterdir()} == {"headrace.yaml": "mine"}


def test_force_writes_over_the_file_and_keeps_the_key(folder: Path) -> None:
    init(**OPENAI)
    key = (folder / "headrace.key").read_text()
    (folder / "headrace.yaml").write_text("mine")
    (folder / "headrace.yaml").chmod(0o644)
    result = init("--force", **OPENAI)
    assert result.exit_code == 0
    assert "as it was" in result.stdout
    assert (folder / "headrace.key").read_text() == key
    assert stat.S_IMODE((folder / "headrace.yaml").stat().st_mode) == 0o600
    assert loaded(**OPENAI).channels


@pytest.mark.parametrize(
    ("arguments", "environ", "message"),
    [
        (["--listen", "8080"], {}, "server.listen"),
        ([], {"OPENAI_BASE_URL": "ftp://x"}, "channels.openai.base_url"),
        ([], {"OPENAI_BASE_URL": "https://x/v1?a=b"}, "look at OPENAI_BASE_URL"),
        ([], {"OPENAI_BASE_URL": 'https://x/"\n  y: z'}, "channels.openai.base_url"),
        ([], {"OPENAI_BASE_URL": "http://localhost:8080/v1"}, "go round in a circle"),
        (["--simulate", "--listen", "127.0.0.1:9090"], {}, "go round in a circle"),
    ],
)
def test_what_the_file_could_not_hold(
    arguments: list[str], environ: dict[str, str], message: str, folder: Path
) -> None:
    result = init(*arguments, **OPENAI, **environ)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr
    assert "nothing was written" in result.stderr
    assert list(folder.iterdir()) == []


def test_a_folder_that_is_not_there() -> None:
    result = init("none/headrace.yaml", **OPENAI)
    assert result.exit_code == 1
    assert result.stderr.startswith("cannot write none/headrace.yaml")


def test_for_programs(folder: Path) -> None:
    made = json.loads(init("--json", **OPENAI).stdout)
    assert (made["file"], made["key"], made["key_file"]) == ("headrace.yaml", "dev", "headrace.key")
    assert made["channels"] == ["openai"]
    assert "gpt-*" in made["models"]


@pytest.mark.parametrize("provider", PROVIDERS, ids=lambda provider: provider.channel)
def test_every_provider_makes_a_valid_file(provider: Provider) -> None:
    environ = {provider.variables[0]: "k" * 20}
    assert init(**environ).exit_code == 0
    assert loaded(**environ).warnings == ()
