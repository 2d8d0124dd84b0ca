"""`headrace explain`."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from headrace.cli.app import app
from headrace.journal.record import head
from headrace.model.entry import Checkpoint, Entry, Opened
from tests.cli import process
from tests.cli.entries import PLAIN
from tests.journal.entries import SEED, lay, place

NEWER = msgspec.structs.replace(PLAIN, id="hr_0002", at=PLAIN.at + 1)
OPENED = Opened(id="hr_0003", at=PLAIN.at, protocol="chat", key="dev")


def explain(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["explain", *arguments])


@pytest.fixture
def state(journal: Callable[..., Path]) -> str:
    return str(journal(PLAIN, NEWER, OPENED))


def test_an_entry_by_its_id(state: str) -> None:
    result = explain("hr_0001", "--state", state)
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("exchange hr_0001\n  asked       gpt through chat.completions, ")
    assert "\nend\n  end             completed\n" in result.stdout


def test_the_newest_entry(state: str) -> None:
    assert explain("last", "--state", state).stdout.startswith("exchange hr_0002\n")


def test_an_entry_for_programs(state: str) -> None:
    result = explain("hr_0001", "--state", state, "--json")
    assert result.exit_code == 0
    assert msgspec.json.decode(result.stdout, type=Entry) == PLAIN


def test_the_state_directory_of_a_configuration(state: str, tmp_path: Path) -> None:
    file = process.configuration(tmp_path, "http://127.0.0.1:1/v1")
    file.write_text(file.read_text() + "state: {directory: state}\n")
    file.chmod(0o644)
    result = explain("last", "--config", str(file))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("exchange hr_0002\n")


def test_an_unknown_id(state: str) -> None:
    result = explain("hr_9", "--state", state)
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == f"no exchange hr_9 in {state}; `headrace explain last` shows the newest\n"


def test_an_exchange_that_is_still_open(journal: Callable[..., Path]) -> None:
    early = Checkpoint(id="hr_0003", duration_s=10.0)
    late = Checkpoint(
        id="hr_0003", duration_s=20.0, status=200, attempts=PLAIN.attempts, wire=PLAIN.wire, usage=PLAIN.usage,
        usage_origin="upstream_partial",
    )  # fmt: skip
    state = str(journal(OPENED, early, late))
    result = explain("hr_0003", "--state", state)
    assert (result.exit_code, result.stderr) == (0, "")
    assert "\n  ended       not yet" in result.stdout
    assert "\n  so far      at the last checkpoint, after 20.000 s\n" in result.stdout
    assert "\nattempts\n" in result.stdout
    told = msgspec.json.decode(explain("hr_0003", "--state", state, "--json").stdout)
    assert (told["type"], told["opened"]["id"], told["checkpoint"]["duration_s"]) == ("open", "hr_0003", 20.0)


def test_an_exchange_that_has_only_begun(state: str) -> None:
    result = explain("hr_0003", "--state", state)
    assert result.exit_code == 0
    assert "no checkpoint was written" in result.stdout


def test_the_secrets_of_a_configuration_need_not_be_there(state: str, tmp_path: Path) -> None:
    file = process.configuration(tmp_path, "http://127.0.0.1:1/v1")
    file.write_text(file.read_text().replace("sk-up", "env:HEADRACE_TEST_UNSET") + "state: {directory: state}\n")
    assert explain("last", "--config", str(file)).stdout.startswith("exchange hr_0002\n")


def test_no_exchange_at_all(journal: Callable[..., Path]) -> None:
    result = explain("last", "--state", str(journal()))
    assert result.exit_code == 1
    assert result.stderr.startswith("no exchange has ended yet")


def test_no_journal(tmp_path: Path) -> None:
    result = explain("last", "--state", str(tmp_path))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"there is no journal in {tmp_path}")


def test_a_journal_of_another_version(tmp_path: Path) -> None:
    lay(place(tmp_path), 1, head(SEED, 3))
    result = explain("last", "--state", str(tmp_path))
    assert result.exit_code == 1
    assert result.stderr.startswith(f"cannot read the journal in {tmp_path}: ")
    assert "it has format 3, and this version of headrace reads 2" in result.stderr


@pytest.mark.parametrize("arguments", [[], ["x", "--state", "a", "--config", "b"], ["x", "--bogus"]])
def test_bad_usage(arguments: list[str]) -> None:
    assert explain(*arguments).exit_code == 2


def test_a_bad_configuration(tmp_path: Path) -> None:
    assert explain("x", "--config", str(tmp_path / "none.yaml")).exit_code == 2
