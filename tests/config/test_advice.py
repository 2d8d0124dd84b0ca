"""What is allowed, but hardly meant."""

from pathlib import Path

import pytest

from headrace.config.draft import load
from tests.config.conftest import Write
from tests.config.options.whole import load_whole

GOOD = """\
channels:
  a: {base_url: https://a.example, protocols: [chat], credentials: [{name: m, secret: env:A}]}
models:
  m: {routes: [{channel: a}]}
  p-*: {routes: [{channel: a}]}
keys:
  - {name: k, secret: env:K, models: [m, p-1, "p-*", "*", "m*"]}
"""
ENVIRON = {"A": "aaaa", "K": "k" * 20}


def warnings(write: Write, text: str, mode: int = 0o600) -> list[str]:
    path = write(text)
    path.chmod(mode)
    return [warning.removeprefix(f"{path}:") for warning in load(path, ENVIRON).warnings]


def test_a_good_file_has_none(write: Write) -> None:
    assert warnings(write, GOOD, 0o644) == []


@pytest.mark.parametrize(
    ("old", "new", "warning"),
    [
        ("models: [m,", "models: [q,", "7: keys[0].models[0]: no model has a name like this"),
        ("secret: env:K", "secret: short", "7: keys[0].secret: is shorter than 20 characters and may be guessed"),
        (
            "models:\n",
            "  b: {base_url: https://b.example, protocols: [chat], credentials: [{name: m, secret: env:A}]}\nmodels:\n",
            "3: channels.b: no model has a route to it",
        ),
    ],
)
def test_what_looks_wrong_is_said(write: Write, old: str, new: str, warning: str) -> None:
    assert warnings(write, GOOD.replace(old, new, 1)) == [warning]


def test_without_patterns_a_pattern_must_meet_a_name(write: Write) -> None:
    said = warnings(write, GOOD.replace("  p-*: {routes: [{channel: a}]}\n", ""))
    assert said == [f"6: keys[0].models[{index}]: no model has a name like this" for index in (1, 2)]


def test_a_home_channel_needs_no_route(write: Write) -> None:
    line = "  b: {base_url: https://b.example, protocols: [chat], credentials: [{name: m, secret: env:A}], home: true}"
    assert warnings(write, GOOD.replace("models:\n", f"{line}\nmodels:\n", 1)) == []


def test_secrets_in_a_file_for_all_eyes_are_named(write: Write) -> None:
    text = GOOD.replace("env:A", "aaaa").replace("env:K", "k" * 20)
    advice = "stands in a file that others may read; use env:NAME or file:PATH, or run chmod 600 on it"
    assert warnings(write, text, 0o640) == [
        f"2: channels.a.credentials[0].secret: {advice}",
        f"7: keys[0].secret: {advice}",
    ]
    assert warnings(write, text, 0o600) == []


def test_what_has_no_effect_yet_is_said_for_every_kind_of_it(tmp_path: Path) -> None:
    said = [warning.partition(".yaml:")[2] for warning in load_whole(tmp_path).warnings]
    places = [one.split(": ")[1] for one in said if "has no effect in this version" in one]
    assert places == [
        "server.admin",
        "server.max_upload",
        "channels.first.bind_ttl",
        "models.big.websocket_bridge",
    ]


def test_an_owner_that_is_not_declared(write: Write) -> None:
    owned = GOOD.replace("name: k,", "name: k, owner: teem,")
    assert warnings(write, owned) == []
    (said,) = warnings(write, owned + "owners: [{name: team}]\n")
    assert said == "7: keys[0].owner: names no owner of this file: it has no limits or budget from here"


def test_the_databases_password_is_named_too(write: Write) -> None:
    text = GOOD + "state: {database: postgresql://u:p@db/x}\n"
    assert warnings(write, text) == []
    assert [one.partition(" stands")[0] for one in warnings(write, text, 0o644)] == ["8: state.database:"]
    assert warnings(write, text.replace("u:p@", ""), 0o644) == []
