"""Compares what the ledger charges with what the simulator counted: to the unit, within the stated error, or apart.

The prices are applied anew here, in fractions, so no line of the product's own arithmetic is asked about itself.
"""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from headrace.model.entry import Entry
from headrace.simulator import Recorded
from headrace.simulator.answer import tokens_from_bytes
from headrace.simulator.recorded import Truth
from headrace.state.spending import KEY, OWNER
from tests.chaos.books import MARKER
from tests.chaos.priced import cost_of, multiplier_of

ESTIMABLE = 15
"""An answer cut before so many tokens says nothing about how good estimates are; docs/reference/estimates.md."""
BEYOND, FEW = 1.25, 5
"""How many times what had been sent a checkpoint's estimate may say, and tokens more: it knows of nothing later."""
_TOLD = re.compile(rb'"candidatesTokenCount":(\d+)')
_SAID = {
    "chat": re.compile(rb'"content":("[^"]*")'),
    "responses": re.compile(rb'"delta":("[^"]*")'),
    "messages": re.compile(rb'"text":("[^"]*")'),
    "gemini": re.compile(rb'"text":("[^"]*")'),
}
"""A piece of an answer's text in its events; the texts here hold no quotation marks."""


@dataclass(frozen=True, slots=True)
class Pair:
    """What the ledger has of an exchange, and its call as the simulator recorded it."""

    entry: Entry
    call: Recorded

    @property
    def truth(self) -> Truth:
        """Tokens by the simulator's count."""
        return self.call.truth

    @property
    def reported(self) -> tuple[int, int | None]:
        """Input and output as the simulator told them last. A Gemini stream tells its output with each event, so there
        it is what stood in the bytes that the gateway has had; all others tell it at the end alone."""
        if self.entry.protocol != "gemini" or not self.entry.stream:
            return self.truth.prompt, self.truth.completion
        told = _TOLD.findall(self._events())
        return self.truth.prompt, int(told[-1]) if told else None

    @property
    def had(self) -> int:
        """Tokens of the answer that the gateway has had: fewer than were sent where it closed the connection, or
        where that broke, with some on their way."""
        said = "".join(json.loads(piece) for piece in _SAID[self.entry.protocol].findall(self._events()))
        return tokens_from_bytes(len(said.encode()))

    @property
    def input_error(self) -> float:
        """Of what is charged, relative to what was sent up."""
        return (self.entry.usage.input_total or 0) / self.truth.prompt - 1

    @property
    def output_error(self) -> float:
        """Of what is charged, relative to what the gateway has had."""
        return (self.entry.usage.output_total or 0) / self.had - 1

    def _events(self) -> bytes:
        """Those that the gateway has had whole."""
        return self.call.sent[: self.entry.wire.received].replace(b"\r\n", b"\n").rpartition(b"\n\n")[0]


@dataclass(slots=True)
class Accounts:
    """What was found: `faults` are sentences, and none is what a test wants."""

    faults: list[str] = field(default_factory=list)
    exact: list[Pair] = field(default_factory=list)
    """Usage by the upstream, all of it right to the unit, or there is a fault."""
    estimated: list[Pair] = field(default_factory=list)
    """Usage of which some is not the upstream's last word: `estimated`, or `upstream_partial`."""
    lost: list[Pair] = field(default_factory=list)
    """Of workers that were killed: by their last checkpoints."""
    origins: Counter[str] = field(default_factory=Counter)

    def estimable(self) -> list[Pair]:
        """The estimates of answers that are long enough. A stream that failed is billed what it had reported, which is
        none."""
        return [pair for pair in self.estimated if pair.had >= ESTIMABLE and pair.entry.end != "failed"]


def compare(entries: Sequence[Entry], calls: Iterable[Recorded]) -> Accounts:
    """Each entry with the one call that its exchange made."""
    found = Accounts()
    made = _by_marker(calls)
    for entry in entries:
        is_lost = entry.reason == "worker_lost"
        found.origins["worker_lost" if is_lost else entry.usage_origin] += 1
        found.faults += _arithmetic(entry)
        own = made.get(entry.client_request_id, ())
        if len(own) > 1:
            found.faults.append(f"{entry.id} made {len(own)} calls")
        if not own:
            if entry.money.counted:
                found.faults.append(f"{entry.id} is charged, and nothing was asked upstream")
            continue
        pair = Pair(entry, own[-1])
        if is_lost:
            found.lost.append(pair)
            found.faults += _not_beyond(pair)
        elif entry.usage_origin == "upstream":
            found.exact.append(pair)
            found.faults += _to_the_unit(pair)
        elif entry.usage_origin != "none":
            found.estimated.append(pair)
    return found


