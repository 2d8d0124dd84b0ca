"""What Chat Completions say of usage, output and end, event by event."""

import json

import pytest

from headrace.model.outcome import End, Outcome
from headrace.model.usage import Usage
from headrace.model.wire import BodyEnd, Sight
from headrace.protocols.chat_observer import MOST_WORD, ChatObserver, error_of
from tests.relay.driver import DONE, ERROR, FINISH, ROLE, USAGE, data


def chunk(**members: object) -> bytes:
    return b"data: " + json.dumps(members).encode() + b"\n\n"


def delta(finish: str | None = None, index: object = 0, **members: object) -> bytes:
    return chunk(choices=[{"index": index, "delta": members, "finish_reason": finish}])


def watch(*events: bytes, added: bool = False) -> ChatObserver:
    observer = ChatObserver(added)
    for event in events:
        observer.observe(event)
    return observer


def said(observer: ChatObserver) -> tuple[int, int, int]:
    """(events, ASCII bytes, other bytes) of what was generated."""
    count = observer.features.counted()
    return count.events, count.ascii_bytes, count.other_bytes


# ---- what one event is


@pytest.mark.parametrize(
    ("event", "sight"),
    [
        (ROLE, Sight.PREAMBLE),
        (delta(), Sight.PREAMBLE),
        (delta(content=None, role="assistant"), Sight.PREAMBLE),
        (delta(content="", refusal=None), Sight.PREAMBLE),
        (delta(tool_calls=[]), Sight.PREAMBLE),
        (chunk(choices=[{"index": 0}]), Sight.PREAMBLE),
        (delta(content="x"), Sight.PROGRESS),
        (delta(refusal="no"), Sight.PROGRESS),
        (delta(reasoning="r"), Sight.PROGRESS),
        (delta(reasoning_content="r"), Sight.PROGRESS),
        (delta(tool_calls=[{"index": 0, "id": "c", "function": {"name": "f", "arguments": ""}}]), Sight.PROGRESS),
        (delta(tool_calls=[{"index": 0, "custom": {"input": "x"}}]), Sight.PROGRESS),
        (delta(function_call={"name": "f"}), Sight.PROGRESS),
        (delta(audio={"data": "UklG"}), Sight.PROGRESS),
        (delta("stop"), Sight.FINISHED),
        (delta("some_new_reason"), Sight.FINISHED),
        (delta("stop", content="x"), Sight.FINISHED),
        (chunk(choices=[]), Sight.PROGRESS),
        (chunk(choices=[], moderation={"flagged": False}), Sight.PROGRESS),
        (chunk(choices=[], usage=None), Sight.PROGRESS),
        (USAGE, Sight.PROGRESS),
        (chunk(object="chat.completion.chunk"), Sight.PROGRESS),
        (b"data: 5\n\n", Sight.PROGRESS),
        (b"data: null\n\n", Sight.PROGRESS),
        (b"data: []\n\n", Sight.PROGRESS),
        (DONE, Sight.TERMINAL),
        (b"data: [DONE] \n\n", Sight.TERMINAL),
        (b"data:[DONE]\r\n\r\n", Sight.TERMINAL),
        (ERROR, Sight.ERROR),
        (b"event: error\n" + ERROR, Sight.ERROR),
        (chunk(error="busy"), Sight.ERROR),
        (chunk(choices=[], error={"code": 502}), Sight.ERROR),
        (delta("error", content="")[:-3] + b',"error":{"code":502}}\n\n', Sight.ERROR),
        (chunk(error=None), Sight.PROGRESS),
        (chunk(error={}), Sight.PROGRESS),
        (b": c\n\n", Sight.COMMENT),
        (b"\n", Sight.COMMENT),
        (b"retry: 3000\n\n", Sight.HEARTBEAT),
        (b"event: ping\n\n", Sight.HEARTBEAT),
        (b"id: 1\n\n", Sight.HEARTBEAT),
        (b"data:\n\n", Sight.HEARTBEAT),
        (b"data: : keepalive\n\n", Sight.HEARTBEAT),
        (b"data: {\n\n", Sight.HEARTBEAT),
        (b'data: {"a":NaN}\n\n', Sight.HEARTBEAT),
        (b'data: {"a":"\xff"}\xff\n\n', Sight.HEARTBEAT),
        (b"data: " + b"[" * 100_000 + b"]" * 100_000 + b"\n\n", Sight.HEARTBEAT),
    ],
)  # fmt: skip
def test_what_an_event_is(event: bytes, sight: Sight) -> None:
    """cases B007, B013, B022: heartbeats are exactly these."""
    assert ChatObserver(False).observe(event) is sight
    crlf = event.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")
    assert ChatObserver(False).observe(crlf) is sight
    assert ChatObserver(False).observe(crlf.replace(b"\r\n", b"\r")) is sight


