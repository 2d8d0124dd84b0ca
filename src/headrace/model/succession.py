"""What a worker that is being replaced tells its successor of limits and budgets, as messages.

    control ──HandOver──▶ the old one ──Held ×n──▶ control ──▶ the successor     all that it holds, once
                                      ──Given, Released──▶     ──▶              each change, from then on
                                                        control ──Gone──▶       it has ended, however it did

They need no answer. Told again, after the link was away, they change nothing that is known already.
"""

import msgspec

from headrace.model.allowance import Claim


class HandOver(msgspec.Struct, frozen=True, kw_only=True, tag="hand_over"):
    """A younger worker has this one's slot: tell it everything, then each change. `wanted` false: there is none (any
    more), so nobody is to be told."""

    wanted: bool = True


class OpenLease(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What a running exchange has been given. `number` is its worker's name for it."""

    number: int
    claims: tuple[Claim, ...]
    age_s: float
    """How long ago that was."""


class Minute(msgspec.Struct, frozen=True, kw_only=True, array_like=True):
    """What one subject has used in the last minute, open leases included: seconds ago, requests, tokens."""

    subject: str
    seconds: tuple[tuple[int, int, int], ...]


class Held(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="held"):
    """A part of all that a worker holds. With `first` the account begins, with `last` it is whole."""

    incarnation: str
    first: bool = False
    last: bool = False
    leases: tuple[OpenLease, ...] = ()
    minutes: tuple[Minute, ...] = ()
    spent: dict[str, int] = {}
    """By purse: all that the incarnation has settled, in nano-units."""


class Given(msgspec.Struct, frozen=True, kw_only=True, tag="given"):
    """One more lease."""

    incarnation: str
    lease: OpenLease


class Released(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag="released"):
    """A lease was settled. `spent` is as in `Held`, for the purses of its claims."""

    incarnation: str
    number: int
    tokens: int = 0
    spent: dict[str, int] = {}


class Gone(msgspec.Struct, frozen=True, kw_only=True, tag="gone"):
    """An older worker has ended: nothing that it held is held any more."""

    incarnation: str


Succeeding = Held | Given | Released
"""What an older worker says, for the younger ones of its slot."""
