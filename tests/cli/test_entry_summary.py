"""What an operator reads first."""

import msgspec
import pytest

from headrace.cli.entry_summary import (
    client_words,
    end_words,
    fault_words,
    money_words,
    open_summary,
    seconds,
    summary,
    usage_words,
)
from headrace.model.entry import Checkpoint, Entry, Money, Opened, Wire
from headrace.model.outcome import End
from headrace.model.problem import Kind
from headrace.model.usage import ExtraUsage, Usage
from tests.cli.entries import PLAIN

FAILED_OVER = "east: 503 upstream_error after 0.100 s; then west: 200 after 1.399 s"


def changed(**fields: object) -> Entry:
    return msgspec.structs.replace(PLAIN, **fields)


def broken(**wire: object) -> Entry:
    """A stream that broke off behind three events of 100 bytes; `wire` says what was inserted."""
    return changed(
        end="interrupted", reason="upstream was cut", kind="upstream_interrupted", source="upstream",
        wire=msgspec.structs.replace(Wire(released=100, events=3, first_event_s=0.2), **wire),
    )  # fmt: skip


def test_the_whole_course_in_a_few_lines() -> None:
    assert dict(summary(PLAIN)) == {
        "asked": "gpt through chat.completions, streaming; key dev",
        "at": "2027-01-15 08:00:00.250+00:00",
        "ended": "completed: stop, after 1.500 s",
        "fault": "nobody's",
        "client saw": "status 200 and the whole stream, 8 events (942 bytes, the first after 0.200 s), 2 keepalives",
        "went to": FAILED_OVER,
        "tokens": "9 in (4 of them from a cache), 20 out; as the upstream reported",
        "money": "cost not known: nothing was priced",
    }


def test_who_asked_for_what() -> None:
    asked = dict(summary(changed(owner="team", model="", stream=False)))["asked"]
    assert asked == "no model through chat.completions; key dev of team"


def test_a_request_that_went_nowhere() -> None:
    assert "went to" not in dict(summary(changed(attempts=())))


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({}, "completed: stop"),
        ({"reason": ""}, "completed"),
        ({"end": "stalled", "reason": "stall", "kind": "upstream_stalled"},
         "stalled: no progress for the stall limit (upstream_stalled)"),
        ({"end": "refused", "reason": "draining", "kind": "draining", "source": "gateway"},
         "refused: draining (the gateway is shutting down)"),
        ({"end": "interrupted", "reason": "cut", "kind": "upstream_interrupted", "source": "upstream"},
         "interrupted: cut (upstream_interrupted)"),
        ({"end": "refused", "reason": "model_not_found", "kind": "model_not_found", "source": "client"},
         "refused: model_not_found (no model of this name is configured)"),
        ({"end": "interrupted", "reason": "worker_lost", "kind": "internal"}, "interrupted: its process died"),
        ({"end": "interrupted", "reason": "internal", "kind": "internal"}, "interrupted: a fault of the gateway"),
        ({"end": "refused", "reason": "new", "kind": "of_a_later_version"}, "refused: new (of_a_later_version)"),
        ({"end": "refused", "reason": "later", "kind": "later"}, "refused: later"),
        ({"end": "stopped", "reason": "total", "kind": "stopped"},
         "stopped: the limit of the whole time was over (stopped)"),
    ],
)  # fmt: skip
def test_the_end_in_words(fields: dict[str, object], words: str) -> None:
    assert end_words(changed(**fields)) == words


def test_every_end_and_kind_can_be_told() -> None:
    for end in End:
        for kind in Kind:
            entry = changed(end=end.value, reason=kind.value, kind=kind.value)
            assert end_words(entry).startswith(end.value)
            assert client_words(entry)


@pytest.mark.parametrize(
    ("source", "words"),
    [("", "nobody's"), ("client", "the client's"), ("gateway", "the gateway's"),
     ("upstream", "the upstream's (channel west)")],
)  # fmt: skip
def test_whose_fault_it_was(source: str, words: str) -> None:
    assert fault_words(changed(source=source)) == words


def test_an_upstreams_fault_without_an_attempt() -> None:
    assert fault_words(changed(source="upstream", attempts=())) == "the upstream's"


EVENTS = "3 events (100 bytes, the first after 0.200 s)"


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (broken(inserted=21, insertions=((100, 21),)),
         "status 200, 3 events (121 bytes, the first after 0.200 s), then the error event"),
        (broken(inserted=42, insertions=((50, 21), (121, 21)), keepalives=1),
         "status 200, 3 events (142 bytes, the first after 0.200 s), 1 keepalive, then the error event"),
        (broken(inserted=21, insertions=((100, 21),), keepalives=1),
         "status 200, 3 events (121 bytes, the first after 0.200 s), 1 keepalive, then a cut connection"),
        (broken(inserted=1, insertions=((100, 1),), repaired=1),
         "status 200, 3 events (101 bytes, the first after 0.200 s), then a cut connection"),
        (broken(inserted=4300, insertions=((50, 21),) * 200, keepalives=203),
         "status 200, 3 events (4400 bytes, the first after 0.200 s), 203 keepalives, then the error event"),
        (broken(), f"status 200, {EVENTS}, then a cut connection"),
    ],
)  # fmt: skip
def test_how_a_broken_stream_ended_for_the_client(entry: Entry, words: str) -> None:
    assert client_words(entry) == words


