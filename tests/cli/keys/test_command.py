"""`headrace keys`, beside a gateway and without one."""

import http.client
import json
import sqlite3
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from typer.testing import CliRunner

from headrace.cli.app import app
from headrace.model.key import digest_key, key_digest
from headrace.simulator import SimulatorThread
from headrace.state.database import FILE
from tests.cli import process
from tests.cli.declared import Beside
from tests.stand.postgres import Postgres
from tests.stand.waiting import until

SECRET_FORM = "sk-hr-"


def stored(beside: Beside) -> dict[str, Any]:
    """The documents of all keys as the database has them."""
    with sqlite3.connect(beside.directory / FILE) as connection:
        rows = connection.execute("SELECT name, document FROM object WHERE kind = 'key'").fetchall()
    connection.close()
    return {name: json.loads(document) for name, document in rows}


def digest(beside: Beside, secret: str) -> str:
    gateway = (beside.directory / "secret").read_bytes()
    return key_digest(digest_key(gateway), secret.encode()).hex()


def test_a_key_from_nothing_to_nothing(beside: Beside) -> None:
    made = beside.told(
        "keys", "create", "bob", "--owner", "team", "-m", "gpt", "-m", "sim-*", "--expires", "2030-01-31",
        "--budget", "12.50/day", "--rpm", "60", "-l", "project=x", "--ip", "192.0.2.0/24",
    )  # fmt: skip
    assert made["secret"].startswith(SECRET_FORM)
    key = made["key"]
    assert (key["name"], key["source"], key["state"], key["owner"]) == ("bob", "database", "active", "team")
    assert (key["models"], key["expires"], key["ips"]) == (["gpt", "sim-*"], "2030-01-31T00:00:00Z", ["192.0.2.0/24"])
    assert (key["limits"]["requests_per_minute"], key["labels"]) == (60, {"project": "x"})
    assert key["budget"] == {"amount": "12.5", "window": "day", "exceeded": "finish", "status": 402}
    assert stored(beside)["bob"]["digest"] == digest(beside, made["secret"])
    assert made["secret"].encode() not in (beside.directory / FILE).read_bytes()
    changed = beside.told("keys", "set", "bob", "--rpm", "none", "-l", "project=", "-l", "team=b", "--owner", "none")
    assert (changed["limits"]["requests_per_minute"], changed["owner"], changed["labels"]) == (
        None,
        None,
        {"team": "b"},
    )
    assert changed["budget"] == key["budget"]
    assert beside.told("keys", "expire", "bob", "--at", "2020-01-01")["state"] == "expired"
    assert "key bob expires: never" in beside.did("keys", "expire", "bob", "--at", "never")
    assert beside.did("keys", "delete", "bob") == "key bob is deleted\n"
    assert stored(beside) == {}


def test_the_secret_is_shown_once(beside: Beside) -> None:
    lines = beside.did("keys", "create", "bob").splitlines()
    secret = lines[1].strip()
    assert secret.startswith(SECRET_FORM) and "this once" in lines[0]
    for arguments in (["list"], ["show", "bob"], ["list", "--json"], ["set", "bob", "--rpm", "5"]):
        assert SECRET_FORM not in beside.did("keys", *arguments)


def test_rotating_with_grace_and_without(beside: Beside) -> None:
    first = beside.told("keys", "create", "bob", "--rpm", "5")["secret"]
    second = beside.told("keys", "rotate", "bob", "--grace", "24h")
    assert len(second["key"]["former_until"]) == 1 and second["key"]["limits"]["requests_per_minute"] == 5
    beside.did("keys", "rotate", "bob", "--grace", "1h")
    former = [one["digest"] for one in stored(beside)["bob"]["former"]]
    assert former == [digest(beside, second["secret"]), digest(beside, first)]
    third = beside.told("keys", "rotate", "bob")
    assert third["key"]["former_until"] == []
    assert stored(beside)["bob"] == {"limits": {"requests_per_minute": "5"}, "digest": digest(beside, third["secret"])}


