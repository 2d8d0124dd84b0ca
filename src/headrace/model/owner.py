"""Owners: who keys belong to."""

from dataclasses import dataclass

from headrace.model.limits import NANO, NO_LIMITS, Budget, Limits


@dataclass(frozen=True, slots=True)
class Owner:
    """Limits and a budget over all keys of one owner, beside those of each key."""

    name: str
    limits: Limits = NO_LIMITS
    budget: Budget | None = None
    multiplier: int = NANO
    """What a charge is multiplied by, in billionths."""

    @property
    def is_limited(self) -> bool:
        """Whether anything that its keys do is counted against a limit or a budget of its own."""
        return self.budget is not None or self.limits.limited
