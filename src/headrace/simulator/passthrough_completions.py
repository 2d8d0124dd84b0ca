"""OpenAI's `POST …/completions`, streaming or not: the older form of a chat, a prompt and a text."""

from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from headrace.simulator import chat
from headrace.simulator.answer import Answer, Asked, PieceKind, tokens_from_bytes
from headrace.simulator.chat_objects import UsageField, usage_object
from headrace.simulator.request import RequestError, body_as
from headrace.simulator.scenario import Scenario, UsageStyle
from headrace.simulator.spelling import Event, data_event

PATH = "/completions"
ENDS_IN_DONE = True

done_event = chat.done_event
error_body = chat.error_body
error_event = chat.error_event
own_headers = chat.own_headers


class _StreamOptions(msgspec.Struct):
    include_usage: bool | None = None


class _Request(msgspec.Struct):
    model: str = ""
    prompt: Any = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None
    n: int | None = None


class _Choice(msgspec.Struct):
    text: str
    index: int
    logprobs: None = None
    finish_reason: str | None = None


class _Completion(msgspec.Struct, kw_only=True):
    id: str
    object: str = "text_completion"
    created: int
    model: str
    choices: list[_Choice]
    usage: UsageField | UnsetType = UNSET


def read_request(body: bytes) -> Asked:
    """What is asked for; raises RequestError. Of several prompts the last is the one that is answered."""
    request = body_as(_Request, body)
    if not request.model:
        raise RequestError("you must provide a model parameter")
    prompts = request.prompt if isinstance(request.prompt, list) else [request.prompt]
    texts = [one for one in prompts if isinstance(one, str)]
    size = sum(len(one.encode("utf-8", "replace")) for one in texts)
    return Asked(
        model=request.model,
        stream=bool(request.stream),
        include_usage=bool(request.stream_options and request.stream_options.include_usage),
        n=min(max(request.n or 1, 1), 128),
        input=texts[-1] if texts else "",
        prompt_tokens=tokens_from_bytes(size),
    )


def id_from(letters: str) -> str:
    return f"cmpl-{letters}"


def events(answer: Answer, scenario: Scenario) -> Iterator[Event]:
    """A chunk for each piece of text, one with the finish_reason for each choice, usage if it is asked for."""
    said = 0
    for choice in answer.choices:
        for piece in choice.pieces():
            if piece.kind is PieceKind.TEXT:
                said += len(piece.text.encode())
                yield _chunk(answer, [_Choice(piece.text, choice.index)], said)
        yield _chunk(answer, [_Choice("", choice.index, finish_reason=choice.finish_reason)], said)
    usage = scenario.content.usage
    if usage.style is UsageStyle.FINAL or (usage.style is UsageStyle.ASKED and answer.asked.include_usage):
        yield _chunk(answer, [], said, usage_object(answer.counts, usage))


def whole(answer: Answer, scenario: Scenario) -> bytes:
    """The `text_completion` object."""
    choices = [_Choice(one.text.text, one.index, finish_reason=one.finish_reason) for one in answer.choices]
    usage = scenario.content.usage
    counted = UNSET if usage.style is UsageStyle.NONE else usage_object(answer.counts, usage)
    return _json(answer, choices, counted)


def _chunk(answer: Answer, choices: list[_Choice], said: int, usage: UsageField = UNSET) -> Event:
    return data_event(_json(answer, choices, usage), tokens_from_bytes(said))


def _json(answer: Answer, choices: list[_Choice], usage: UsageField) -> bytes:
    made = _Completion(id=answer.id, created=answer.created, model=answer.model, choices=choices, usage=usage)
    return msgspec.json.encode(made)