def test_revoking_and_enabling(beside: Beside) -> None:
    beside.did("keys", "create", "bob")
    assert beside.did("keys", "revoke", "bob") == "key bob is disabled\n"
    assert "stop" not in stored(beside)["bob"]
    assert "its streams are ended" in beside.did("keys", "revoke", "bob", "--now")
    assert (stored(beside)["bob"]["state"], stored(beside)["bob"]["stop"]) == ("disabled", True)
    assert beside.did("keys", "enable", "bob") == "key bob is active\n"
    assert stored(beside)["bob"].keys() == {"digest"}


def test_the_list_has_the_file_s_and_the_database_s(beside: Beside) -> None:
    beside.did("keys", "create", "bob", "--owner", "team")
    beside.did("keys", "create", "ann", "--expires", "0d")
    rows = [line.split() for line in beside.did("keys", "list").splitlines()[2:]]
    assert [(row[0], row[1], row[-1]) for row in rows] == [
        ("ann", "expired", "database"), ("bob", "active", "database"), ("dev", "active", "file"),
    ]  # fmt: skip
    assert [one["name"] for one in beside.told("keys", "list", "--owner", "team")] == ["bob", "dev"]


def test_what_is_shadowed_and_what_is_broken(beside: Beside) -> None:
    beside.did("keys", "create", "bob", "--owner", "team")
    beside.did("keys", "create", "bad")
    beside.file.write_text(beside.file.read_text().replace("  - {name: dev,", "  - {name: bob,"))
    with sqlite3.connect(beside.directory / FILE) as connection:
        connection.execute("""UPDATE object SET document = '{"nonsense":1}' WHERE name = 'bad'""")
    connection.close()
    bad, own, shadowed = beside.told("keys", "list")
    assert (bad["state"], own["source"], shadowed["source"]) == ("broken", "file", "database")
    assert "unknown option" in bad["problem"]
    assert (shadowed["state"], shadowed["owner"]) == ("shadowed", "team")
    assert "broken" in beside.did("keys", "list")
    assert "nonsense" in beside.did("keys", "show", "bad")
    result = beside.run("keys", "delete", "bob")
    assert "that one is served" in result.stderr and result.exit_code == 0
    assert [one["name"] for one in beside.told("keys", "list")] == ["bad", "bob"]


@pytest.mark.parametrize(
    "command", [["set", "dev", "--rpm", "5"], ["rotate", "dev"], ["revoke", "dev"], ["delete", "dev"]]
)
def test_a_key_of_the_file_is_changed_there(beside: Beside, command: list[str]) -> None:
    words = beside.refused("keys", *command)
    line = next(n for n, text in enumerate(beside.file.read_text().splitlines(), 1) if "name: dev" in text)
    assert words == (f"key dev is declared in {beside.file}:{line}: change it there; a changed file is taken by itself")


