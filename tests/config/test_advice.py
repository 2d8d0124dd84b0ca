"""What is allowed, but hardly meant."""

import pytest

from headrace.config.draft import load
from tests.config.conftest import Write

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