def test_an_event_in_several_lines() -> None:
    observer = ChatObserver(False)
    assert observer.observe(b'data: {"choices":\ndata: [],\ndata: "usage":{"prompt_tokens":4}}\n\n') is Sight.PROGRESS
    assert observer.usage.input_total == 4
    assert observer.observe(b'data: {"usage":\r: between\rdata: {"completion_tokens":2}}\n\n') is Sight.PROGRESS
    assert observer.usage == Usage(input_total=4, output_total=2)


def test_ids_are_remembered() -> None:
    assert not watch(data(), b'data: {"id:":1}\n\n').saw_id
    assert watch(b"id: 7\n" + data()).saw_id
    assert watch(data()[:-1] + b"id\n\n").saw_id


# ---- usage


def report(prompt: object, completion: object, **more: object) -> dict[str, object]:
    return {"prompt_tokens": prompt, "completion_tokens": completion, **more}


@pytest.mark.parametrize(
    ("events", "usage"),
    [
        ([data()], Usage()),
        ([chunk(choices=[], usage=report(9, 3))], Usage(input_total=9, output_total=3)),
        # B029: cumulative in every chunk; the last wins, nothing is summed.
        (
            [chunk(choices=[], usage=report(9, number)) for number in (1, 2, 3, 3)],
            Usage(input_total=9, output_total=3),
        ),
        # B028: absent or null behind it erases nothing.
        (
            [chunk(choices=[], usage=report(14, 52)), chunk(choices=[], usage=None), chunk(choices=[])],
            Usage(input_total=14, output_total=52),
        ),
        # Per field the last non-null value; null is not 0.
        (
            [chunk(usage=report(5, None)), chunk(usage=report(None, 7)), chunk(usage={})],
            Usage(input_total=5, output_total=7),
        ),
        ([chunk(usage=report(0, 0))], Usage(input_total=0, output_total=0)),
        (
            [
                chunk(
                    usage=report(
                        100,
                        50,
                        prompt_tokens_details={"cached_tokens": 60, "cache_write_tokens": 8, "audio_tokens": 3},
                        completion_tokens_details={"reasoning_tokens": 40, "audio_tokens": 2, "other_tokens": 9},
                    )
                )
            ],
            Usage(
                input_total=100,
                output_total=50,
                cached_input=60,
                cache_write=8,
                audio_input=3,
                reasoning=40,
                audio_output=2,
            ),
        ),
        # B024: odd spellings and odd types; what can be read is read.
        ([b'data: {"usage":{"prompt_tokens":1.0E+2,"completion_tokens":3.0}}\n\n'],
         Usage(input_total=100, output_total=3)),
        ([chunk(usage=report("9", 3))], Usage(output_total=3)),
        ([chunk(usage=report(9, True))], Usage(input_total=9)),
        ([chunk(usage=report(9, 1.5))], Usage(input_total=9)),
        ([chunk(usage=report(9, 3, prompt_tokens_details="x", completion_tokens_details=[]))],
         Usage(input_total=9, output_total=3)),
        ([chunk(usage=report(9, 3, prompt_tokens_details={"cached_tokens": "4", "audio_tokens": 1.0}))],
         Usage(input_total=9, output_total=3, audio_input=1)),
        ([chunk(usage="9")], Usage()),
        ([chunk(usage=[])], Usage()),
        ([b'data: {"x":"\\ud83d","usage":{"prompt_tokens":9}}\n\n'], Usage(input_total=9)),
        ([chunk(choices="x", usage=report(9, 3))], Usage(input_total=9, output_total=3)),
        ([chunk(choices=[None, 5, {"index": None, "delta": "x"}], usage=report(9, 3))],
         Usage(input_total=9, output_total=3)),
    ],
)  # fmt: skip
def test_usage(events: list[bytes], usage: Usage) -> None:
    assert watch(*events).usage == usage


