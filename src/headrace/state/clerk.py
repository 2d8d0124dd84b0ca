"""Does what is ordered of one database: each kind of order with its answers, as `errands` describes them."""

import time
from collections.abc import AsyncIterator
from dataclasses import fields
from functools import partial
from pathlib import Path
from typing import assert_never

from headrace.model.catalogue import CatalogueParts
from headrace.routing.catalogue import Catalogue
from headrace.sealing import seal, unseal
from headrace.state.amend import Sums, rerate
from headrace.state.database import Database
from headrace.state.errands import (
    LABEL,
    Amounts,
    Answer,
    AskUsage,
    Change,
    CreateObject,
    FindExchange,
    ListObjects,
    Migrate,
    OneObject,
    Opening,
    Order,
    RateAgain,
    RatedAgain,
    RemoveObject,
    ReplaceObject,
    UsageLine,
    Words,
)
from headrace.state.errors import DatabaseAwayError, StateError
from headrace.state.lines import EntryFilter
from headrace.state.lookup import find, is_there
from headrace.state.migration import check, migrate
from headrace.state.objects import Objects
from headrace.state.repricing import repriced
from headrace.state.usage import Group, LabelGroup, UsageQuery, UsageRow, usage


class RefusedError(StateError):
    """The order cannot be done as things are; the text says why."""


class Clerk:
    """One opened database. `close` when there is no more to do."""

    def __init__(self, opening: Opening) -> None:
        """ValueError for an address of another kind."""
        self._directory = Path(opening.directory)
        self._database = Database.open(opening.database, self._directory)
        secret = opening.secret
        self._objects = Objects(self._database, partial(seal, secret), partial(unseal, secret))
        self._is_checked = False

    async def answers(self, order: Order) -> AsyncIterator[Answer]:
        """Do it; its answers without the last, which is the caller's. StateError where it fails."""
        if isinstance(order, Change):
            await self._change(order)
            return
        async for answer in self._told(order):
            yield answer

    async def close(self) -> None:
        """Close the connections."""
        await self._database.close()

    def _told(self, order: Migrate | FindExchange | ListObjects | AskUsage | RateAgain) -> AsyncIterator[Answer]:
        match order:
            case Migrate():
                return self._migrate()
            case FindExchange():
                return self._find(order)
            case ListObjects():
                return self._list()
            case AskUsage():
                return self._usage(order)
            case RateAgain():
                return self._rate_again(order)
            case _:
                assert_never(order)

    async def _migrate(self) -> AsyncIterator[Answer]:
        name = self._database.name
        try:
            done = await migrate(self._database)
        except DatabaseAwayError as error:
            raise self._away(error) from error
        if done.before == done.after:
            yield Words(f"{name} has version {done.after}: nothing to do")
        else:
            yield Words(f"{name} migrated: {done.before} → {done.after}")

    async def _find(self, order: FindExchange) -> AsyncIterator[Answer]:
        reports: list[str] = []
        try:
            found = await find(self._database, self._directory, order.id, reports.append, order.wait_s)
        except OSError as error:
            raise RefusedError(f"cannot read the journal in {self._directory}: {error.strerror or error}") from error
        for report in dict.fromkeys(reports):
            yield Words(report)
        if found is not None:
            yield found

    async def _usage(self, order: AskUsage) -> AsyncIterator[Answer]:
        if not is_there(self._database):
            return
        await self._ensure()
        for row in await usage(self._database, UsageQuery(tuple(map(_group, order.by)), _filter(order))):
            yield _usage_line(row)

    async def _rate_again(self, order: RateAgain) -> AsyncIterator[Answer]:
        if not is_there(self._database):
            return
        await self._ensure()
        catalogue = Catalogue(CatalogueParts(models=order.models))
        done = await rerate(
            self._database,
            _filter(order),
            lambda entry: repriced(entry, catalogue),
            order.reason,
            time.time(),
            dry_run=order.dry_run,
        )
        before, after = _amounts(done.before), _amounts(done.after)
        yield RatedAgain(entries=done.entries, amended=done.amended, before=before, after=after)

    # ---- objects

    async def _list(self) -> AsyncIterator[Answer]:
        if not is_there(self._database):
            return
        await self._ensure()
        found = await self._objects.all()
        for fault in found.faults:
            yield Words(fault)
        for one in found.objects:
            yield OneObject(one)

    async def _change(self, order: Change) -> None:
        if isinstance(order, CreateObject) and not is_there(self._database):
            await migrate(self._database)
        await self._ensure()
        match order:
            case CreateObject(object=one):
                if not await self._objects.create(one, time.time()):
                    raise RefusedError(f"the database has a {one.kind.value} {one.name} already")
            case ReplaceObject(object=one, before=before):
                if not await self._objects.replace(one, time.time(), before):
                    raise RefusedError(f"someone else has changed {one.kind.value} {one.name} meanwhile: try again")
            case RemoveObject(kind=kind, name=name):
                if not await self._objects.remove(kind, name):
                    raise RefusedError(f"the database has no {kind.value} {name}")
            case _:
                assert_never(order)

    async def _ensure(self) -> None:
        """The tables are those that this program knows."""
        if self._is_checked:
            return
        try:
            await check(self._database)
        except DatabaseAwayError as error:
            raise self._away(error) from error
        self._is_checked = True

    def _away(self, error: DatabaseAwayError) -> DatabaseAwayError:
        return DatabaseAwayError(f"cannot reach the database ({self._database.name}): {error}")


def _filter(order: AskUsage | RateAgain) -> EntryFilter:
    """Those of the filter's members that the order has."""
    names = [one.name for one in fields(EntryFilter) if hasattr(order, one.name)]
    return EntryFilter(**{name: getattr(order, name) for name in names})


def _amounts(sums: Sums) -> Amounts:
    return Amounts(cost=str(sums.cost), charge=str(sums.charge), unknown_cost=sums.unknown_cost)


def _group(word: str) -> Group | LabelGroup:
    return LabelGroup(word.removeprefix(LABEL)) if word.startswith(LABEL) else Group(word)


def _usage_line(row: UsageRow) -> UsageLine:
    return UsageLine(
        groups=row.groups,
        entries=row.entries,
        estimated=row.estimated,
        unknown_cost=row.unknown_cost,
        input=str(row.input),
        cached_input=str(row.cached_input),
        cache_write=str(row.cache_write),
        output=str(row.output),
        reasoning=str(row.reasoning),
        cost=str(row.cost),
        charge=str(row.charge),
    )
