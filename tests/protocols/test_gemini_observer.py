"""The observer alone: what the recorded streams in tests/wire do not say by themselves."""

import json

import pytest

from headrace.model.outcome import End
from headrace.model.problem import Kind
from headrace.model.usage import NOTHING, Calls, Usage
from headrace.model.wire import BodyEnd, Sight
from headrace.protocols.gemini_observer import GeminiObserver
from tests.stand.gemini import chunk, error

DATA = {"parts": [{"text": "x"}]}


def data(payload: str, end: str = "\r\n") -> bytes:
    return f"data: {payload}{end}{end}".encode()


def see(*payloads: object, observer: GeminiObserver | None = None) -> GeminiObserver:
    observer = observer or GeminiObserver()
    for payload in payloads:
        observer.observe(data(payload if isinstance(payload, str) else json.dumps(payload)))
    return observer


def part(**members: object) -> dict[str, object]:
    return {"candidates": [{"content": {"parts": [members]}}]}


@pytest.mark.parametrize(
    ("event", "sight"),
    [
        (data(chunk("A", tokens=1)), Sight.PROGRESS),
        (data(chunk("")), Sight.PROGRESS),
        (data(json.dumps(part(thoughtSignature="x"))), Sight.PROGRESS),
        (data(chunk(finish="STOP")), Sight.PROGRESS),
        (data(chunk(finish="FINISH_REASON_UNSPECIFIED")), Sight.PREAMBLE),
        (data(chunk(tokens=0)), Sight.PREAMBLE),
        (data('{"candidates":[{"content":{"role":"model"},"index":0}]}'), Sight.PREAMBLE),
        (data("{}"), Sight.PREAMBLE),
        (data("[1]"), Sight.PREAMBLE),
        (data('{"promptFeedback":{"blockReason":"SAFETY"}}'), Sight.PROGRESS),
        (data('{"promptFeedback":{"safetyRatings":[]}}'), Sight.PREAMBLE),
        (data('{"promptFeedback":{"blockReason":"BLOCKED_REASON_UNSPECIFIED"}}'), Sight.PREAMBLE),
        (data(error(503)), Sight.ERROR),
        (data('{"error":"no"}'), Sight.ERROR),
        (data('{"error":{}}'), Sight.PREAMBLE),
        (data(error(503)[:-1] + ',"candidates":[{"content":{"parts":[{"text":"A"}]}}]}'), Sight.PROGRESS),
        (error(503).encode() + b"\r\n\r\n", Sight.ERROR),
        (b"[" + error(503).encode() + b"]\r\n\r\n", Sight.ERROR),
        (b'{"candidates": []}\r\n\r\n', Sight.HEARTBEAT),
        (b"[]\r\n\r\n", Sight.HEARTBEAT),
        (b": c\r\n\r\n", Sight.COMMENT),
        (b": c\r\n: d\r\n\r\n", Sight.COMMENT),
        (b"\r\n", Sight.HEARTBEAT),
        (b"\r", Sight.HEARTBEAT),
        (b"event: ping\n\n", Sight.HEARTBEAT),
        (b"data: : keepalive\n\n", Sight.HEARTBEAT),
        (b'data: {"candidates": [\n\n', Sight.HEARTBEAT),
        (b"data: [DONE]\n\n", Sight.HEARTBEAT),
        (b": c\r\n" + data(chunk("A")), Sight.PROGRESS),
        (b'data: {"candidates":[{"content":{"parts":[{"text":"\\ud83d"}]}}]}\n\n', Sight.PROGRESS),
        (b"data: " + b"[" * 100_000 + b"\n\n", Sight.HEARTBEAT),
    ],
)
def test_sights(event: bytes, sight: Sight) -> None:
    assert GeminiObserver().observe(event) is sight


def test_what_is_kept() -> None:
    observer = see(chunk("A", tokens=1), chunk("C", "STOP", 3))
    assert (observer.served_model, observer.finish_reasons) == ("up", ("STOP",))
    assert observer.usage.output_total == 3
    assert (observer.features.events, observer.features.counted().ascii_bytes) == (2, 2)
    assert observer.usage is not observer.usage, "made when it is asked for"
    assert GeminiObserver().usage == NOTHING


