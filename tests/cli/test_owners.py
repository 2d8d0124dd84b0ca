"""`headrace owners`."""

import pytest

from tests.cli.declared import Beside


def test_an_owner_from_nothing_to_nothing(beside: Beside) -> None:
    made = beside.told("owners", "create", "lab", "--budget", "50/total", "--exceeded", "stop", "--rpm", "60")
    assert (made["name"], made["source"], made["state"]) == ("lab", "database", "active")
    assert made["budget"] == {"amount": "50", "window": "total", "exceeded": "stop", "status": 402}
    changed = beside.did("owners", "set", "lab", "--budget", "none", "--multiplier", "1.5")
    assert changed.splitlines()[2].split() == ["lab", "active", "0", "60", "requests/min", "none", "1.5", "database"]
    lab, team = beside.told("owners", "list")
    assert (lab["budget"], lab["multiplier"], team["source"], team["keys"]) == (None, "1.5", "file", ["dev"])
    beside.did("keys", "create", "bob", "--owner", "lab")
    assert beside.did("owners", "delete", "lab") == "owner lab is deleted; its keys stay: bob\n"
    assert [one["name"] for one in beside.told("owners", "list")] == ["team"]


@pytest.mark.parametrize(
    ("arguments", "words", "code"),
    [
        (["create", "team"], "owner team is there already, in ", 1),
        (["set", "team", "--rpm", "5"], "owner team is declared in ", 1),
        (["delete", "none"], "there is no owner none", 1),
        (["create", "lab", "--status", "500"], "owner lab cannot be: budget.amount: is required", 2),
    ],
)
def test_what_is_refused(beside: Beside, arguments: list[str], words: str, code: int) -> None:
    assert words in beside.refused("owners", *arguments, code=code)