@pytest.mark.parametrize(
    ("events", "final"),
    [
        ([USAGE], True),
        ([data(), USAGE], True),
        ([USAGE, data()], False),
        ([data(), USAGE, data("B")], False),
        ([USAGE, FINISH], True),
        ([data(), chunk(choices=[{"index": 0, "delta": {"content": "x"}}], usage=report(1, 2))], True),
        ([data()], False),
        # B034: an explicit 0 is a report
        ([data(), chunk(usage=report(0, 0))], True),
        # what says nothing of the output does not make an older figure the last word
        ([data(), USAGE, data("B"), chunk(usage={})], False),
        ([data(), USAGE, data("B"), chunk(usage=report(9, None))], False),
        ([data(), USAGE, chunk(usage={})], True),
    ],
)
def test_whether_a_report_came_behind_the_last_output(events: list[bytes], final: bool) -> None:
    assert watch(*events).usage_is_final is final


def test_the_tier_that_served() -> None:
    """The last that was told; a cut stream has one too, so that its estimate is priced by it."""
    first = chunk(model="m", service_tier="auto", choices=[{"index": 0, "delta": {"role": "assistant"}}])
    text = chunk(model="m", service_tier="flex", choices=[{"index": 0, "delta": {"content": "A"}}])
    finish = chunk(model="m", service_tier="default", choices=[{"index": 0, "delta": {}, "finish_reason": "stop"}])
    last = chunk(model="m", service_tier="priority", choices=[], usage=report(9, 3))
    assert watch(first, text).usage == Usage(tier="auto")
    assert watch(first, text, finish).usage == Usage(tier="default")
    assert watch(first, text, finish, last).usage == Usage(input_total=9, output_total=3, tier="priority")


def test_the_usage_that_we_asked_for() -> None:
    """Exactly the one event: choices [] and a usage object; recognised by usage, never by empty choices."""
    observer = ChatObserver(True)
    assert observer.observe(chunk(choices=[])) is Sight.PROGRESS
    assert observer.observe(chunk(choices=[], usage=None)) is Sight.PROGRESS
    assert observer.observe(chunk(choices=[{"index": 0, "delta": {}}], usage=report(1, 1))) is Sight.PREAMBLE
    assert observer.observe(delta("stop")[:-3] + b',"usage":{"prompt_tokens":1}}\n\n') is not Sight.ADDED_USAGE
    assert observer.observe(USAGE) is Sight.ADDED_USAGE
    assert observer.observe(USAGE) is Sight.PROGRESS, "once"
    assert observer.usage == Usage(input_total=9, output_total=3)


# ---- ends


@pytest.mark.parametrize(
    ("events", "outcome"),
    [
        ([data(), FINISH, DONE], Outcome(End.COMPLETED, "stop")),
        ([data(), FINISH], Outcome(End.COMPLETED, "stop")),
        ([delta("tool_calls")], Outcome(End.COMPLETED, "tool_calls")),
        ([delta("function_call")], Outcome(End.COMPLETED, "function_call")),
        ([delta("length"), DONE], Outcome(End.INCOMPLETE, "length")),
        ([delta("content_filter")], Outcome(End.INCOMPLETE, "content_filter")),
        ([delta(refusal="no"), FINISH], Outcome(End.INCOMPLETE, "refusal")),
        ([data(), DONE], Outcome(End.INCOMPLETE, "no_finish_reason")),
        ([DONE], Outcome(End.INCOMPLETE, "no_finish_reason")),
        ([data(), delta(""), DONE], Outcome(End.INCOMPLETE, "no_finish_reason")),
        # B041: one finish_reason per choice.
        ([data(), data(index=1), FINISH, delta("stop", 1)], Outcome(End.COMPLETED, "stop")),
        ([data(), data(index=1), FINISH, delta("length", 1)], Outcome(End.INCOMPLETE, "length")),
        ([data(), data(index=1), FINISH, DONE], Outcome(End.INCOMPLETE, "no_finish_reason")),
    ],
)
@pytest.mark.parametrize("how", list(BodyEnd))
def test_good_ends(events: list[bytes], outcome: Outcome, how: BodyEnd) -> None:
    observer = watch(*events)
    assert observer.finished
    assert observer.ended(how) == outcome


