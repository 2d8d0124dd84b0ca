"""One line for an exchange: all that a search needs, nothing that was said."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.entry import AttemptLine, Entry, Wire
from headrace.model.usage import Usage
from headrace.state import schema
from headrace.telemetry.log import Line, line

FULL = Entry(
    id="hr_1",
    at=1_800_000_000.25,
    duration_s=1.5,
    protocol="chat",
    operation="chat.completions",
    key="dev",
    owner="ann",
    model="m",
    stream=True,
    end="interrupted",
    reason="cut",
    kind="upstream_interrupted",
    source="upstream",
    detail="reset by peer",
    status=200,
    served_model="m-1",
    usage=Usage(input_total=9, cached_input=2, cache_write=0, output_total=4, reasoning=1, tier="flex"),
    usage_origin="upstream_partial",
    attempts=(
        AttemptLine(channel="a", credential="x", upstream_model="m", started_s=0.0, ended_s=0.1, status=503),
        AttemptLine(channel="b", credential="y", upstream_model="m", started_s=0.1, ended_s=1.5, status=200),
    ),
    client_request_id="mine",
    wire=Wire(events=3, first_event_s=0.25),
)
SHORT = Entry(
    id="hr_2", at=0.0, duration_s=0.0, protocol="chat", operation="", key="dev", end="refused", reason="model_not_found"
)


def test_a_whole_line() -> None:
    text = line(FULL, "node", 3)
    assert text.endswith(b"}\n") and text.count(b"\n") == 1
    assert msgspec.json.decode(text) == {
        "time": "2027-01-15T08:00:00.250000Z",
        "event": "exchange",
        "id": "hr_1",
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
        "end": "interrupted",
        "reason": "cut",
        "kind": "upstream_interrupted",
        "source": "upstream",
        "detail": "reset by peer",
        "status": 200,
        "duration_s": 1.5,
        "first_event_s": 0.25,
        "input_total": 9,
        "cached_input": 2,
        "cache_write": 0,
        "output_total": 4,
        "reasoning": 1,
        "tier": "flex",
        "usage_origin": "upstream_partial",
        "client_request_id": "mine",
    }


def test_what_was_not_said_is_left_out() -> None:
    assert msgspec.json.decode(line(SHORT, "n", 0)) == {
        "time": "1970-01-01T00:00:00Z",
        "event": "exchange",
        "id": "hr_2",
        "node": "n",
        "slot": 0,
        "protocol": "chat",
        "key": "dev",
        "end": "refused",
        "reason": "model_not_found",
        "duration_s": 0.0,
    }


@pytest.mark.parametrize("at", [math.nan, math.inf, -1.0, 1e300])
def test_a_time_that_no_calendar_has(at: float) -> None:
    assert msgspec.json.decode(line(msgspec.structs.replace(SHORT, at=at), "n", 0))["time"] == "1970-01-01T00:00:00Z"


@given(st.text(), st.floats())
def test_whatever_stands_in_it_is_one_line(text: str, seconds: float) -> None:
    """A client's model name cannot begin a line of its own."""
    made = line(msgspec.structs.replace(FULL, model=text, reason=text, at=seconds, duration_s=seconds), text, 0)
    assert made.endswith(b"\n") and not set(made[:-1]) & set(range(32)), "no control character stands open"
    found = msgspec.json.decode(made)
    assert found["reason"] == text and found["node"] == text


def test_the_words_are_those_of_the_ledger() -> None:
    """But for what the ledger keeps in the whole record alone."""
    columns = {column.name for column in schema.entry.columns}
    assert set(Line.__struct_fields__) - columns == {"time", "event", "detail", "client_request_id"}
