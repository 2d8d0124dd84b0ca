import json

import pytest

from headrace.model.outcome import End
from headrace.model.problem import Kind
from headrace.model.usage import Usage
from headrace.model.wire import BodyEnd, Sight
from headrace.protocols.messages_observer import MessagesObserver


def event(name: str, **members: object) -> bytes:
    data = json.dumps({"type": name, **members}, ensure_ascii=False, separators=(",", ":"))
    return f"event: {name}\ndata: {data}\n\n".encode()


def unnamed(one: bytes) -> bytes:
    return one.partition(b"\n")[2]


def delta(**members: object) -> bytes:
    return event("content_block_delta", index=0, delta=members)


def block(**members: object) -> bytes:
    return event("content_block_start", index=0, content_block=members)


START = event(
    "message_start", message={"model": "claude", "content": [], "usage": {"input_tokens": 9, "output_tokens": 1}}
)
TEXT_START = block(type="text", text="")
A = delta(type="text_delta", text="A")
BLOCK_STOP = event("content_block_stop", index=0)
STOP_DELTA = event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 3})
STOP = event("message_stop")
PING = b'event: ping\ndata: {"type": "ping"}\n\n'
ERROR = event("error", error={"type": "overloaded_error", "message": "busy"})
ANTH = [START, TEXT_START, A, BLOCK_STOP, STOP_DELTA, STOP]


def after(*events: bytes) -> MessagesObserver:
    observer = MessagesObserver()
    for one in events:
        observer.observe(one)
    return observer


def said(observer: MessagesObserver) -> tuple[int, int, int]:
    """(events, ASCII bytes, other bytes) of what was generated."""
    count = observer.features.counted()
    return count.events, count.ascii_bytes, count.other_bytes


@pytest.mark.parametrize("named", [True, False])
def test_each_event_is_what_it_is(named: bool) -> None:
    """B021: without event lines the types say the same."""
    events = ANTH if named else [unnamed(one) for one in ANTH]
    observer = MessagesObserver()
    assert [observer.observe(one) for one in events] == [
        Sight.PREAMBLE,
        Sight.PREAMBLE,
        Sight.PROGRESS,
        Sight.PROGRESS,
        Sight.PROGRESS,
        Sight.TERMINAL,
    ]
    assert (observer.usage.input_total, observer.usage.output_total, observer.usage_is_final) == (9, 3, True)
    assert (observer.served_model, observer.finish_reasons, observer.finished) == ("claude", ("end_turn",), True)
    assert observer.ended(BodyEnd.FRAMED).end is End.COMPLETED
    assert said(observer) == (1, 1, 0)


@pytest.mark.parametrize(
    ("one", "sight"),
    [
        (PING, Sight.HEARTBEAT),
        (b"event: ping\n\n", Sight.HEARTBEAT),
        (b"event: ping\ndata: x\n\n", Sight.HEARTBEAT),
        (b'data: {"type":"ping"}\n\n', Sight.HEARTBEAT),
        (b": x\n\n", Sight.COMMENT),
        (b"\n", Sight.COMMENT),
        (b"retry: 3\n\n", Sight.HEARTBEAT),
        (b"event: message_stop\n\n", Sight.HEARTBEAT),
        (b"data: : keepalive\n\n", Sight.HEARTBEAT),
        (b"event: content_block_delta\ndata: nonsense\n\n", Sight.HEARTBEAT),
        (b"event: message_delta\ndata: {\n\n", Sight.HEARTBEAT),
        (b"data: [DONE]\n\n", Sight.PROGRESS),
        (b"data: 5\n\n", Sight.PROGRESS),
        (b"event: zzz\ndata: []\n\n", Sight.PROGRESS),
        (b'event: vertex_event\ndata: {"type":"vertex_event","usage":{"input_tokens":999}}\n\n', Sight.PROGRESS),
        (b'event: odd\ndata: {"type":"message_stop"}\n\n', Sight.TERMINAL),
        (b"event: message_start\ndata: {}\n\n", Sight.PREAMBLE),
        (b"event: content_block_start\ndata: {}\n\n", Sight.PREAMBLE),
        (block(type="thinking", thinking="", signature=""), Sight.PREAMBLE),
        (block(type="tool_use", id="t", name="f", input={}), Sight.PROGRESS),
        (block(type="redacted_thinking", data="x"), Sight.PROGRESS),
        (block(type="text", text="A"), Sight.PROGRESS),
        (event("message_start", message={"content": [{"type": "text", "text": "A"}]}), Sight.PROGRESS),
        (delta(), Sight.PROGRESS),
        (event("content_block_delta", delta=None), Sight.PROGRESS),
        (event("content_block_delta", delta=5), Sight.PROGRESS),
        (b"event: content_block_delta\ndata: {}\nid: 5\n\n", Sight.PROGRESS),
        (ERROR, Sight.ERROR),
        (b"event: error\ndata: upstream connect error\n\n", Sight.ERROR),
        (b'data: {"error":{"message":"m"}}\n\n', Sight.ERROR),
    ],
)
def test_sights(one: bytes, sight: Sight) -> None:
    observer = MessagesObserver()
    assert observer.observe(one) is sight
    assert observer.begun is (sight not in (Sight.HEARTBEAT, Sight.COMMENT))
    assert not observer.usage.known


