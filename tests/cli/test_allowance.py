"""Limits and budgets on the command line."""

import json
from typing import Any

import pytest

from headrace.cli.allowance import (
    AllowanceFields,
    budget_report,
    budget_words,
    limit_words,
    limits_report,
)
from headrace.cli.object_document import ObjectDocument
from headrace.model.catalogue import ObjectKind, StoredObject
from headrace.model.limits import NANO, Budget, Exceeded, Limits, Window

FULL = {
    "budget": {"amount": "5", "window": "day", "exceeded": "stop", "status": "429"},
    "limits": {"requests_per_minute": "1", "tokens_per_minute": "2", "concurrent": "3", "wait": "4s"},
    "multiplier": "1.5",
}


def put(before: dict[str, Any], **given: str) -> Any:
    document = ObjectDocument(StoredObject(ObjectKind.OWNER, "o", json.dumps(before)))
    AllowanceFields(**given).put_into(document)
    return json.loads(document.stored(ObjectKind.OWNER, "o").document)


def test_everything_that_may_be_given() -> None:
    given = {"budget": "5/day", "exceeded": "stop", "status": "429", "rpm": "1", "tpm": "2", "concurrent": "3"}
    assert put({}, **given, wait="4s", multiplier="1.5") == FULL


def test_what_is_not_given_stays() -> None:
    assert put(FULL) == FULL
    assert put(FULL, rpm="9")["limits"] == FULL["limits"] | {"requests_per_minute": "9"}  # type: ignore[operator]


def test_none_takes_away() -> None:
    names = ("exceeded", "status", "rpm", "tpm", "concurrent", "wait", "multiplier", "budget")
    assert put(FULL, **dict.fromkeys(names, "none")) == {}


def test_another_budget_keeps_what_happens_when_it_is_spent() -> None:
    assert put(FULL, budget="7")["budget"] == {"amount": "7", "exceeded": "stop", "status": "429"}
    assert put(FULL, budget="0.5/total")["budget"]["window"] == "total"


@pytest.mark.parametrize(
    ("limits", "words"),
    [
        (Limits(), "none"),
        (Limits(requests_per_minute=60), "60 requests/min"),
        (Limits(60, 2_000_000, 5), "60 requests/min, 2,000,000 tokens/min, 5 at a time"),
    ],
)
def test_limits_in_words(limits: Limits, words: str) -> None:
    assert limit_words(limits) == words


def test_for_programs() -> None:
    limits = limits_report(Limits(60, None, 5))
    assert (limits.requests_per_minute, limits.tokens_per_minute, limits.concurrent) == (60, None, 5)
    budget = budget_report(Budget(NANO // 2, Window.DAY, Exceeded.STOP, 429))
    assert budget is not None
    assert (budget.amount, budget.window, budget.exceeded, budget.status) == ("0.5", "day", "stop", 429)
    assert (budget_report(None), budget_words(None)) == (None, "none")
    assert budget_words(Budget(0, Window.TOTAL)) == "0/total"