@pytest.mark.parametrize(
    ("payloads", "final"),
    [
        ([chunk("A", tokens=1)], True),
        ([chunk("A", tokens=1), chunk("B", tokens=2)], True),
        # the count of an earlier chunk says nothing of what came with this one
        ([chunk("A", tokens=1), part(text="B") | {"usageMetadata": {"promptTokenCount": 5}}], False),
        ([chunk("A", tokens=1), {"usageMetadata": {"promptTokenCount": 5}}], True),
        ([part(text="A")], False),
        ([part(text="A"), {"usageMetadata": {"promptTokenCount": 0, "candidatesTokenCount": 0}}], True),
    ],
)
def test_whether_a_report_came_behind_the_last_output(payloads: list[object], final: bool) -> None:
    assert see(*payloads).usage_is_final is final


@pytest.mark.parametrize(
    ("metadata", "calls"),
    [
        ({"webSearchQueries": ["a", "b"]}, Calls(grounding=1)),
        ({"groundingChunks": [{"maps": {"title": "x"}}]}, Calls(grounding=1)),
        ({"webSearchQueries": [], "searchEntryPoint": {"renderedContent": ""}}, Calls()),
        ({}, Calls()),
        (None, Calls()),
        ("odd", Calls()),
    ],
)
def test_an_answer_that_rests_on_a_search_is_one_call(metadata: object, calls: Calls) -> None:
    """However many chunks tell of it, and without counts too."""
    payload = {"candidates": [{"content": DATA, "groundingMetadata": metadata}]}
    assert see(payload, payload).usage == Usage(calls=calls)
    lone = json.dumps(payload).replace('"x"', '"\\ud83d"')
    assert see(lone).usage == Usage(calls=calls), "read leniently"


def test_ids_are_noticed() -> None:
    observer = GeminiObserver()
    observer.observe(b"id: 7\n" + data(chunk("A"), "\n"))
    assert observer.saw_id


@pytest.mark.parametrize(
    ("member", "counted"),
    [
        ({"text": "abc", "thought": True}, 3),
        ({"functionCall": {"name": "f", "args": {"a": 1}}}, 1 + len('{"a": 1}')),
        ({"functionCall": {"partialArgs": [1]}}, 3),
        ({"executableCode": {"code": "xy"}}, 2),
        ({"codeExecutionResult": {"output": "xyz"}}, 3),
        ({"inlineData": {"data": "A" * 1000}}, 0),
        ({}, 0),
    ],
)
def test_what_counts_as_generated(member: dict[str, object], counted: int) -> None:
    features = see(part(**member)).features.counted()
    assert (features.events, features.ascii_bytes) == (1, counted)


@pytest.mark.parametrize("how", list(BodyEnd))
@pytest.mark.parametrize(
    ("payloads", "good", "reason"),
    [
        # which ends are good
        ([chunk("A", tokens=1)], {BodyEnd.FRAMED}, "none"),
        ([chunk("A", "STOP")], {BodyEnd.FRAMED, BodyEnd.CLOSED}, "STOP"),
        ([chunk("A", "STOP", 1)], set(BodyEnd), "STOP"),
        ([chunk("A", "STOP", 1), chunk("B")], {BodyEnd.FRAMED, BodyEnd.CLOSED}, "STOP"),
        ([chunk("A", "STOP", 1), chunk("B"), chunk(tokens=2)], set(BodyEnd), "STOP"),
        ([chunk("A", "CONTINUATION", 1)], {BodyEnd.FRAMED, BodyEnd.CLOSED}, "CONTINUATION"),
        ([{"promptFeedback": {"blockReason": "SAFETY"}}], {BodyEnd.FRAMED, BodyEnd.CLOSED}, "SAFETY"),
        ([chunk("A", tokens=1), '{"candidates": ['], set(), ""),
        ([chunk("A", tokens=1), '{"candidates": [', chunk("B")], {BodyEnd.FRAMED}, "none"),
        ([chunk("A", tokens=1), ": keepalive"], {BodyEnd.FRAMED}, "none"),
        ([chunk("A", "STOP", 1), '{"candidates": ['], set(BodyEnd), "STOP"),
        ([chunk(tokens=1)], {BodyEnd.FRAMED}, "none"),
    ],
)
def test_ends(payloads: list[object], good: set[BodyEnd], reason: str, how: BodyEnd) -> None:
    outcome = see(*payloads).ended(how)
    assert (outcome.end is not End.INTERRUPTED) is (how in good)
    if how in good:
        assert outcome.reason == reason
    else:
        assert outcome.problem is not None and outcome.problem.kind is Kind.UPSTREAM_INTERRUPTED


