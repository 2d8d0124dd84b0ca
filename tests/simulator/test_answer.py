from hypothesis import given
from hypothesis import strategies as st

from headrace.simulator.answer import (
    Answer,
    Asked,
    Counts,
    Piece,
    PieceKind,
    answer_from,
    split_text,
    tokens_from_bytes,
)
from headrace.simulator.scenario import (
    DEFAULT_TEXT,
    ChoiceSpec,
    Chunks,
    Content,
    SplitBy,
    ToolCall,
    UsageSpec,
)

ASKED = Asked("m", input="hello big world", prompt_tokens=7)


def answer(*choices: ChoiceSpec, n: int | None = None, usage: UsageSpec | None = None, asked: Asked = ASKED) -> Answer:
    content = Content(choices=choices or (ChoiceSpec(),), n=n, usage=usage or UsageSpec())
    return answer_from(content, asked, "id-1", 100)


@given(st.text(), st.sampled_from(SplitBy), st.integers(1, 9))
def test_the_pieces_joined_are_the_text(text: str, by: SplitBy, size: int) -> None:
    pieces = split_text(text, Chunks(by, size))
    assert "".join(pieces) == text
    assert all(pieces)
    if by is SplitBy.COUNT:
        assert len(pieces) <= size


def test_splits() -> None:
    assert split_text("two  words\n", Chunks()) == ("two", "  words\n")
    assert split_text("a b c", Chunks(SplitBy.WORDS, 2)) == ("a b", " c")
    assert split_text("北京市", Chunks(SplitBy.CHARACTERS, 2)) == ("北京", "市")
    assert split_text("abcde", Chunks(SplitBy.COUNT, 2)) == ("abc", "de")


def test_a_token_is_four_bytes_rounded_up() -> None:
    assert [tokens_from_bytes(size) for size in (0, 1, 4, 5)] == [0, 1, 1, 2]


def test_the_default_text_has_characters_of_one_to_four_bytes() -> None:
    assert {len(character.encode()) for character in DEFAULT_TEXT} == {1, 2, 3, 4}
    assert answer().choices[0].text.text == DEFAULT_TEXT


def test_echo_says_what_was_asked_and_falls_back_to_the_text() -> None:
    assert answer(ChoiceSpec(echo=True)).choices[0].text.text == "hello big world"
    assert answer(ChoiceSpec(echo=True, text=("x",)), asked=Asked("m")).choices[0].text.text == "x"


def test_several_strings_are_the_deltas_themselves() -> None:
    made = answer(ChoiceSpec(text=("A b", "北"), repeat=2)).choices[0]
    assert list(made.pieces()) == [Piece(PieceKind.TEXT, text) for text in ("A b", "北", "A b", "北")]
    assert made.text.text == "A b北A b北"
    assert made.size == len(made.text.text.encode())


def test_reasoning_text_and_calls_come_in_that_order() -> None:
    spec = ChoiceSpec(
        text=("t",), reasoning="r", tool_calls=(ToolCall("f", '{"a":1}', pieces=2), ToolCall("g", "", "own"))
    )
    made = answer(spec).choices[0]
    assert [piece.kind for piece in made.pieces()] == [
        PieceKind.REASONING,
        PieceKind.TEXT,
        PieceKind.TOOL_START,
        PieceKind.TOOL_ARGUMENTS,
        PieceKind.TOOL_ARGUMENTS,
        PieceKind.TOOL_START,
    ]
    assert made.finish_reason == "tool_calls"
    assert made.calls[0].id.startswith("call_")
    assert made.calls[1].id == "own"
    assert made.size == len('rtf{"a":1}g')


def test_calls_or_a_refusal_alone_have_no_text() -> None:
    calls = answer(ChoiceSpec(tool_calls=(ToolCall("f", "{}"),))).choices[0]
    assert (calls.text.text, calls.speaks) == ("", False)
    refusal = answer(ChoiceSpec(refusal="no")).choices[0]
    assert (refusal.text.text, refusal.speaks, refusal.refusal.text) == ("", False, "no")
    empty = answer(ChoiceSpec(text=("",))).choices[0]
    assert (list(empty.pieces()), empty.speaks, empty.finish_reason) == ([], True, "stop")


def test_choices_are_as_many_as_asked_or_as_the_scenario_says() -> None:
    assert len(answer(asked=Asked("m", n=3)).choices) == 3
    two = answer(ChoiceSpec(text=("a",)), ChoiceSpec(text=("b",)), n=3)
    assert [choice.text.text for choice in two.choices] == ["a", "b", "b"]
    assert [choice.index for choice in two.choices] == [0, 1, 2]


def test_counts_come_from_the_text_unless_given() -> None:
    computed = answer(ChoiceSpec(text=("12345678",), reasoning="1234")).counts
    assert computed == Counts(prompt=7, completion=3, total=10, cached=0, reasoning=1)
    given_ = answer(usage=UsageSpec(prompt=1, completion=3, total=9, cached=1, reasoning=2)).counts
    assert given_ == Counts(1, 3, 9, 1, 2)


def test_a_long_answer_costs_no_memory() -> None:
    made = answer(ChoiceSpec(text=("a b",), repeat=10_000_000)).choices[0]
    assert made.size == 30_000_000
    pieces = made.pieces()
    assert [next(pieces).text for _ in range(4)] == ["a", " b", "a", " b"]


def test_ids_are_given_unless_the_scenario_has_its_own() -> None:
    made = answer_from(Content(id="x", created=1, model="y"), ASKED, "id-1", 100)
    assert (made.id, made.created, made.model) == ("x", 1, "y")
    assert (answer().id, answer().created, answer().model) == ("id-1", 100, "m")
