"""Limits and budgets on the command line: the options that keys and owners share, and how they are shown."""

from dataclasses import dataclass
from typing import Annotated

import msgspec
import typer

from headrace.cli.object_document import ObjectDocument
from headrace.config.money import show_nano
from headrace.model.limits import Budget, Limits

NONE = "none"
"""What takes an option away again."""


@dataclass(frozen=True, slots=True)
class AllowanceFields:
    """What may be spent; None leaves it as it is. Values are judged by the file's validators."""

    budget: Annotated[
        str | None,
        typer.Option(metavar="AMOUNT/WINDOW", help="Currency units each month, day or hour, or in total: 50/month."),
    ] = None
    exceeded: Annotated[
        str | None, typer.Option(metavar="POLICY", help="Running streams once it is spent: finish or stop.")
    ] = None
    status: Annotated[
        str | None, typer.Option(metavar="STATUS", help="The status of a request that the budget refuses: 402 or 429.")
    ] = None
    rpm: Annotated[str | None, typer.Option(metavar="NUMBER", help="Requests in any 60 seconds at most.")] = None
    tpm: Annotated[
        str | None, typer.Option(metavar="NUMBER", help="Tokens in any 60 seconds at most, input and output.")
    ] = None
    concurrent: Annotated[str | None, typer.Option(metavar="NUMBER", help="Exchanges at a time at most.")] = None
    wait: Annotated[
        str | None, typer.Option(metavar="TIME", help="How long a request waits for room, such as 5s; then 429.")
    ] = None
    multiplier: Annotated[
        str | None, typer.Option(metavar="FACTOR", help="What a price is multiplied by to be the charge, such as 1.2.")
    ] = None

    def put_into(self, document: ObjectDocument) -> None:
        """Set what is given, remove what is given as `none`."""
        if self.budget == NONE:
            document.drop("budget")
        elif self.budget is not None:
            amount, _, window = self.budget.partition("/")
            document.put("budget.amount", amount)
            if window:
                document.put("budget.window", window)
            else:
                document.drop("budget.window")
        for path, value in (
            ("budget.exceeded", self.exceeded),
            ("budget.status", self.status),
            ("limits.requests_per_minute", self.rpm),
            ("limits.tokens_per_minute", self.tpm),
            ("limits.concurrent", self.concurrent),
            ("limits.wait", self.wait),
            ("multiplier", self.multiplier),
        ):
            put_text(document, path, value)


def put_text(document: ObjectDocument, path: str, value: str | None) -> None:
    """Set a member; `none` removes it, None leaves it."""
    if value == NONE:
        document.drop(path)
    elif value is not None:
        document.put(path, value)


class LimitsReport(msgspec.Struct):
    """Limits for programs; null: no limit."""

    requests_per_minute: int | None
    tokens_per_minute: int | None
    concurrent: int | None


class BudgetReport(msgspec.Struct):
    """A budget for programs; the amount is an exact decimal of currency units."""

    amount: str
    window: str
    exceeded: str
    status: int


def limits_report(limits: Limits) -> LimitsReport:
    """Limits for programs."""
    return LimitsReport(limits.requests_per_minute, limits.tokens_per_minute, limits.concurrent)


def budget_report(budget: Budget | None) -> BudgetReport | None:
    """A budget for programs."""
    if budget is None:
        return None
    return BudgetReport(show_nano(budget.amount), budget.window.value, budget.exceeded.value, budget.status)


def limit_words(limits: Limits) -> str:
    """`60 requests/min, 5 at a time`."""
    parts = []
    if limits.requests_per_minute is not None:
        parts.append(f"{limits.requests_per_minute:,} requests/min")
    if limits.tokens_per_minute is not None:
        parts.append(f"{limits.tokens_per_minute:,} tokens/min")
    if limits.concurrent is not None:
        parts.append(f"{limits.concurrent:,} at a time")
    return ", ".join(parts) or NONE


def budget_words(budget: Budget | None) -> str:
    """`50/month`."""
    return f"{show_nano(budget.amount)}/{budget.window.value}" if budget is not None else NONE
