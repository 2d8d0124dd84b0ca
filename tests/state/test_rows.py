"""Rows that every database takes."""

import math

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.entry import Entry, Money
from headrace.model.usage import Usage
from headrace.state import schema
from headrace.state.rows import MOST_COUNT, amendment_row, entry_row, opened_row, reached_row
from tests.state.journals import entry, opened, reached

COLUMNS = [column.name for column in schema.entry.columns]


def columns(one: Entry) -> dict[str, object]:
    """The row by name."""
    return dict(zip(COLUMNS, entry_row(one, "node", 3), strict=True))


def record_of(row: dict[str, object]) -> Entry:
    """The whole entry in it, which is taken out."""
    data = row.pop("record")
    assert isinstance(data, bytes)
    return msgspec.msgpack.decode(data, type=Entry)


def test_an_entry_row() -> None:
    one = entry("hr_1", at=5.0, tokens=7)
    found = columns(one)
    assert record_of(found) == one
    assert found == {
        "id": "hr_1",
        "at": 5.0,
        "duration_s": 1.5,
        "first_event_s": 0.25,
        "node": "node",
        "slot": 3,
        "protocol": "chat",
        "operation": "chat.completions",
        "key": "dev",
        "owner": "ann",
        "model": "m",
        "served_model": "m-1",
        "channel": "b",
        "credential": "y",
        "attempts": 2,
        "stream": True,
        "end": "completed",
        "reason": "stop",
        "kind": "",
        "source": "",
        "status": 200,
        "input_total": 9,
        "cached_input": 2,
        "cache_write": None,
        "cache_write_1h": None,
        "audio_input": None,
        "output_total": 7,
        "reasoning": 0,
        "audio_output": None,
        "usage_origin": "upstream",
        "cache_write_5m": None,
        "cache_write_30m": None,
        "cache_write_12h": None,
        "image_input": None,
        "image_output": None,
        "tier": "",
        "cost": 700,
        "charge": 1400,
        "counted": 1400,
        "price": "v1",
        "multiplier": 2_000_000_000,
        "labels": '{"team":"red"}',
    }


def test_without_attempts() -> None:
    found = columns(msgspec.structs.replace(entry("a"), attempts=()))
    assert (found["channel"], found["credential"], found["attempts"]) == ("", "", 0)


def test_what_a_column_cannot_hold_stays_in_the_record() -> None:
    one = msgspec.structs.replace(
        entry("a"),
        at=math.inf,
        duration_s=math.nan,
        model="a\0b",
        status=2**40,
        usage=Usage(input_total=2**63, image_output=2**64 - 1, output_total=-(2**63), reasoning=MOST_COUNT),
    )
    found = columns(one)
    assert (found["at"], found["duration_s"], found["model"], found["status"]) == (
        0.0,
        0.0,
        "a\N{REPLACEMENT CHARACTER}b",
        None,
    )
    assert (found["input_total"], found["image_output"]) == (None, None)
    assert (found["output_total"], found["reasoning"]) == (-(2**63), MOST_COUNT)
    record = record_of(found)
    assert record.model == "a\0b" and record.usage == one.usage


def test_money_that_no_column_can_hold() -> None:
    money = Money(cost=2**63, charge=-(2**63), counted=2**64 - 1, price="v\0", multiplier=2**64 - 1)
    found = columns(msgspec.structs.replace(entry("a"), money=money, labels=(("a\0", '"\0'), ("b", "é"))))
    assert (found["cost"], found["charge"], found["counted"]) == (None, -(2**63), MOST_COUNT)
    assert (found["price"], found["multiplier"]) == ("v\N{REPLACEMENT CHARACTER}", MOST_COUNT)
    assert found["labels"] == '{"a\N{REPLACEMENT CHARACTER}":"\\"\N{REPLACEMENT CHARACTER}","b":"é"}'
    assert record_of(found).money == money
    assert columns(msgspec.structs.replace(entry("a"), money=Money(counted=-1)))["counted"] == 0
    assert columns(msgspec.structs.replace(entry("a"), labels=()))["labels"] is None


def test_an_amendment_row() -> None:
    money = Money(cost=2**63, charge=3, counted=4, price="v2", multiplier=5, unpriced=("audio_input",))
    row = amendment_row("a\0", 2, math.inf, "a\0 reason", money)
    mark = "\N{REPLACEMENT CHARACTER}"
    assert row[:-1] == (f"a{mark}", 2, 0.0, f"a{mark} reason", None, 3, 4, "v2", 5)
    assert len(row) == len(schema.amendment.columns)
    assert isinstance(row[-1], bytes) and msgspec.msgpack.decode(row[-1], type=Money) == money


@given(st.text(), st.integers(0, 2**64 - 1), st.floats())
def test_any_value_becomes_one_that_fits(text: str, number: int, seconds: float) -> None:
    one = msgspec.structs.replace(
        entry("a"), at=seconds, key=text, reason=text, status=number, usage=Usage(input_total=number)
    )
    found = columns(one)
    assert isinstance(found["at"], float) and math.isfinite(found["at"])
    assert "\0" not in str(found["key"]) + str(found["reason"])
    assert all(found[name] is None or abs(int(str(found[name]))) <= MOST_COUNT for name in ("status", "input_total"))


def test_the_rows_of_what_is_open() -> None:
    begun, at = opened("a", at=2.0), reached("a")
    row = opened_row(begun, at, "node", 1, "inc")
    assert row[:5] == ("a", "node", 1, "inc", 2.0)
    assert len(row) == len(schema.open_exchange.columns)
    assert opened_row(begun, None, "node", 1, "inc")[-1] is None
    assert reached_row(at) == (row[-1], "a")
