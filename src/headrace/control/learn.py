"""Learns from completed entries: what tokens a model makes of text, how long its answers are, what keys have cached.

Ratios are fitted by least squares over relative errors, one entry at a time and forgetting slowly: for each direction
of each model one small matrix is kept, nothing of the entries. Few entries, or entries that are all alike, say little
about most of the ratios; so these are drawn towards the constants, each relative to its constant, and all together
more easily than one against the others. What cannot be, or is far from anything a tokenizer does, teaches nothing.
"""

import math
from array import array
from collections import OrderedDict
from typing import Final

from headrace.control.solve import Matrix, solve
from headrace.metering.estimate import MESSAGES, TEXT, UPSTREAM
from headrace.model.entry import Entry
from headrace.model.estimate import Learned, Ratios, TextCount, quantities, ratios_from, weights
from headrace.model.outcome import End

MOST_MODELS: Final = 2_000
MOST_SHARES: Final = 100
"""Keys whose cached share is kept for one model; the one that was used longest ago goes."""
ENOUGH: Final = 20
"""Entries that it takes before anything that they say is used."""
MOST_LENGTHS: Final = 1_000
"""Answers that the 95th percentile is taken over: the latest."""

_EACH, _ONE_IN = 100, 8
"""So many texts are each learned from, which takes 15 µs; from then on one in so many."""
_KEEP = 0.99
"""What a text still counts for after each further one that is learned from: half after 70 of them."""
_LEAST_TOKENS = 20
"""An entry with less text than that says nothing about ratios: its frame weighs more than its text."""
_FARTHEST = 5.0
"""How many times more or fewer tokens than by the constants are believed."""
_FAIR = 0.3
"""A relative error from which on an entry counts for less: outliers bend a fit of squares."""
_PULL_ONE, _PULL_ALL = 0.5, 0.05
"""How many entries the constants count for: for one ratio against the others, and for all together."""
_SHARE_STEP = 0.1
"""How much of the newest entry goes into a key's cached share."""
_MOST_TOKENS = 2**31


class Lessons:
    """What the entries of all models have taught. It never raises on what an entry says."""

    def __init__(self) -> None:
        self._models: OrderedDict[str, _Model] = OrderedDict()

    def add(self, entry: Entry) -> None:
        """Learn from one entry, if it is completed and its usage is the upstream's own and final. Where other models
        took part, the totals are not those of the whole text."""
        is_whole = entry.end == End.COMPLETED.value and entry.usage_origin == UPSTREAM
        if not is_whole or not entry.model or entry.usage.extra:
            return
        model = self._models.get(entry.model)
        if model is None:
            model = self._models[entry.model] = _Model()
            if len(self._models) > MOST_MODELS:
                self._models.popitem(last=False)
        self._models.move_to_end(entry.model)
        model.add(entry)

    def learned(self) -> dict[str, Learned]:
        """By a model's public name, where there is anything."""
        lessons = {name: model.learned() for name, model in self._models.items()}
        return {name: lesson for name, lesson in lessons.items() if lesson != _NO_LESSON}