def test_ids_are_noticed() -> None:
    assert after(b"id: 1\n" + A).saw_id
    assert not after(*ANTH).saw_id


@pytest.mark.parametrize(
    ("one", "features"),
    [
        (A, (1, 1, 0)),
        (delta(type="text_delta", text="北a"), (1, 1, 3)),
        (delta(type="thinking_delta", thinking="北"), (1, 0, 3)),
        (delta(type="input_json_delta", partial_json='{"a'), (1, 3, 0)),
        (delta(type="input_json_delta", partial_json=""), (0, 0, 0)),
        (delta(type="compaction_delta", content="ab"), (1, 2, 0)),
        (delta(type="signature_delta", signature="EqQB"), (0, 0, 0)),
        (b'event: content_block_delta\ndata: {"delta":{"text":"\\ud83da","zzz":[]}}\n\n', (1, 2, 0)),
        (A.replace(b"\n", b"\r\n"), (1, 1, 0)),
        (block(type="tool_use", name="f", input={"a": "北"}), (1, 1 + 9, 3)),
        (block(type="text", text="AB"), (1, 2, 0)),
    ],
)
def test_what_counts_as_generated(one: bytes, features: tuple[int, int, int]) -> None:
    assert said(after(one)) == features


@pytest.mark.parametrize("more", [A, delta(type="thinking_delta", thinking="x"), block(type="tool_use", name="f")])
def test_usage_is_final_until_more_comes(more: bytes) -> None:
    """Case B034: message_start's figure is provisional."""
    assert not after(START).usage_is_final
    assert after(START, A, STOP_DELTA).usage_is_final
    assert not after(START, A, STOP_DELTA, more).usage_is_final
    assert after(START, A, STOP_DELTA, BLOCK_STOP).usage_is_final
    without = event("message_delta", delta={"stop_reason": None}, usage={"input_tokens": 5})
    observer = after(START, A, without)
    assert (observer.usage_is_final, observer.usage.input_total, observer.finish_reasons) == (False, 5, ())
    assert not after(START, A, event("message_delta", delta={"stop_reason": "end_turn"})).usage_is_final
    assert after(START, A, STOP_DELTA, without).usage_is_final
    observer = after(START, A, event("message_delta", usage={"input_tokens": 0, "output_tokens": 0}))
    assert (observer.usage.input_total, observer.usage.output_total, observer.usage_is_final) == (0, 0, True)


@pytest.mark.parametrize(
    ("reason", "end"),
    [
        ("end_turn", End.COMPLETED),
        ("tool_use", End.COMPLETED),
        ("stop_sequence", End.COMPLETED),
        ("pause_turn", End.COMPLETED),
        ("compaction", End.COMPLETED),
        ("max_tokens", End.INCOMPLETE),
        ("model_context_window_exceeded", End.INCOMPLETE),
        ("refusal", End.INCOMPLETE),
    ],
)
def test_the_stop_reason_says_how_it_ended(reason: str, end: End) -> None:
    stop = event("message_delta", delta={"stop_reason": reason}, usage={"output_tokens": 3})
    streamed = after(START, A, stop, STOP)
    whole = MessagesObserver()
    body = {"type": "message", "model": "claude", "content": [], "stop_reason": reason, "usage": {"output_tokens": 3}}
    assert whole.observe_body(json.dumps(body).encode()) == streamed.ended(BodyEnd.CUT)
    assert (streamed.ended(BodyEnd.CUT).end, streamed.ended(BodyEnd.CUT).reason) == (end, reason)


@pytest.mark.parametrize(
    ("how", "words"), [(BodyEnd.CUT, "was cut"), (BodyEnd.FRAMED, "ended"), (BodyEnd.CLOSED, "ended")]
)
def test_without_message_stop_it_is_broken(how: BodyEnd, words: str) -> None:
    """B039: also behind the stop_reason."""
    for events in ([START, A], [START, A, STOP_DELTA]):
        observer = after(*events)
        assert not observer.finished
        outcome = observer.ended(how)
        assert (outcome.end, outcome.reason) == (End.INTERRUPTED, f"upstream {words}")
        assert outcome.problem is not None and outcome.problem.kind is Kind.UPSTREAM_INTERRUPTED