def counted_by(entries: Iterable[Entry]) -> Mapping[tuple[str, str], int]:
    """Nano-units of all entries, by kind and name of who they count for."""
    sums: dict[tuple[str, str], int] = defaultdict(int)
    for entry in entries:
        sums[KEY, entry.key] += entry.money.counted
        if entry.owner:
            sums[OWNER, entry.owner] += entry.money.counted
    return sums


def report(found: Accounts) -> Iterator[str]:
    """Lines for whoever ran it."""
    tokens = sum((one.entry.usage.input_total or 0) + (one.entry.usage.output_total or 0) for one in found.exact)
    money = sum(one.entry.money.counted for one in found.exact)
    yield f"usage: {dict(found.origins)}"
    yield f"by the upstream: {len(found.exact)} exchanges, {tokens} tokens, {money} nano-units, each to the unit"
    for end in sorted({one.entry.end for one in found.estimated}):
        some = [one for one in found.estimable() if one.entry.end == end]
        few = sum(one.entry.end == end for one in found.estimated) - len(some)
        short = f"; {few} with fewer than {ESTIMABLE} tokens" if few else ""
        yield f"estimated, {end}: {errors(some)}{short}"
    yield f"estimated, all: {errors(found.estimable())}"
    on_its_way = sum(one.truth.sent - one.had for one in found.estimated)
    yield f"  sent, and on its way when the connection ended: {on_its_way} tokens, charged to nobody"
    sent = sum(one.truth.sent for one in found.lost)
    noted = sum(one.entry.usage.output_total or 0 for one in found.lost)
    charged = sum(one.entry.money.counted for one in found.lost)
    due = float(sum(map(_sent_cost, found.lost), Fraction()))
    yield (
        f"workers lost, {len(found.lost)} exchanges: {noted} tokens of output at the last checkpoint and {sent - noted}"
        f" after it; {charged} nano-units charged, {due - charged:.0f} to nobody"
    )


def errors(pairs: Sequence[Pair]) -> str:
    """Mean and largest error of the estimates of some exchanges."""
    if not pairs:
        return "none"
    output = [abs(one.output_error) for one in pairs]
    read = [abs(one.input_error) for one in pairs]
    return (
        f"{len(pairs)} exchanges, output off by {mean(output):.1%} in the mean and {max(output):.1%} at most,"
        f" input by {mean(read):.1%} and {max(read):.1%}"
    )


def mean(values: Sequence[float]) -> float:
    """Of one value or more."""
    return sum(values) / len(values)


def half_up(amount: Fraction) -> int:
    """A whole number of nano-units."""
    return math.floor(amount + Fraction(1, 2))


def _by_marker(calls: Iterable[Recorded]) -> Mapping[str, list[Recorded]]:
    found: dict[str, list[Recorded]] = defaultdict(list)
    for call in calls:
        if (marker := MARKER.search(call.body)) is not None:
            found[marker[0].decode()].append(call)
    return found


def _arithmetic(entry: Entry) -> Iterator[str]:
    """Cost, charge and what is counted follow from the usage, by the price of the protocol and the key's factor."""
    usage, money = entry.usage, entry.money
    cost = cost_of(entry.protocol, usage.input_total or 0, usage.output_total or 0)
    due = half_up(cost * multiplier_of(entry.key))
    if entry.usage_origin == "none":
        cost, due = Fraction(), 0
    if entry.reason == "worker_lost" and entry.usage_origin == "none" and money.counted == 0:
        return  # before its first checkpoint nothing is known
    if (money.cost, money.charge, money.counted) != (half_up(cost), due, due):
        yield f"{entry.id} ({entry.end}, {entry.usage_origin}): {money}, and it comes to {half_up(cost)} and {due}"


def _to_the_unit(pair: Pair) -> Iterator[str]:
    usage = pair.entry.usage
    charged = (usage.input_total, usage.output_total)
    if charged != pair.reported:
        yield (
            f"{pair.entry.id} ({pair.entry.protocol}, {pair.entry.end}): {charged} is charged, and the upstream told"
            f" {pair.reported} of {pair.truth}"
        )


def _not_beyond(pair: Pair) -> Iterator[str]:
    noted = pair.entry.usage.output_total or 0
    if noted > BEYOND * pair.truth.sent + FEW:
        yield f"{pair.entry.id}: its last checkpoint has {noted} tokens, and {pair.truth.sent} had been sent"


def _sent_cost(pair: Pair) -> Fraction:
    """What all would have been charged that had been sent."""
    entry, truth = pair.entry, pair.truth
    return cost_of(entry.protocol, truth.prompt, truth.sent) * multiplier_of(entry.key) if truth.sent else Fraction()