NOTHING = Wire(received=100)
ONE = Wire(released=100, events=1, first_event_s=0.2)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"end": "refused", "kind": "upstream_error", "status": 502, "wire": NOTHING},
         "status 502 with the error upstream_error"),
        ({"end": "refused", "kind": "", "status": 400}, "status 400, in the upstream's own words"),
        ({"end": "refused", "kind": "upstream_timeout", "status": 200, "early_open": True},
         "status 200 and an open stream without an event, then the error event"),
        ({"end": "refused", "kind": "draining", "status": None}, "nothing: it had gone"),
        ({"end": "client_gone", "wire": ONE},
         "status 200 and 1 event (100 bytes, the first after 0.200 s); then it left"),
        ({"end": "client_gone", "status": None, "wire": NOTHING}, "nothing: it left before"),
        ({"end": "failed", "wire": ONE},
         "status 200 and the whole stream, 1 event (100 bytes, the first after 0.200 s); the upstream's error is its"
         " end"),
        ({"end": "completed", "wire": Wire(released=300)}, "status 200 and the whole reply, 300 bytes"),
        ({"end": "interrupted", "reason": "worker_lost", "wire": ONE},
         "status 200 and 1 event (100 bytes, the first after 0.200 s) up to the last checkpoint; then the connection"
         " broke"),
        ({"end": "interrupted", "reason": "internal", "kind": "internal", "status": 500, "wire": NOTHING},
         "status 500 with the error internal"),
        ({"end": "stopped", "reason": "shutdown", "kind": "stopped", "status": None, "wire": NOTHING},
         "nothing: it had gone"),
    ],
)  # fmt: skip
def test_what_the_client_saw(fields: dict[str, object], words: str) -> None:
    assert client_words(changed(**fields)) == words


@pytest.mark.parametrize(
    ("origin", "usage", "words"),
    [
        ("upstream", Usage(input_total=9, output_total=20, reasoning=5),
         "9 in, 20 out (5 of them reasoning); as the upstream reported"),
        ("upstream",
         Usage(input_total=9, cached_input=4, output_total=0,
               extra=(ExtraUsage(kind="fallback", model="a", usage=Usage(input_total=30, output_total=5)),
                      ExtraUsage(kind="advisor", model="b", usage=Usage(input_total=3)))),
         "9 in (4 of them from a cache), 0 out, and by other models 33 in, 5 out; as the upstream reported"),
        ("upstream_partial", Usage(input_total=9),
         "9 in, an unknown number out; partial: the upstream's last report before the end"),
        ("none", Usage(), "none: the upstream reported nothing"),
        ("estimated", Usage(output_total=0), "an unknown number in, 0 out; estimated: no upstream reported it"),
    ],
)  # fmt: skip
def test_tokens_tell_their_origin(origin: str, usage: Usage, words: str) -> None:
    assert usage_words(changed(usage=usage, usage_origin=origin)) == words


def test_an_exchange_that_is_open() -> None:
    opened = Opened(id="hr_1", at=PLAIN.at, protocol="chat", operation="chat.completions", key="dev", model="gpt")
    assert dict(open_summary(opened, None))["so far"] == "no checkpoint was written"
    reached = Checkpoint(id="hr_1", duration_s=20.0, status=200, attempts=PLAIN.attempts, wire=PLAIN.wire)
    lines = dict(open_summary(opened, reached))
    assert lines["asked"] == "gpt through chat.completions; key dev"
    assert lines["ended"].startswith("not yet")
    assert lines["client saw"] == "status 200, 8 events (942 bytes, the first after 0.200 s), 2 keepalives"
    assert lines["went to"] == FAILED_OVER
    assert "went to" not in dict(open_summary(opened, Checkpoint(id="hr_1", duration_s=1.0)))


def test_seconds() -> None:
    assert seconds(0.12345) == "0.123 s"


@pytest.mark.parametrize(
    ("money", "words"),
    [
        (Money(), "cost not known: nothing was priced"),
        (Money(cost=1_230_000, charge=1_353_000), "cost 0.00123, charge 0.001353"),
        (Money(cost=0, charge=0), "cost 0, charge 0"),
        (Money(cost=2 * 10**9, charge=None), "cost 2, charge not known"),
        (Money(unpriced=("price",)), "cost not known: the model has no price"),
        (Money(unpriced=("cache_write.1h", "tier flex", "unknown input")),
         "cost not known: no price for cache_write.1h, no price for tier flex, the input is not known"),
    ],
)  # fmt: skip
def test_money_is_exact_or_said_to_be_unknown(money: Money, words: str) -> None:
    assert money_words(money) == words