def test_one_of_two_candidates_is_not_all() -> None:
    first = {"candidates": [{"index": 0, "finishReason": "STOP"}, {"index": 1, "content": DATA}]}
    half = see(first, chunk(tokens=3))
    assert half.finish_reasons == ("STOP", "")
    assert not half.finished
    assert half.ended(BodyEnd.CUT).end is End.INTERRUPTED
    whole = see(first, chunk(tokens=3), {"candidates": [{"index": 1, "finishReason": "MAX_TOKENS"}]})
    assert whole.finished
    assert whole.ended(BodyEnd.CUT).reason == "MAX_TOKENS"


def test_many_candidates_are_bounded() -> None:
    observer = see({"candidates": [{"index": index} for index in range(1000)]})
    assert len(observer.finish_reasons) == 128


def test_long_words_are_cut() -> None:
    observer = see({"modelVersion": "m" * 999, "candidates": [{"finishReason": "X" * 999}]})
    assert (len(observer.served_model), len(observer.finish_reasons[0])) == (200, 200)


@pytest.mark.parametrize(
    ("body", "end", "reason", "tokens"),
    [
        (chunk("A", "STOP", 3), End.COMPLETED, "STOP", 3),
        (chunk("A", "SAFETY", 3), End.INCOMPLETE, "SAFETY", 3),
        (chunk("A", tokens=3), End.COMPLETED, "none", 3),
        (
            '{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}',
            End.INCOMPLETE,
            "SAFETY",
            0,
        ),
        (f"[{chunk('A', tokens=1)},{chunk('B', 'STOP', 3)}]", End.COMPLETED, "STOP", 3),
        (error(503), End.FAILED, "upstream_error", None),
        ("<html>", End.COMPLETED, "unreadable", None),
        ('[{"a":"\\ud83d"}]', End.COMPLETED, "none", None),
    ],
)
def test_whole_replies(body: str, end: End, reason: str, tokens: int | None) -> None:
    observer = GeminiObserver()
    outcome = observer.observe_body(body.encode())
    assert (outcome.end, outcome.reason, observer.usage.output_total) == (end, reason, tokens)


def test_what_generates_nothing() -> None:
    observer = GeminiObserver(generates=False)
    outcome = observer.observe_body(b'{"totalTokens": 31}')
    assert (outcome.end, outcome.reason, observer.usage) == (End.COMPLETED, "", NOTHING)
    outcome = observer.observe_body(b'{"embedding":{"values":[1]},"usageMetadata":{"promptTokenCount":3}}')
    assert observer.usage == Usage(input_total=3, output_total=0)


def test_an_array() -> None:
    observer = GeminiObserver(array=True)
    pieces = [
        (b"[" + chunk("A", tokens=1).encode() + b"\r\n", Sight.PROGRESS),
        (b" \r\n", Sight.HEARTBEAT),
        (b",\r\n{", Sight.HEARTBEAT),
        (b",\r\n" + chunk("B", "STOP", 2).encode(), Sight.PROGRESS),
    ]
    for piece, sight in pieces:
        assert observer.observe(piece) is sight
    assert observer.finished
    assert observer.ended(BodyEnd.FRAMED).end is End.INTERRUPTED, "without its bracket it is no JSON"
    assert observer.observe(b"\r\n]\r\n") is Sight.TERMINAL
    assert observer.observe(b"\r\n") is Sight.HEARTBEAT
    assert observer.ended(BodyEnd.CUT).reason == "STOP"


def test_an_empty_array_is_no_event() -> None:
    assert GeminiObserver(array=True).observe(b"[]") is Sight.HEARTBEAT


def test_an_error_in_an_array() -> None:
    observer = GeminiObserver(array=True)
    assert observer.observe(b"[" + error(503).encode()) is Sight.ERROR
    assert observer.problem is not None and observer.problem.http_status == 503
    assert observer.ended(BodyEnd.CUT).end is End.FAILED
