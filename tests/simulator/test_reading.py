from pathlib import Path

import pytest

from headrace.simulator.fields import Place, ScriptError
from headrace.simulator.reading import scenario_from_fields
from headrace.simulator.scenario import (
    ChoiceSpec,
    Chunks,
    LineEnd,
    RoleStyle,
    Scenario,
    ScriptedEvent,
    SplitBy,
    ToolCall,
    UsageSpec,
    UsageStyle,
)


def read(fields: object) -> Scenario:
    return scenario_from_fields(fields, Place("s", Path()), "s")


def test_no_fields_make_the_default_scenario() -> None:
    assert read({}) == Scenario(name="s")


def test_what_is_said() -> None:
    made = read(
        {
            "text": ["A", "北"],
            "repeat": 2,
            "reasoning": "hm",
            "refusal": "no",
            "echo": True,
            "chunks": {"characters": 4},
            "finish_reason": "length",
            "tool_calls": [{"name": "f", "arguments": {"a": 1}, "id": "call_1", "pieces": 2}],
            "n": 2,
            "usage": {"style": "every", "prompt": 1, "completion": 3, "total": 9, "cached": 1, "reasoning": 2},
            "id": "chatcmpl-1",
            "created": 5,
            "model": "other",
        }
    ).content
    assert made.choices == (
        ChoiceSpec(
            text=("A", "北"),
            chunks=Chunks(SplitBy.CHARACTERS, 4),
            repeat=2,
            echo=True,
            reasoning="hm",
            refusal="no",
            tool_calls=(ToolCall("f", '{"a":1}', "call_1", 2),),
            finish_reason="length",
        ),
    )
    assert made.usage == UsageSpec(UsageStyle.EVERY, 1, 3, 9, 1, 2)
    assert (made.n, made.id, made.created, made.model) == (2, "chatcmpl-1", 5, "other")


def test_several_choices_answer_whatever_n_is_asked() -> None:
    made = read({"choices": [{"text": "a"}, {"text": "b"}]}).content
    assert made.n == 2
    assert [choice.text for choice in made.choices] == [("a",), ("b",)]
    assert read({"choices": [{"text": "a"}]}).content.n is None


def test_short_forms() -> None:
    assert read({"usage": "zero"}).content.usage.style is UsageStyle.ZERO
    assert read({"chunks": "characters"}).content.choices[0].chunks == Chunks(SplitBy.CHARACTERS, 1)
    assert (
        read({"tool_calls": {"name": "f", "arguments": "{broken"}}).content.choices[0].tool_calls[0].arguments
        == "{broken"
    )
    assert read({"usage": {"object": {"prompt_tokens": 1}}}).content.usage.object == b'{"prompt_tokens":1}'


def test_how_it_is_spelled(tmp_path: Path) -> None:
    (tmp_path / "r").write_bytes(b"data: 1\n\n")
    made = scenario_from_fields(
        {
            "role": "joined",
            "done": "[DONE] ",
            "preamble": {"base64": "77u/"},
            "line_end": "crlf",
            "space": False,
            "raw_file": "r",
        },
        Place("s", tmp_path),
        "s",
    ).spelling
    assert (made.role, made.done, made.preamble) == (RoleStyle.JOINED, "[DONE] ", b"\xef\xbb\xbf")
    assert (made.line_end, made.space, made.raw) == (LineEnd.CRLF, False, b"data: 1\n\n")


def test_events_are_verbatim_or_spelled() -> None:
    made = read(
        {
            "events": [
                ": raw\n\n",
                {"base64": "/w=="},
                {
                    "comment": "c",
                    "id": "7",
                    "event": "e",
                    "retry": 3000,
                    "data": {"a": "北"},
                    "repeat": 2,
                    "delay": 0.5,
                },
                {"data": "two\nlines"},
            ]
        }
    ).spelling.events
    assert made == (
        ScriptedEvent(raw=b": raw\n\n"),
        ScriptedEvent(raw=b"\xff"),
        ScriptedEvent(
            lines=(
                (b"", b"c"),
                (b"id", b"7"),
                (b"event", b"e"),
                (b"retry", b"3000"),
                (b"data", '{"a":"北"}'.encode()),
            ),
            repeat=2,
            delay_s=0.5,
        ),
        ScriptedEvent(lines=((b"data", b"two"), (b"data", b"lines"))),
    )


def test_a_sequence_inherits_the_fields_beside_it() -> None:
    made = read({"gap": 0.5, "text": "t", "sequence": [{"status": 401}, {"gap": 1}]})
    assert [step.faults.status for step in made.sequence] == [401, 200]
    assert [step.pacing.gap_s for step in made.sequence] == [0.5, 1.0]
    assert [step.name for step in made.sequence] == ["s/0", "s/1"]


def test_by_credential_falls_back_to_the_fields_beside_it() -> None:
    made = read({"text": "t", "by_credential": {"sk-a": {"status": 401}, "sk-b": {"sequence": [{}, {"status": 500}]}}})
    assert made.by_credential["sk-a"].faults.status == 401
    assert made.by_credential["*"].content.choices[0].text == ("t",)
    assert len(made.by_credential["sk-b"].sequence) == 2


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"txt": "a"}, "s.txt: unknown field; did you mean text?"),
        ({"chunks": "letters"}, "s.chunks: 'letters' is not one of words, characters, count"),
        ({"chunks": {"words": 1, "count": 2}}, "s.chunks: expected words, characters, or one of"),
        ({"tool_calls": [{"arguments": {}}]}, "s.tool_calls.0.name: a tool call needs a name"),
        (
            {"usage": "sometimes"},
            "s.usage: 'sometimes' is not one of asked, final, every, finish, null_after, zero, none",
        ),
        ({"usage": {"promt": 1}}, "s.usage.promt: unknown field; did you mean prompt?"),
        ({"done": 1}, "s.done: expected true or false, not 1"),
        ({"n": 129}, "s.n: expected a whole number from 1 to 128, not 129"),
        ({"choices": [{"gap": 1}]}, "s.choices.0.gap: unknown field"),
        ({"events": [{"data": "x", "text": "y"}]}, "s.events.0: expected either SSE fields"),
        ({"events": [{"repeat": 2}]}, "s.events.0: expected either SSE fields"),
        ({"events": [], "raw": "x"}, "s: events and raw exclude each other"),
        ({"sequence": []}, "s.sequence: needs at least one scenario"),
        ({"sequence": ["name"]}, "s.sequence.0: expected a mapping of scenario fields"),
        ({"sequence": [{}], "by_credential": {}}, "s: sequence and by_credential cannot stand side by side"),
        ({"sequence": [{"cut": {"how": "bang"}}]}, "s.sequence.0.cut.how: 'bang' is not one of rst, fin, clean, stall"),
        ({"framing": "length", "heartbeats": {}}, "s.framing: length cannot be told ahead with heartbeats"),
        ({"framing": "close", "trailers": {"a": "b"}}, "s.trailers: need framing chunked"),
        ("text", "s: expected a mapping of fields, not 'text'"),
    ],
)
def test_mistakes_are_named(fields: object, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        read(fields)
    assert str(caught.value).startswith(message)
