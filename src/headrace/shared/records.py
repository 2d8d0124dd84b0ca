"""What of a tally stands in Valkey, under which keys, and the calls of scripts that put it there.

`lua/prelude.lua` lists the keys; each script says what it takes. A worker writes only what is its own: its places, its
holds, and what it settled.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

from headrace.model.allowance import CORRECTIONS, Claim, Spent, window_end
from headrace.shared.purse import Purse
from headrace.shared.tally import Tallied, Tally

PLACES, PURSE, RATES = "headrace:places:", "headrace:purse:", "headrace:rates:"
_KEPT_S = 86400
"""How long a purse outlives its window: exchanges of its last minute are still to be settled."""


class Command(NamedTuple):
    """One call of a script."""

    script: str
    keys: tuple[str, ...]
    arguments: tuple[str | int, ...]


class Records:
    """What of one worker's tally stands in Valkey. `time_ms` is the scripts' first clock: empty for the server's."""

    def __init__(self, tally: Tally, incarnation: str, time_ms: Callable[[], str]) -> None:
        self._tally = tally
        self._incarnation = incarnation
        self._time_ms = time_ms
        self._held = f"headrace:of:{incarnation}"
        self._copies = 0

    # ---- exchanges

    def claim_keys(self, claims: Sequence[Claim], purses: Sequence[Purse | None]) -> tuple[str, ...]:
        """The keys of a claim and of its settlement."""
        keys = [self._held]
        for claim, purse in zip(claims, purses, strict=True):
            places = PLACES + claim.subject
            keys += (RATES + claim.subject, places, places if purse is None else PURSE + purse.name)
        return tuple(keys)

    def claim(
        self, mode: str, claims: Sequence[Claim], keys: tuple[str, ...], purses: Sequence[Purse | None], session: str
    ) -> Command:
        """`take`, or `peek` at, what the claims ask for."""
        arguments: list[str | int] = [self._incarnation, session, self._time_ms(), mode]
        for claim, purse in zip(claims, purses, strict=True):
            limits, budget = claim.limits, claim.budget
            arguments += (
                "" if (limit := limits.requests_per_minute) is None else limit,
                "" if (limit := limits.tokens_per_minute) is None else limit,
                "" if (limit := limits.concurrent) is None else limit,
                claim.tokens,
                "" if budget is None else budget.amount,
                claim.hold,
                "" if purse is None else purse.copy,
            )
        return Command("claim", keys, tuple(arguments))

    def settle(
        self, tallied: Tallied, keys: tuple[str, ...], session: str, second: int, tokens: int, undone: bool
    ) -> Command:
        """The end of what was claimed in `second`; the tally has it already."""
        heard = any(purse is not None and purse.stops for purse in tallied.purses)
        arguments: list[str | int] = [self._incarnation, session, self._time_ms(), second, int(undone), int(heard)]
        for claim, purse in zip(tallied.claims, tallied.purses, strict=True):
            arguments += (tokens - claim.tokens, claim.hold, "" if purse is None else purse.own)
        return Command("settle", keys, tuple(arguments))

    def look(self, keys: tuple[str, ...]) -> Command:
        """How the subjects of a claim's keys stand."""
        return Command("look", keys, (self._time_ms(),))

    # ---- what is the worker's own

    def keys(self) -> Iterator[str]:
        """All that would have to be written if Valkey had lost it."""
        for subject, account in self._tally.accounts.items():
            if account.running:
                yield PLACES + subject
        for purse in self._tally.purses:
            yield PURSE + purse.name

    def commands(self, key: str, session: str) -> Iterable[Command]:
        """What writes one of them, as it is now."""
        if key.startswith(PLACES):
            account = self._tally.accounts.get(key.removeprefix(PLACES))
            return (self._write(key, session, account.running if account is not None else 0),)
        if not key.startswith(PURSE):
            return ()
        purse = self._tally.purses.get(key.removeprefix(PURSE))
        if purse is None:
            return (self._write(key, session, 0),)
        write = self.purse(purse, session)
        return (write,) if purse.ledger is None else (self.cover(purse.ledger, purse), write)

    def purse(self, purse: Purse, session: str) -> Command:
        """This worker's hold and part of a purse."""
        return self._write(PURSE + purse.name, session, purse.held, purse.own)

    def cover(self, spent: Spent, purse: Purse) -> Command:
        """What the ledger has of a purse."""
        self._copies += 1
        end = window_end(purse.window, purse.start)
        until_ms = (end + _KEPT_S) * 1000 if end is not None else ""
        copy = f"{self._incarnation}:{self._copies}"
        parts = (word for name, part in spent.parts.items() if name != CORRECTIONS for word in (name, part))
        figures = (spent.settled, spent.parts.get(CORRECTIONS, 0))
        return Command("cover", (PURSE + purse.name,), (self._time_ms(), copy, until_ms, *figures, *parts))

    def _write(self, key: str, session: str, *amounts: int) -> Command:
        return Command("write", (self._held, key), (self._incarnation, session, *amounts))