def test_names_are_unique_over_both(beside: Beside) -> None:
    assert "already, in " in beside.refused("keys", "create", "dev")
    beside.did("keys", "create", "bob")
    assert "already, in the database" in beside.refused("keys", "create", "bob")
    assert "there is no key bib" in beside.refused("keys", "rotate", "bib")
    assert "there is no key bib" in beside.refused("keys", "show", "bib")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["bob", "--rpm", "0"], "key bob cannot be: limits.requests_per_minute: must be a whole number"),
        (["bob", "--budget", "5/year"], "budget.window: unknown window"),
        (["bob", "--budget", "-5"], "budget.amount: must be an amount"),
        (["bob", "--multiplier", "1e3"], "multiplier: must be a factor"),
        (["bob", "--ip", "home"], "ips"),
        (["-bob-", "--"], "must be 1 to 64 letters"),
        (["bob", "--expires", "soon"], "--expires"),
        (["bob", "--label", "x"], "must be NAME=TEXT"),
    ],
)
def test_a_bad_value_makes_no_key(beside: Beside, arguments: list[str], words: str) -> None:
    if arguments[0].startswith("-"):
        arguments = ["--", arguments[0]]
        result = CliRunner().invoke(app, ["keys", "create", "--config", str(beside.file), *arguments])
    else:
        result = beside.run("keys", "create", *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert words in result.stderr
    assert not (beside.directory / FILE).exists()


@pytest.mark.parametrize("arguments", [[], ["--at", "2030-01-01", "--in", "5d"], ["--in", "soon"]])
def test_expiring_needs_one_moment(beside: Beside, arguments: list[str]) -> None:
    beside.did("keys", "create", "bob")
    assert beside.run("keys", "expire", "bob", *arguments).exit_code == 2


def test_asking_makes_nothing(beside: Beside) -> None:
    assert [one["name"] for one in beside.told("keys", "list")] == ["dev"]
    assert not beside.directory.exists()


def test_no_keys_at_all(beside: Beside) -> None:
    result = beside.run("keys", "list", "--owner", "nobody")
    assert (result.exit_code, result.stdout) == (0, "") and "keys create" in result.stderr


def test_a_bad_file(beside: Beside) -> None:
    beside.file.write_text("keys: 5\n")
    assert f"{beside.file}:1: keys: must be a list" in beside.refused("keys", "list", code=2)


def test_a_database_that_is_old(beside: Beside) -> None:
    beside.directory.mkdir()
    (beside.directory / FILE).touch(0o600)
    assert "run `headrace migrate`" in beside.refused("keys", "create", "bob")
    assert "run `headrace migrate`" in beside.refused("keys", "list")


def test_postgresql(tmp_path: Path, postgres: Postgres) -> None:
    beside = Beside(tmp_path, postgres.new_database())
    assert "run `headrace migrate`" in beside.refused("keys", "create", "bob")
    beside.file.write_text(beside.file.read_text().replace("env:HR_NOT_SET_EITHER", process.KEY))
    migrated = process.run("migrate", folder=tmp_path, HR_NOT_SET="sk-up")
    assert migrated.returncode == 0, migrated.stderr
    made = beside.told("keys", "create", "bob", "--rpm", "5")
    beside.did("keys", "rotate", "bob", "--grace", "1h")
    shown = beside.told("keys", "show", "bob")
    assert shown | {"former_until": []} == made["key"] and len(shown["former_until"]) == 1
    assert "already, in the database" in beside.refused("keys", "create", "bob")
    beside.did("keys", "delete", "bob")
    assert [one["name"] for one in beside.told("keys", "list")] == ["dev"]


def status(url: str, secret: str) -> int:
    """What a request with the secret gets."""
    parts = urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    body = json.dumps({"model": "quick", "messages": [{"role": "user", "content": "hi"}]})
    try:
        connection.request("POST", "/v1/chat/completions", body, {"authorization": f"Bearer {secret}"})
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()


def test_a_running_gateway_takes_all_of_it_without_a_restart(tmp_path: Path, upstream: SimulatorThread) -> None:
    file = process.configuration(tmp_path, upstream.url)

    def keys(*arguments: str) -> Any:
        result = CliRunner().invoke(app, ["keys", *arguments, "--config", str(file), "--json"])
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    with process.running("serve", folder=tmp_path) as gateway:
        url = gateway.line_with("listens on").split()[-1]

        def becomes(expected: int, secret: str) -> None:
            until(lambda: status(url, secret) == expected, f"a {expected}")

        first = keys("create", "bob")["secret"]
        becomes(200, first)
        second = keys("rotate", "bob", "--grace", "1h")["secret"]
        becomes(200, second)
        assert status(url, first) == 200
        third = keys("rotate", "bob")["secret"]
        becomes(200, third)
        assert (status(url, first), status(url, second)) == (401, 401)
        keys("revoke", "bob")
        becomes(403, third)
        keys("enable", "bob")
        becomes(200, third)
        keys("expire", "bob", "--in", "0s")
        becomes(401, third)
        keys("delete", "bob")
