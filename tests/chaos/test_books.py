"""The comparison itself: what it takes for right, and that it takes nothing else for it."""

from dataclasses import replace

import msgspec
import pytest

from headrace.journal.ids import Ids
from headrace.model.entry import Entry, Wire
from tests.chaos.books import BEHIND_THE_END_S, Audit, Death, audit
from tests.chaos.load import Asked, End

NUMBER = 0xBEEF
KILLED = Death(NUMBER, 100.0)
WHOLE = Asked(
    "m-0000001", "chat", "quick", stream=True, id=Ids(NUMBER).new(), status=200, length=300, sha256="ab", ended=99.9,
    end=End.WHOLE,
)  # fmt: skip
COMPLETED = Entry(
    id=WHOLE.id, at=1.0, duration_s=0.1, protocol="chat", operation="", key="chaos", model="quick", end="completed",
    reason="stop", client_request_id=WHOLE.marker, wire=Wire(released=300, hash_out="ab"),
)  # fmt: skip
LOST = msgspec.structs.replace(COMPLETED, end="interrupted", reason="worker_lost", wire=Wire(released=200))


def audited(one: Asked, entry: Entry, *deaths: Death) -> Audit:
    return audit([one], [], [entry], deaths)


def test_a_whole_answer_is_completed_with_the_same_bytes() -> None:
    assert not audited(WHOLE, COMPLETED).faults
    assert not audited(WHOLE, COMPLETED, KILLED).faults
    assert audited(WHOLE, msgspec.structs.replace(COMPLETED, wire=Wire(released=300, hash_out="cd"))).faults
    assert audited(WHOLE, msgspec.structs.replace(COMPLETED, model="slow")).faults
    assert audited(WHOLE, msgspec.structs.replace(COMPLETED, client_request_id="m-0000002")).faults
    assert audit([WHOLE], [], [], [KILLED]).faults, "no entry at all"
    assert audit([WHOLE], [], [LOST, COMPLETED], [KILLED]).faults, "two"


@pytest.mark.parametrize("ended", [99.6, 99.99, 100.2])
def test_its_entry_may_be_lost_with_the_worker_that_was_killed_at_its_end(ended: float) -> None:
    other = Death(NUMBER - 1, 50.0)
    found = audited(replace(WHOLE, ended=ended), LOST, other, KILLED)
    assert not found.faults
    assert found.behind_the_end == 1, "it is counted"


@pytest.mark.parametrize(
    ("deaths", "ended"),
    [
        ([], 99.9),
        ([Death(NUMBER ^ 1, 100.0)], 99.9),
        ([Death(NUMBER ^ 1, 100.0), Death(NUMBER, 50.0)], 99.9),
        ([KILLED], 100.0 - BEHIND_THE_END_S - 0.01),
        ([KILLED], 100.0 + BEHIND_THE_END_S + 0.01),
    ],
    ids=["nobody was killed", "another worker was", "another then, this one long ago", "long after", "long before"],
)
def test_it_may_be_lost_nowhere_else(deaths: list[Death], ended: float) -> None:
    found = audited(replace(WHOLE, ended=ended), LOST, *deaths)
    assert found.faults
    assert found.behind_the_end == 0


@pytest.mark.parametrize(
    ("end", "reason"),
    [
        ("interrupted", "upstream was cut"),
        ("interrupted", "internal"),
        ("stalled", "stall"),
        ("client_gone", "client left"),
        ("stopped", "shutdown"),
        ("refused", "upstream 400"),
        ("failed", "worker_lost"),
    ],
)
def test_a_kill_excuses_no_other_end(end: str, reason: str) -> None:
    found = audited(WHOLE, msgspec.structs.replace(LOST, end=end, reason=reason), KILLED)
    assert found.faults
    assert found.behind_the_end == 0


def test_what_is_left_of_a_lost_one_is_no_more_than_its_client_got() -> None:
    assert audited(WHOLE, msgspec.structs.replace(LOST, wire=Wire(released=301)), KILLED).faults


def test_a_kill_excuses_no_completed_entry_of_an_answer_that_ended_in_an_error() -> None:
    assert audited(replace(WHOLE, error=True), COMPLETED, KILLED).faults
    assert not audited(replace(WHOLE, error=True), LOST, KILLED).faults


def test_a_broken_answer_is_never_refused_or_left() -> None:
    broken = replace(WHOLE, end=End.BROKEN)
    assert not audited(broken, LOST, KILLED).faults
    assert not audited(broken, COMPLETED, KILLED).faults, "all was in the transport"
    for end in ("refused", "client_gone", "stopped"):
        assert audited(broken, msgspec.structs.replace(LOST, end=end), KILLED).faults