def test_an_error_event_fails_with_its_status() -> None:
    observer = after(START, A, ERROR)
    assert observer.problem is not None
    assert (observer.problem.kind, observer.problem.http_status) == (Kind.UPSTREAM_ERROR, 529)
    outcome = observer.ended(BodyEnd.FRAMED)
    assert (outcome.end, outcome.reason, outcome.problem) == (End.FAILED, "upstream_error", observer.problem)
    assert after(unnamed(START), unnamed(ERROR)).ended(BodyEnd.FRAMED).end is End.FAILED


@pytest.mark.parametrize("name", [b"", b"event: odd\n"])
def test_an_error_that_sdks_skip_does_not_end_the_stream(name: bytes) -> None:
    """Among named events one without its name is invisible: an error event of the gateway's must follow."""
    observer = after(START)
    assert observer.observe(name + unnamed(ERROR)) is Sight.PROGRESS
    assert observer.problem is None
    outcome = observer.ended(BodyEnd.FRAMED)
    assert outcome.end is End.INTERRUPTED
    assert outcome.problem is not None and "529 overloaded_error" in outcome.problem.detail
    observer.observe(STOP)
    assert observer.ended(BodyEnd.FRAMED).end is End.COMPLETED


def test_a_whole_message() -> None:
    observer = MessagesObserver()
    body = {
        "type": "message",
        "model": "claude",
        "content": [{"type": "text", "text": "A"}, {"type": "tool_use", "name": "f", "input": {"a": 1}}],
        "stop_reason": "tool_use",
        "usage": {"input_tokens": 9, "output_tokens": 3, "cache_read_input_tokens": 1},
    }
    outcome = observer.observe_body(json.dumps(body).encode())
    assert (outcome.end, outcome.reason) == (End.COMPLETED, "tool_use")
    assert (observer.usage.input_total, observer.usage.output_total, observer.usage_is_final) == (10, 3, True)
    assert said(observer) == (2, 1 + 1 + 8, 0)
    assert observer.served_model == "claude"


def test_a_count_of_tokens_uses_none() -> None:
    observer = MessagesObserver()
    outcome = observer.observe_body(b'{"input_tokens":5}')
    assert (outcome.end, outcome.reason, observer.usage.known, observer.usage_is_final) == (
        End.COMPLETED,
        "",
        False,
        False,
    )


def test_odd_bodies_are_read_as_far_as_they_go() -> None:
    observer = MessagesObserver()
    observer.observe_body(b'{"model":"a\\ud83d","stop_reason":5,"usage":{"output_tokens":3.0,"input_tokens":"x"}}')
    assert (observer.served_model, observer.usage.output_total, observer.usage.input_total) == ("a?", 3, None)
    assert MessagesObserver().observe_body(b"<html>").reason == "unreadable"


def test_a_fallback_names_the_model_that_served() -> None:
    usage = {
        "output_tokens": 3,
        "iterations": [{"type": "message", "model": "a"}, {"type": "fallback_message", "model": "b"}],
    }
    assert after(START, event("message_delta", usage=usage), STOP).served_model == "b"


def test_a_fallback_names_the_model_before_the_counts_do() -> None:
    """A cut stream has served its client with that model, too."""
    handover = block(type="fallback", to={"model": "other"}, **{"from": {"model": "claude"}})
    assert after(START, A, handover, A).served_model == "other"
    assert after(START, block(type="fallback", to=None)).served_model == "claude"


def test_a_compaction_is_the_message_s_own_model_s() -> None:
    iterations = [{"type": "compaction", "input_tokens": 7, "output_tokens": 2}]
    delta_ = event("message_delta", usage={"output_tokens": 3, "iterations": iterations})
    (row,) = after(START, A, delta_, STOP).usage.extra
    assert (row.kind, row.model, row.usage) == ("compaction", "claude", Usage(input_total=7, output_total=2))


def test_parts_are_kept_one_by_one() -> None:
    first = {"input_tokens": 9, "cache_creation": {"ephemeral_5m_input_tokens": 3, "ephemeral_1h_input_tokens": 1}}
    then = {"output_tokens": 3, "cache_creation": {"ephemeral_1h_input_tokens": 2}, "server_tool_use": None}
    observer = after(event("message_start", message={"usage": first}), event("message_delta", usage=then))
    assert observer.usage == Usage(input_total=14, cache_write=5, cache_write_5m=3, cache_write_1h=2, output_total=3)


def test_words_are_bounded() -> None:
    long = "x" * 1000
    observer = after(
        event("message_start", message={"model": long, "stop_reason": long}),
        event("message_delta", delta={"stop_reason": long}),
    )
    assert (len(observer.served_model), len(observer.finish_reasons[0])) == (200, 200)
