"""`headrace check`."""

from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from headrace.cli import check as check_module
from headrace.cli.app import app
from headrace.cli.check import SHOWN
from headrace.config.explain import GROUPS, lines
from tests.cli import process
from tests.config.options.whole import ENVIRON, SECRETS, load_whole

MANY = "[a, b, c, d, e, f, g]"

BAD = (
    "channels:\n  a: {base_url: https://a.example/v1, protocols: [chat], credentials: [{name: x, secret: y}]}\n  b: 1\n"
)


def check(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["check", *arguments])


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    file = tmp_path / "bad.yaml"
    file.write_text(BAD + "server: {listen: nowhere, bogus: 1}\n")
    return file


def test_a_valid_file(tmp_path: Path) -> None:
    file = process.configuration(tmp_path, "http://127.0.0.1:1/v1")
    result = check("--config", str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith(f"{file}: valid (channels: 1, models: 1, keys: 1, owners: 0)\n\n")
    assert not (tmp_path / "headrace-data").exists(), "check writes nothing"


def test_a_summary_says_what_the_file_comes_to(tmp_path: Path) -> None:
    load_whole(tmp_path)
    result = CliRunner().invoke(app, ["check", "-c", str(tmp_path / "headrace.yaml")], env=ENVIRON)
    assert result.exit_code == 0
    summary = [" ".join(line.split()) for line in result.stdout.splitlines()[2:] if line]
    assert summary == [
        "gateway",
        f"listens on 127.0.0.1:9080, [::1]:9080, unix:{tmp_path}/run/headrace.sock (TLS)",
        "workers 4",
        f"state in {tmp_path}/state",
        "database postgresql://…",
        "channels",
        "name address protocols credentials",
        "first https://a.example/v1 chat, responses main",
        "models",
        "name routes, first to last price",
        "big first (big-2027) yes",
        "keys",
        "name owner models state",
        "robot team big, gpt-* disabled",
    ]
    assert not [secret for secret in SECRETS if secret in result.output]
    assert "server.admin: has no effect in this version" in result.stderr


def test_of_very_many_keys_some_are_shown(tmp_path: Path) -> None:
    file = process.configuration(tmp_path, "http://127.0.0.1:1/v1")
    many = "".join(f"  - {{name: k{number}, secret: sk-{number:020}, models: {MANY}}}\n" for number in range(30))
    file.write_text(file.read_text().replace("keys:\n", f"keys:\n{many}"))
    shown = check("-c", str(file)).stdout.partition("\nkeys\n")[2].splitlines()
    assert len(shown) == 1 + SHOWN + 1
    assert shown[1].split(maxsplit=2)[2] == "a, b, c, d, e and 2 more  active"
    assert shown[-1].strip() == "and 11 more"


def test_an_empty_file_has_nothing_to_show(tmp_path: Path) -> None:
    file = tmp_path / "empty.yaml"
    file.touch()
    result = check("-c", str(file))
    assert result.exit_code == 0
    assert "gateway\n  listens on  127.0.0.1:8080\n" in result.stdout
    assert "channels\n" not in result.stdout


def test_warnings_do_not_make_a_file_bad(tmp_path: Path) -> None:
    file = process.configuration(tmp_path, "http://127.0.0.1:1/v1")
    file.chmod(0o644)
    result = check("-c", str(file))
    assert result.exit_code == 0
    assert result.stderr.startswith(f"warning: {file}:")
    report = msgspec.json.decode(check("-c", str(file), "--json").stdout)
    assert report["valid"]
    assert report["warnings"]
    assert report["declared"] == {"channels": 1, "models": 1, "keys": 1, "owners": 0}


def test_every_error_with_file_and_line(bad: Path) -> None:
    result = check("--config", str(bad))
    assert (result.exit_code, result.stdout) == (2, "")
    places = [line.split(": ")[0] for line in result.stderr.splitlines()]
    assert places[0] == f"{bad}:3"
    assert places[-1] == f"{bad}:4"
    assert len(places) >= 3


def test_errors_for_programs(bad: Path) -> None:
    result = check("--config", str(bad), "--json")
    assert result.exit_code == 2
    report = msgspec.json.decode(result.stdout)
    assert (report["file"], report["valid"]) == (str(bad), False)
    assert {"line", "path", "message"} == set(report["errors"][0])
    assert report["errors"][0]["line"] == 3


def test_a_missing_file(tmp_path: Path) -> None:
    result = check("--config", str(tmp_path / "none.yaml"))
    assert result.exit_code == 2
    assert "none.yaml: cannot be read" in result.stderr


def test_the_usual_file_is_in_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = check()
    assert result.exit_code == 2
    assert result.stderr.startswith("headrace.yaml: cannot be read")


def test_explain_prints_every_option() -> None:
    result = check("--explain")
    assert result.exit_code == 0
    for group in GROUPS:
        for line in lines(group):
            assert f"{line.path}: {line.form}" in result.stdout
            assert line.doc in result.stdout


def test_explain_for_programs() -> None:
    options = msgspec.json.decode(check("--explain", "--json").stdout)
    assert [option["path"] for option in options] == [line.path for group in GROUPS for line in lines(group)]


def test_explain_on_a_terminal_draws_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check_module, "is_terminal", lambda: True)
    result = check("--explain")
    assert "option" in result.stdout
    assert all(line.path in result.stdout for group in GROUPS for line in lines(group))
