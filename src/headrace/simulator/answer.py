"""What is said, without any wire: an abstract answer made of pieces, with its own token counts as the truth.

A token here is four bytes of UTF-8, rounded up: a rule that a test can compute itself from the text that it received.
Answers are lazy: a text repeated a million times costs no memory.
"""

import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import NamedTuple

from headrace.simulator.scenario import DEFAULT_TEXT, ChoiceSpec, Chunks, Content, SplitBy, ToolCall, UsageSpec

BYTES_PER_TOKEN = 4
_WORD = re.compile(r"\s*\S+\s*$|\s*\S+|\s+")


class PieceKind(Enum):
    """What a delta carries."""

    TEXT = auto()
    REASONING = auto()
    REFUSAL = auto()
    TOOL_START = auto()  # the call's id and name; `text` is empty
    TOOL_ARGUMENTS = auto()


class Piece(NamedTuple):
    """One delta of one choice. `tool` is the position of its call. (A tuple: half the cost of a frozen dataclass.)"""

    kind: PieceKind
    text: str
    tool: int = 0


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as the simulator understands it, whatever its protocol."""

    model: str
    stream: bool = False
    include_usage: bool = False
    include_obfuscation: bool = True
    n: int = 1
    input: str = ""  # the last user message
    prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Run:
    """Pieces of one kind, the whole said `repeat` times."""

    kind: PieceKind
    pieces: tuple[str, ...]
    repeat: int = 1

    def __iter__(self) -> Iterator[str]:
        return itertools.chain.from_iterable(itertools.repeat(self.pieces, self.repeat))

    @property
    def text(self) -> str:
        return "".join(self.pieces) * self.repeat

    @property
    def size(self) -> int:
        return sum(len(piece.encode()) for piece in self.pieces) * self.repeat


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call with its id made."""

    id: str
    name: str
    arguments: Run


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice: what is said, what is called, why it ends."""

    index: int
    reasoning: Run
    text: Run
    refusal: Run
    calls: tuple[Call, ...]
    finish_reason: str

    @property
    def speaks(self) -> bool:
        """Whether there is content (an answer of tool calls alone has null)."""
        return bool(self.text.pieces) or not (self.calls or self.refusal.pieces)

    @property
    def size(self) -> int:
        """Bytes of UTF-8 that count as completion."""
        said = self.reasoning.size + self.text.size + self.refusal.size
        return said + sum(len(call.name.encode()) + call.arguments.size for call in self.calls)

    def pieces(self) -> Iterator[Piece]:
        for run in (self.reasoning, self.text, self.refusal):
            for text in run:
                yield Piece(run.kind, text)
        for index, call in enumerate(self.calls):
            yield Piece(PieceKind.TOOL_START, "", index)
            for text in call.arguments:
                yield Piece(PieceKind.TOOL_ARGUMENTS, text, index)


@dataclass(frozen=True, slots=True)
class Counts:
    """Token numbers of a whole answer."""

    prompt: int
    completion: int
    total: int
    cached: int
    reasoning: int


@dataclass(frozen=True, slots=True)
class Answer:
    """Everything that a protocol module needs to spell a reply."""

    id: str
    created: int
    model: str
    choices: tuple[Choice, ...]
    counts: Counts
    asked: Asked


def answer_from(content: Content, asked: Asked, id_: str, created: int) -> Answer:
    """The answer of a scenario to a request; `id_`, `created` (Unix seconds) unless the scenario has its own."""
    specs = content.choices
    number = content.n or asked.n
    choices = tuple(_choice(index, specs[min(index, len(specs) - 1)], asked, id_) for index in range(number))
    return Answer(
        id=content.id or id_,
        created=content.created if content.created is not None else created,
        model=content.model or asked.model,
        choices=choices,
        counts=_counts(content.usage, choices, asked),
        asked=asked,
    )


def tokens_from_bytes(size: int) -> int:
    """The simulator's token rule."""
    return -(-size // BYTES_PER_TOKEN)


def split_text(text: str, chunks: Chunks) -> tuple[str, ...]:
    """The deltas of a text; joined they are the text. Words keep the space before them; CJK text is one word."""
    match chunks.by:
        case SplitBy.WORDS:
            words = _WORD.findall(text)
            return tuple("".join(words[at : at + chunks.size]) for at in range(0, len(words), chunks.size))
        case SplitBy.CHARACTERS:
            size = chunks.size
        case SplitBy.COUNT:
            size = max(1, -(-len(text) // chunks.size))
    return tuple(text[at : at + size] for at in range(0, len(text), size))


def _choice(index: int, spec: ChoiceSpec, asked: Asked, id_: str) -> Choice:
    calls = tuple(_call(position, index, call, id_) for position, call in enumerate(spec.tool_calls))
    return Choice(
        index=index,
        reasoning=Run(PieceKind.REASONING, split_text(spec.reasoning, spec.chunks)),
        text=Run(PieceKind.TEXT, _text_pieces(spec, asked), spec.repeat),
        refusal=Run(PieceKind.REFUSAL, split_text(spec.refusal, spec.chunks)),
        calls=calls,
        finish_reason=spec.finish_reason or ("tool_calls" if calls else "stop"),
    )


def _text_pieces(spec: ChoiceSpec, asked: Asked) -> tuple[str, ...]:
    given: Sequence[str] | None = spec.text
    if spec.echo and asked.input:
        given = (asked.input,)
    if given is None:
        given = () if spec.tool_calls or spec.refusal else (DEFAULT_TEXT,)
    return tuple(given) if len(given) > 1 else split_text("".join(given), spec.chunks)


def _call(position: int, choice: int, call: ToolCall, id_: str) -> Call:
    made = call.id or f"call_{id_[-20:]}{choice:02d}{position:02d}"
    pieces = split_text(call.arguments, Chunks(SplitBy.COUNT, call.pieces))
    return Call(made, call.name, Run(PieceKind.TOOL_ARGUMENTS, pieces))


def _counts(usage: UsageSpec, choices: tuple[Choice, ...], asked: Asked) -> Counts:
    prompt = asked.prompt_tokens if usage.prompt is None else usage.prompt
    completion = tokens_from_bytes(sum(choice.size for choice in choices))
    completion = completion if usage.completion is None else usage.completion
    reasoning = tokens_from_bytes(sum(choice.reasoning.size for choice in choices))
    return Counts(
        prompt=prompt,
        completion=completion,
        total=prompt + completion if usage.total is None else usage.total,
        cached=usage.cached,
        reasoning=min(reasoning, completion) if usage.reasoning is None else usage.reasoning,
    )
