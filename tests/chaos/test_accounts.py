"""The comparison itself: what it takes for right, and that it takes nothing else for it."""

from collections.abc import Mapping
from fractions import Fraction

import msgspec
import pytest

from headrace.model.entry import Entry, Money, Wire
from headrace.model.limits import NANO
from headrace.model.usage import Usage
from headrace.simulator import Recorded
from headrace.simulator.recorded import Truth
from tests.chaos.accounts import compare, counted_by, half_up
from tests.chaos.priced import cost_of

MARKER = "m-0000001"
EVENTS = b"".join(b'data: {"content":"12345678"}\n\n' for _ in range(10))
"""20 tokens by the simulator's rule."""


def call(prompt: int = 100, completion: int = 30, sent: int = 30, events: bytes = EVENTS) -> Recorded:
    return Recorded(1, 1, body=MARKER.encode(), sent=events, truth=Truth(prompt, completion, sent))


def entry(
    tokens: tuple[int, int] = (100, 30),
    *,
    key: str = "plain",
    origin: str = "upstream",
    end: tuple[str, str] = ("completed", "stop"),
    received: int = len(EVENTS),
) -> Entry:
    """Of a chat: 1,250 nano-units for a token of input, 10,000 for one of output."""
    cost = tokens[0] * 1_250 + tokens[1] * 10_000
    charge = cost * 3 // 2 if key == "dear" else cost
    return Entry(
        id="hr_1", at=1.0, duration_s=0.1, protocol="chat", operation="", key=key, model="prose", stream=True,
        end=end[0], reason=end[1], client_request_id=MARKER, usage=Usage(input_total=tokens[0], output_total=tokens[1]),
        usage_origin=origin, money=Money(cost=cost, charge=charge, counted=charge), wire=Wire(received=received),
        owner="team" if key == "dear" else "",
    )  # fmt: skip


def test_what_the_upstream_told_is_charged_to_the_unit() -> None:
    assert not compare([entry()], [call()]).faults
    assert not compare([entry(key="dear")], [call()]).faults
    assert compare([entry((100, 31))], [call()]).faults
    assert compare([entry((99, 30))], [call()]).faults
    assert len(compare([entry()], [call()]).exact) == 1


@pytest.mark.parametrize("changed", [{"cost": 425_001}, {"charge": None}, {"counted": 424_999}])
def test_money_follows_from_the_usage(changed: Mapping[str, int | None]) -> None:
    right = entry()
    assert right.money.cost == 425_000
    assert compare(
        [msgspec.structs.replace(right, money=msgspec.structs.replace(right.money, **changed))], [call()]
    ).faults


def test_nothing_is_charged_for_nothing() -> None:
    free = msgspec.structs.replace(
        entry(), end="refused", usage=Usage(), usage_origin="none", money=Money(cost=0, charge=0)
    )
    assert not compare([free], [call()]).faults
    assert not compare([free], []).faults
    assert compare([entry()], []).faults, "no call was made"
    assert compare([entry()], [call(), call()]).faults, "two were"


def test_an_estimate_is_compared_with_what_came() -> None:
    cut = ("interrupted", "reset")
    found = compare([entry((110, 21), origin="estimated", end=cut)], [call(sent=24)])
    (pair,) = found.estimable()
    assert not found.faults
    assert (pair.had, round(pair.output_error, 3), round(pair.input_error, 3)) == (20, 0.05, 0.1)
    short = entry((110, 21), origin="estimated", end=cut, received=len(EVENTS) // 2 + 3)
    assert compare([short], [call()]).estimated[0].had == 10, "events that came whole"
    assert not compare([short], [call()]).estimable()


def test_what_a_lost_worker_had_noted_stands_apart() -> None:
    lost = entry((100, 20), origin="estimated", end=("interrupted", "worker_lost"))
    found = compare([lost], [call(sent=28)])
    assert (len(found.lost), found.estimated, found.exact) == (1, [], [])
    assert not found.faults
    assert compare([lost], [call(sent=10)]).faults, "it knows of nothing that was sent later"


def test_sums_by_key_and_owner() -> None:
    dear = entry(key="dear")
    assert counted_by([dear, dear, entry()]) == {
        ("key", "dear"): 1_275_000, ("owner", "team"): 1_275_000, ("key", "plain"): 425_000
    }  # fmt: skip


def test_a_price_is_exact() -> None:
    assert cost_of("responses", 1, 0) == Fraction("0.123456789") * NANO / 1_000_000
    assert [half_up(Fraction(part, 4)) for part in range(5)] == [0, 0, 1, 1, 1]