@pytest.mark.parametrize(
    "events", [[], [ROLE], [data()], [data(), USAGE], [data(), data(index=1), FINISH], [data("x", "")]]
)
@pytest.mark.parametrize("how", list(BodyEnd))
def test_broken_off(events: list[bytes], how: BodyEnd) -> None:
    observer = watch(*events)
    outcome = observer.ended(how)
    assert not observer.finished and outcome.end is End.INTERRUPTED
    assert outcome.problem is not None and outcome.problem.kind.value == "upstream_interrupted"
    assert outcome.reason == ("upstream was cut" if how is BodyEnd.CUT else "upstream ended")


@pytest.mark.parametrize("after", [[], [DONE], [FINISH, DONE], [USAGE]])
def test_an_error_stays_an_error(after: list[bytes]) -> None:
    """OpenAI has been seen to send [DONE] behind it."""
    outcome = watch(data(), ERROR, *after).ended(BodyEnd.FRAMED)
    assert (outcome.end, outcome.reason) == (End.FAILED, "upstream_error")
    assert outcome.problem is not None and outcome.problem.http_status == 503


def test_an_error_beside_content_is_none() -> None:
    """case B046 U4."""
    events = [
        chunk(choices=[{"index": 0, "delta": {"content": "A"}, "finish_reason": None}], error=None),
        chunk(choices=[{"index": 0, "delta": {"content": "B"}, "finish_reason": None}], error={"code": 0}),
        FINISH,
        DONE,
    ]
    assert watch(*events).ended(BodyEnd.FRAMED) == Outcome(End.COMPLETED, "stop")


def test_finish_reasons_by_choice() -> None:
    observer = watch(data(index=1), data(), delta("length", 1))
    assert observer.finish_reasons == ("", "length")
    observer.observe(FINISH)
    assert observer.finish_reasons == ("stop", "length")


def test_a_choice_that_begins_late() -> None:
    observer = watch(data(), FINISH)
    assert observer.observe(data(index=1)) is Sight.PROGRESS
    assert not observer.finished
    assert observer.observe(delta("stop", 1)) is Sight.FINISHED


@pytest.mark.parametrize("late", [data("x"), delta(audio={"expires_at": 1}), delta(tool_calls=[{"index": 0}])])
def test_output_behind_a_finish_reason(late: bytes) -> None:
    """The tail begins anew; the choice stays finished."""
    observer = watch(data(), FINISH)
    assert observer.observe(late) is Sight.FINISHED
    assert observer.finished


# ---- words of the upstream's


def test_the_served_model() -> None:
    observer = watch(chunk(model="", choices=[]), chunk(model="gpt-5.6-sol-1", choices=[]), chunk(choices=[]))
    assert observer.served_model == "gpt-5.6-sol-1"


def test_words_are_bounded_and_can_be_written() -> None:
    """They go into the entry: UTF-8, and small."""
    observer = watch(chunk(model="m" * 5000, choices=[{"index": 0, "delta": {}, "finish_reason": "f" * 5000}]))
    assert len(observer.served_model) == MOST_WORD and len(observer.finish_reasons[0]) == MOST_WORD
    odd = watch(b'data: {"model":"a\\ud83d","choices":[{"index":0,"delta":{},"finish_reason":"b\\ud83d"}]}\n\n')
    assert odd.served_model == "a?" and odd.finish_reasons == ("b?",)
    failed = watch(b'data: {"error":{"code":"x\\ud83d","message":"\\ud83d"}}\n\n')
    assert failed.problem is not None
    (failed.problem.detail + failed.problem.message).encode()
    body = ChatObserver(False)
    body.observe_body(json.dumps({"choices": [{"index": 0, "finish_reason": "f" * 5000}]}).encode())
    assert len(body.finish_reasons[0]) == MOST_WORD


