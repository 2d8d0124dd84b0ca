"""Usage in replies of the passthrough families."""

import json

import pytest

from headrace.model.outcome import End
from headrace.model.usage import ExtraUsage, Usage
from headrace.model.wire import BodyEnd, Sight, WireProtocol
from headrace.protocols.passthrough_observer import PassthroughObserver

EMBEDDINGS, COMPLETIONS = WireProtocol.EMBEDDINGS, WireProtocol.COMPLETIONS


def whole(value: object, family: WireProtocol = WireProtocol.IMAGES) -> PassthroughObserver:
    observer = PassthroughObserver(family)
    outcome = observer.observe_body(value if isinstance(value, bytes) else json.dumps(value).encode())
    assert outcome.end is End.COMPLETED
    return observer


def event(value: object) -> bytes:
    return b"data: " + json.dumps(value).encode() + b"\n\n"


@pytest.mark.parametrize(
    ("family", "usage", "expected"),
    [
        (EMBEDDINGS, {"prompt_tokens": 8, "total_tokens": 8}, Usage(input_total=8, output_total=0)),
        (WireProtocol.RERANK, {"total_tokens": 8}, Usage(input_total=8, output_total=0)),
        (WireProtocol.IMAGES, {"total_tokens": 8}, Usage()),
        (
            WireProtocol.IMAGES,
            {"total_tokens": 8, "output_tokens": 5},
            Usage(input_total=3, output_total=5, image_output=5),
        ),
        (
            COMPLETIONS,
            {
                "prompt_tokens": 8,
                "completion_tokens": 5,
                "prompt_tokens_details": {"cached_tokens": 4},
                "completion_tokens_details": {"reasoning_tokens": 2, "audio_tokens": 1},
            },
            Usage(input_total=8, cached_input=4, output_total=5, reasoning=2, audio_output=1),
        ),
        (
            WireProtocol.AUDIO,
            {"type": "tokens", "input_tokens": 9, "output_tokens": 2, "input_token_details": {"audio_tokens": 7}},
            Usage(input_total=9, audio_input=7, output_total=2),
        ),
        (
            WireProtocol.IMAGES,
            {"input_tokens": 9, "output_tokens": 2, "input_tokens_details": {"image_tokens": 7, "text_tokens": 2}},
            Usage(input_total=9, image_input=7, output_total=2, image_output=2),
        ),
        (
            WireProtocol.IMAGES,
            {"input_tokens": 9, "output_tokens": 8, "output_tokens_details": {"image_tokens": 6, "text_tokens": 2}},
            Usage(input_total=9, output_total=8, image_output=6),
        ),
        (
            COMPLETIONS,
            {"prompt_tokens": 8, "completion_tokens": 5, "total_tokens": 14},
            Usage(input_total=8, output_total=5, inconsistent=("total is not input and output",)),
        ),
        (WireProtocol.AUDIO, {"type": "duration", "seconds": 3}, Usage()),
        (
            EMBEDDINGS,
            {"prompt_tokens": -1},
            Usage(input_total=0, output_total=0, inconsistent=("input_total is negative",)),
        ),
        (EMBEDDINGS, {"prompt_tokens": 1e2, "total_tokens": "x"}, Usage(input_total=100, output_total=0)),
        (EMBEDDINGS, None, Usage()),
        (EMBEDDINGS, [], Usage()),
    ],
)
def test_usage_in_a_whole_body(family: WireProtocol, usage: object, expected: Usage) -> None:
    observer = whole({"model": "served", "usage": usage}, family)
    assert observer.usage == expected
    assert observer.served_model == "served"


def test_what_drew_in_svg_is_another_model() -> None:
    drawn = {"model": "gpt-6", "input_tokens": 3, "output_tokens": 40, "reasoning_tokens": 9, "total_tokens": 43}
    usage = whole({"usage": {"input_tokens": 9, "output_tokens": 8}, "svg_usage": drawn}).usage
    assert usage == Usage(
        input_total=9,
        output_total=8,
        image_output=8,
        extra=(ExtraUsage(kind="svg", model="gpt-6", usage=Usage(input_total=3, output_total=40, reasoning=9)),),
    )


def test_a_newer_report_stands_and_what_it_leaves_out_stays() -> None:
    observer = PassthroughObserver(COMPLETIONS)
    details = {"cached_tokens": 4, "cache_write_tokens": 1}
    observer.observe(event({"usage": {"prompt_tokens": 8, "completion_tokens": 1, "prompt_tokens_details": details}}))
    observer.observe(event({"usage": {"completion_tokens": 2, "prompt_tokens_details": {"cached_tokens": 5}}}))
    assert observer.usage == Usage(input_total=8, cached_input=5, cache_write=1, output_total=2)


def test_the_words_of_completions() -> None:
    choices = [
        {"index": 1, "text": "b", "finish_reason": "stop"},
        {"index": 0, "text": "北", "finish_reason": "length"},
        {"index": 2, "text": ""},
    ]
    observer = whole({"choices": choices}, COMPLETIONS)
    assert observer.finish_reasons == ("length", "stop")
    said = observer.features.counted()
    assert (said.ascii_bytes, said.other_bytes) == (1, 3)


@pytest.mark.parametrize("body", [b"", b"text", b"[1]", b"\xff", b'{"usage":'])
def test_what_is_no_object_says_nothing(body: bytes) -> None:
    assert not whole(body).usage.known


def test_the_last_usage_of_a_stream_counts() -> None:
    observer = PassthroughObserver(COMPLETIONS)
    assert observer.observe(event({"choices": [{"text": "a", "finish_reason": None}], "usage": None})) is Sight.PROGRESS
    assert not observer.usage_is_final
    observer.observe(event({"usage": {"prompt_tokens": 1, "completion_tokens": 1}}))
    observer.observe(event({"choices": [{"text": "b", "finish_reason": "stop"}]}))
    assert (observer.usage.output_total, observer.usage_is_final) == (1, False)
    observer.observe(b"event: x\r\n" + event({"usage": {"prompt_tokens": 1, "completion_tokens": 2}}))
    assert observer.observe(b"data: [DONE]\n\n") is Sight.PROGRESS
    assert (observer.usage.output_total, observer.usage_is_final) == (2, True)
    assert observer.observe(b": comment\n\n") is Sight.HEARTBEAT
    assert observer.observe(b"data: {broken\n\n") is Sight.PROGRESS
    assert (observer.finished, observer.saw_id, observer.problem) == (False, False, None)
    assert observer.ended(BodyEnd.FRAMED).end is End.COMPLETED
    assert observer.ended(BodyEnd.CLOSED).reason == "end of connection"


def test_an_error_event_is_a_failure() -> None:
    observer = PassthroughObserver(WireProtocol.IMAGES)
    assert observer.observe(event({"type": "error", "error": {"message": "no", "code": "slow_down"}})) is Sight.ERROR
    outcome = observer.ended(BodyEnd.FRAMED)
    assert (outcome.end, outcome.problem) == (End.FAILED, observer.problem)
    assert observer.problem is not None and observer.problem.http_status == 503
