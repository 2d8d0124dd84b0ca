"""Keys as people and programs are shown them. A secret is never among it."""

from collections.abc import Iterable, Iterator

import msgspec

from headrace.cli.allowance import (
    BudgetReport,
    LimitsReport,
    budget_report,
    budget_words,
    limit_words,
    limits_report,
)
from headrace.cli.moments import iso_of, words_of
from headrace.cli.output import Section
from headrace.cli.registry import Registry
from headrace.cli.standing import SERVED, Standing, standings
from headrace.config.money import show_nano
from headrace.model.catalogue import ObjectKind
from headrace.model.key import Key, KeyState
from headrace.model.limits import NANO

COLUMNS = ("name", "state", "owner", "models", "expires", "limits", "budget", "from")
SHOWN_MODELS = 3


class KeyReport(msgspec.Struct, kw_only=True):
    """One key for programs. Moments are ISO, money and factors exact decimals as text."""

    name: str
    source: str
    """`file` or `database`."""
    state: str
    """active, disabled, expired; shadowed where the file has another of its name, broken where it cannot be served."""
    problem: str = ""
    owner: str | None = None
    models: tuple[str, ...] = ()
    expires: str | None = None
    limits: LimitsReport | None = None
    budget: BudgetReport | None = None
    multiplier: str = "1"
    labels: dict[str, str] = {}
    ips: tuple[str, ...] = ()
    origins: tuple[str, ...] = ()
    former_until: tuple[str, ...] = ()
    """Until when secrets that were replaced work on."""


class SecretReport(msgspec.Struct):
    """What `--json` prints of a key that was just made, or whose secret was replaced: shown this once."""

    secret: str
    key: KeyReport


def listed(found: Registry) -> Iterator[Standing[Key]]:
    """All keys by name: the file's, and the database's with those that are not served."""
    return standings(found, ObjectKind.KEY, lambda parts: parts.keys)


def state_of(one: Standing[Key], now: float) -> str:
    """Whether it works: active, disabled or expired; or shadowed or broken."""
    key = one.value
    if one.state != SERVED or key is None:
        return one.state
    if key.state is not KeyState.ACTIVE:
        return KeyState.DISABLED.value
    return "expired" if key.expires is not None and key.expires <= now else SERVED


def report(one: Standing[Key], now: float) -> KeyReport:
    """A key for programs."""
    plain = KeyReport(name=one.name, source=one.source, state=state_of(one, now), problem=one.problem)
    key = one.value
    if key is None:
        return plain
    return msgspec.structs.replace(
        plain,
        owner=key.owner or None,
        models=key.models,
        expires=iso_of(key.expires) if key.expires is not None else None,
        limits=limits_report(key.limits),
        budget=budget_report(key.budget),
        multiplier=show_nano(key.multiplier),
        labels=dict(key.labels),
        ips=key.ips,
        origins=key.origins,
        former_until=tuple(iso_of(until) for until in _former(key, now)),
    )


def table(rows: Iterable[Standing[Key]], now: float) -> Section:
    """A row for each key."""
    return Section("keys", tuple(_row(one, now) for one in rows), COLUMNS)


def facts(one: Standing[Key], now: float) -> Section:
    """All about one key."""
    rows = [("state", state_of(one, now)), ("from", one.source)]
    if one.problem:
        rows.append(("not served", one.problem))
    if one.value is not None:
        rows += _facts(one.value, now)
    return Section(f"key {one.name}", tuple(rows))


def _row(one: Standing[Key], now: float) -> tuple[str, ...]:
    key, state = one.value, state_of(one, now)
    if key is None:
        return (one.name, state, *[""] * (len(COLUMNS) - 3), one.source)
    more = len(key.models) - SHOWN_MODELS
    return (
        one.name,
        state,
        key.owner or "itself",
        ", ".join(key.models[:SHOWN_MODELS]) + (f" and {more} more" if more > 0 else ""),
        words_of(key.expires),
        limit_words(key.limits),
        budget_words(key.budget),
        one.source,
    )


def _facts(key: Key, now: float) -> Iterator[tuple[str, str]]:
    yield "owner", key.owner or "itself"
    yield "models", ", ".join(key.models)
    yield "expires", words_of(key.expires)
    yield "limits", limit_words(key.limits)
    yield "budget", budget_words(key.budget)
    if key.budget is not None:
        yield "once spent", f"running streams {key.budget.exceeded.value}, requests get {key.budget.status}"
    if key.multiplier != NANO:
        yield "multiplier", show_nano(key.multiplier)
    for name, text in key.labels:
        yield f"label {name}", text
    if key.ips:
        yield "used from", ", ".join(key.ips)
    if key.origins:
        yield "web origins", ", ".join(key.origins)
    for until in _former(key, now):
        yield "former secret", f"works until {words_of(until)}"


def _former(key: Key, now: float) -> list[float]:
    """Until when the secrets work that were replaced and still do."""
    return sorted(one.until for one in key.former if one.until > now)