# ---- what an estimate needs


def test_features() -> None:
    observer = watch(
        ROLE,
        delta(content="ab"),
        delta(content="c北"),
        delta(reasoning="r", reasoning_content="s"),
        delta(refusal="t"),
        delta(tool_calls=[{"function": {"name": "fn", "arguments": "{}"}}, {"function": None}]),
        delta(function_call={"name": "g", "arguments": None}),
        delta(audio={"data": "UklGRg=="}),
        b'data: {"choices":[{"index":0,"delta":{"content":"\\ud83dx"}}]}\n\n',
        chunk(choices=[], obfuscation="aaaaaaaa"),
        FINISH,
    )
    features = observer.features.counted()
    assert features.events == 8
    assert features.ascii_bytes == 3 + 2 + 1 + 4 + 1 + 1
    assert features.other_bytes == 3 + 3, "half a surrogate pair counts as the three bytes that it would take"


def test_the_short_way_counts_as_the_long_way() -> None:
    """Plain text of a choice that has begun is read by a third of the code: it must say the same."""
    short = watch(data("a"), data("b"), data("c"))
    long = watch(*(delta(content=text, refusal=None) for text in "abc"))
    assert said(short) == said(long) == (3, 3, 0)
    mixed = watch(data("a"), delta(content="b", refusal="r"), delta(content="c", tool_calls=[{}]))
    assert said(mixed) == (3, 4, 0)
    assert mixed.ended(BodyEnd.CUT).end is End.INTERRUPTED


# ---- whole replies


def whole(finish: str | None, **message: str) -> dict[str, object]:
    return {"choices": [{"index": 0, "message": message, "finish_reason": finish}]}


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        (whole("stop", content="Hi"), Outcome(End.COMPLETED, "stop")),
        (whole("stop", refusal="no"), Outcome(End.INCOMPLETE, "refusal")),
        (whole("length"), Outcome(End.INCOMPLETE, "length")),
        (whole(None), Outcome(End.INCOMPLETE, "no_finish_reason")),
        ({"choices": []}, Outcome(End.COMPLETED, "")),
        ({}, Outcome(End.COMPLETED, "")),
        ([], Outcome(End.COMPLETED, "")),
    ],
)  # fmt: skip
def test_a_whole_reply(body: object, outcome: Outcome) -> None:
    assert ChatObserver(False).observe_body(json.dumps(body).encode()) == outcome


def test_usage_of_a_whole_reply() -> None:
    observer = ChatObserver(False)
    observer.observe_body(
        b'{"model":"m","x":"\\ud83d","usage":{"prompt_tokens":5,"completion_tokens":6},"choices":'
        b'[{"index":1,"message":{"content":"Hi","tool_calls":[{"function":{"name":"f"}}]},"finish_reason":"stop"}]}'
    )
    assert observer.usage == Usage(input_total=5, output_total=6) and observer.usage_is_final
    assert observer.served_model == "m" and said(observer) == (1, 3, 0)


def test_a_reply_that_is_no_json() -> None:
    assert ChatObserver(False).observe_body(b"<html>") == Outcome(End.COMPLETED, "unreadable")


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b'{"error":{"message":"x","code":"rate_limit_exceeded"}}', 429),
        (b'{"error":"text"}', 500),
        (b'{"error":{"code":"model_not_found"}}', 404),
        (b'{"error":{"x":"\\ud83d","type":"server_error"}}', 500),
        (b'{"error":null}', None),
        (b'{"error":{"code":1},"choices":[{"index":0}]}', None),
        (b'{"choices":[]}', None),
        (b"", None),
        (b"<html>", None),
    ],
)
def test_an_error_in_a_body(body: bytes, status: int | None) -> None:
    problem = error_of(body)
    assert (problem.http_status if problem is not None else None) == status