class _Model:
    """One model's lessons."""

    def __init__(self) -> None:
        self._input = _Fit(MESSAGES)
        self._output = _Fit(TEXT)
        self._lengths = array("l")
        self._next = 0
        self._shares: OrderedDict[str, float] = OrderedDict()
        self._learned: Learned | None = None

    def add(self, entry: Entry) -> None:
        usage = entry.usage
        self._learned = None
        read, made = usage.input_total, usage.output_total
        if read is not None and 0 < read < _MOST_TOKENS:
            if not entry.sent.media_tokens:
                self._input.add(entry.sent, read)
            self._add_share(entry.key, min(max(usage.cached_input or 0, 0) / read, 1.0))
        if made is not None and 0 < made < _MOST_TOKENS:
            self._add_length(made)
            self._output.add(entry.generated, made, usage.reasoning or 0)

    def learned(self) -> Learned:
        if self._learned is None:
            self._learned = Learned(
                input=self._input.ratios(),
                output=self._output.ratios(),
                output_p95=self._p95(),
                cached_shares={key: round(share, 3) for key, share in self._shares.items() if share >= 0.01},
            )
        return self._learned

    def _add_length(self, tokens: int) -> None:
        if len(self._lengths) < MOST_LENGTHS:
            self._lengths.append(tokens)
            return
        self._lengths[self._next] = tokens
        self._next = (self._next + 1) % MOST_LENGTHS

    def _p95(self) -> int | None:
        count = len(self._lengths)
        return sorted(self._lengths)[math.ceil(count * 0.95) - 1] if count >= ENOUGH else None

    def _add_share(self, key: str, share: float) -> None:
        before = self._shares.get(key)
        self._shares[key] = share if before is None else before + _SHARE_STEP * (share - before)
        self._shares.move_to_end(key)
        if len(self._shares) > MOST_SHARES:
            self._shares.popitem(last=False)


class _Fit:
    """The ratios of one direction, relative to `constants`: 1 is a constant itself. A ratio whose constant is 0 is
    not fitted."""

    def __init__(self, constants: Ratios) -> None:
        self._constants = weights(constants)
        self._used = [at for at, constant in enumerate(self._constants) if constant]
        size = len(self._used)
        self._squares: Matrix = [[0.0] * (row + 1) for row in range(size)]
        self._sums = [0.0] * size
        self._found = [1.0] * size
        self._seen = self._count = 0

    def add(self, count: TextCount, tokens: int, hidden: int = 0) -> None:
        """One text whose tokens are known. `hidden` of them may be no part of the text that was seen: some models show
        their reasoning, of others it is only counted."""
        self._seen += 1
        if self._seen > _EACH and self._seen % _ONE_IN:
            return
        parts = self._parts(count)
        expected = sum(parts)
        if expected < _LEAST_TOKENS:
            return
        if 0 < hidden < tokens and _distance(expected, tokens - hidden) < _distance(expected, tokens):
            tokens -= hidden
        if _distance(expected, tokens) > _FARTHEST:
            return
        shares = [part / tokens for part in parts]
        error = abs(sum(share * found for share, found in zip(shares, self._found, strict=True)) - 1.0)
        weight = 1.0 if self._count < ENOUGH or error <= _FAIR else _FAIR / error
        for row, (share, squares) in enumerate(zip(shares, self._squares, strict=True)):
            self._sums[row] = self._sums[row] * _KEEP + weight * share
            for column in range(row + 1):
                squares[column] = squares[column] * _KEEP + weight * share * shares[column]
        self._count += 1
        if self._count % ENOUGH == 0:
            self._found = self._solved()

    def ratios(self) -> Ratios | None:
        """The fit; None from too few texts."""
        if self._count < ENOUGH:
            return None
        values = list(self._constants)
        for at, found in zip(self._used, self._solved(), strict=True):
            values[at] *= found
        return ratios_from(tuple(values))

    def _parts(self, count: TextCount) -> list[float]:
        """What each quantity makes in tokens, by the constants."""
        amounts = quantities(count)
        return [amounts[at] * self._constants[at] for at in self._used]

    def _solved(self) -> list[float]:
        """The least squares with their pull towards 1; nothing is negative."""
        size = len(self._used)
        shift = (_PULL_ALL - _PULL_ONE) / size
        squares = [
            [value + shift + (_PULL_ONE if row == column else 0.0) for column, value in enumerate(line)]
            for row, line in enumerate(self._squares)
        ]
        sums = [value + _PULL_ALL for value in self._sums]
        return [min(max(value, 0.0), _FARTHEST) for value in solve(squares, sums)]


def _distance(one: float, other: float) -> float:
    """How many times larger the larger one is; both are more than 0."""
    return one / other if one > other else other / one


_NO_LESSON = Learned()
