"""Which budgets a catalogue has, and against which of them an exchange counts."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Self

from headrace.model.allowance import purse_of, window_start
from headrace.model.catalogue import CatalogueParts
from headrace.model.limits import Window

_HOUR_S: Final = 3600


@dataclass(frozen=True, slots=True)
class Budgets:
    """The kind of window of every key and owner that has a budget, by subject (`key:NAME`, `owner:NAME`)."""

    windows: Mapping[str, Window]

    @classmethod
    def of(cls, parts: CatalogueParts) -> Self:
        """Those of a catalogue."""
        windows = {f"key:{key.name}": key.budget.window for key in parts.keys if key.budget is not None}
        windows |= {f"owner:{owner.name}": owner.budget.window for owner in parts.owners if owner.budget is not None}
        return cls(windows)

    def at(self, moment: float) -> dict[str, int]:
        """The purses of a moment (seconds since the epoch), and where the window of each begins."""
        starts = {window: window_start(window, moment) for window in Window}
        return {purse_of(subject, window, starts[window]): starts[window] for subject, window in self.windows.items()}

    def counting(self, key: str, owner: str, at: float) -> list[str]:
        """The purses of an exchange that began then: its key's and its owner's, where these have a budget."""
        windows, hour = self.windows, int(at // _HOUR_S) * _HOUR_S
        return [
            _purse(subject, window, hour)
            for subject in (f"key:{key}", f"owner:{owner}")
            if (window := windows.get(subject)) is not None
        ]


@lru_cache(maxsize=4096)
def _purse(subject: str, window: Window, hour: int) -> str:
    """The purse of an hour: every window begins with one. Kept, because to find a month's beginning takes 1 µs."""
    return purse_of(subject, window, window_start(window, hour))


def purse_parts(purse: str) -> tuple[str, str, Window, int]:
    """What a purse's name says: the kind and the name of its subject, the kind of window, and where that begins. Raises
    ValueError where it is none."""
    subject, window, start = purse.rsplit("|", 2)
    kind, _, name = subject.partition(":")
    return kind, name, Window(window), int(start)
