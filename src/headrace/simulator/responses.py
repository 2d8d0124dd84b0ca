"""OpenAI Responses: reads a request, and spells an answer as events or as one object.

Order on the wire: created, in_progress; for each item output_item.added, its parts (part added, deltas, done, part
done), output_item.done; then completed, incomplete or failed. Every event is named and numbered. There is one answer:
of several choices the first is spoken.
"""

import random
import string
from collections.abc import Iterator
from typing import Any

import msgspec

from headrace.simulator.answer import Answer, Asked, Call, Run, tokens_from_bytes
from headrace.simulator.composition import openai_headers
from headrace.simulator.errors import error_json
from headrace.simulator.request import RequestError, body_as, text_of
from headrace.simulator.responses_objects import (
    ErrorObject,
    IncompleteDetails,
    Item,
    Part,
    RefusalPart,
    Response,
    SummaryPart,
    TextPart,
    usage_object,
)
from headrace.simulator.scenario import ErrorSpec, Scenario
from headrace.simulator.spelling import Event, data_event

PATH = "/responses"
ENDS_IN_DONE = False
FAILED = "failed"
"""The finish_reason that makes the answer end in `response.failed`."""

_INCOMPLETE = {"length": "max_output_tokens", "content_filter": "content_filter"}
_PADDING = string.ascii_letters + string.digits
_encode = msgspec.json.Encoder().encode


class _Turn(msgspec.Struct):
    role: str = ""
    content: Any = None
    output: Any = None


class _StreamOptions(msgspec.Struct):
    include_obfuscation: bool | None = None


class _Request(msgspec.Struct):
    model: str = ""
    input: str | list[_Turn] | None = None
    instructions: Any = None
    stream: bool | None = None
    stream_options: _StreamOptions | None = None


def read_request(body: bytes) -> Asked:
    """What a POST …/responses asks for; raises RequestError."""
    request = body_as(_Request, body)
    if not request.model:
        raise RequestError("Missing required parameter: 'model'.", "model")
    given = request.input or []
    turns = [_Turn("user", given)] if isinstance(given, str) else given
    texts = [(turn.role, text_of(turn.content) or text_of(turn.output)) for turn in turns]
    texts.append(("system", text_of(request.instructions)))
    options = request.stream_options or _StreamOptions()
    return Asked(
        model=request.model,
        stream=bool(request.stream),
        include_obfuscation=options.include_obfuscation is not False,
        input=next((text for role, text in reversed(texts) if role == "user"), ""),
        prompt_tokens=tokens_from_bytes(sum(len(text.encode()) for _, text in texts)),
    )


def id_from(letters: str) -> str:
    return f"resp_{letters}"


def events(answer: Answer, scenario: Scenario) -> Iterator[Event]:
    """The generated events of a stream."""
    return _Stream(answer, scenario).events()


def done_event(payload: str, tokens: int) -> Event:
    """What Open Responses ends in, and OpenAI does not."""
    return data_event(payload.encode(), tokens)


def error_event(status: int, spec: ErrorSpec, tokens: int, position: int) -> Event:
    """A flat `error`, numbered as the event that it stands for."""
    error = msgspec.json.decode(error_json(status, spec))["error"]
    code = error["code"] if error["code"] is not None else error["type"]
    said = {"type": "error", "sequence_number": position, "code": code, "message": error["message"]}
    return data_event(_encode({**said, "param": error["param"]}), tokens, b"error")


error_body = error_json
own_headers = openai_headers


def whole(answer: Answer, scenario: Scenario) -> bytes:
    """The Response object of a reply without streaming."""
    items = [item for item, _ in _items(answer)]
    return _encode(_ended(answer, scenario, items))


def _ended(answer: Answer, scenario: Scenario, items: list[Item]) -> Response:
    """The response as it is at its end; the item that was being said when it broke off is incomplete."""
    reason = answer.choices[0].finish_reason
    response = _response(answer, "completed")
    response.output = items
    response.usage = usage_object(answer.counts, scenario.content.usage)
    if reason in _INCOMPLETE:
        response.status = "incomplete"
        response.incomplete_details = IncompleteDetails(_INCOMPLETE[reason])
    elif reason == FAILED:
        error = scenario.faults.error
        response.status = "failed"
        response.error = ErrorObject(error.code or "server_error", error.message or "The model failed.")
    else:
        response.completed_at = answer.created
    return response


def _response(answer: Answer, status: str) -> Response:
    return Response(id=answer.id, created_at=answer.created, status=status, model=answer.model)


def _items(answer: Answer) -> Iterator[tuple[Item, tuple[Run, ...] | Call]]:
    """Each output item as it is when it is whole, with what is said of it piece by piece."""
    choice = answer.choices[0]
    stem = answer.id.removeprefix("resp_")
    if choice.reasoning.pieces:
        summary: list[Part] = [SummaryPart(text=choice.reasoning.text)]
        yield Item(id=f"rs_{stem}", type="reasoning", summary=summary), (choice.reasoning,)
    runs: list[Run] = []
    parts: list[Part] = []
    if choice.speaks:
        runs.append(choice.text)
        parts.append(TextPart(text=choice.text.text))
    if choice.refusal.pieces:
        runs.append(choice.refusal)
        parts.append(RefusalPart(refusal=choice.refusal.text))
    if runs:
        status = "incomplete" if choice.finish_reason in _INCOMPLETE else "completed"
        yield (
            Item(id=f"msg_{stem}", type="message", status=status, content=parts, role="assistant"),
            tuple(runs),
        )
    for number, call in enumerate(choice.calls):
        item = Item(
            id=f"fc_{stem}{number:02d}",
            type="function_call",
            status="completed",
            arguments=call.arguments.text,
            call_id=call.id,
            name=call.name,
        )
        yield item, call


class _Stream:
    """One answer being spelled; `_said` counts the UTF-8 bytes said so far, from which tokens follow."""

    def __init__(self, answer: Answer, scenario: Scenario) -> None:
        self._answer = answer
        self._scenario = scenario
        self._padded = scenario.spelling.obfuscation and answer.asked.include_obfuscation
        self._said = 0
        self._number = 0

    def events(self) -> Iterator[Event]:
        answer = self._answer
        for name in ("created", "in_progress"):
            yield self._event(f"response.{name}", response=_response(answer, "in_progress"))
        items: list[Item] = []
        for item, said in _items(answer):
            yield from self._item(item, said, len(items))
            items.append(item)
        ended = _ended(answer, self._scenario, items)
        yield self._event(f"response.{ended.status}", response=ended)

    def _item(self, item: Item, said: tuple[Run, ...] | Call, index: int) -> Iterator[Event]:
        begun = msgspec.structs.replace(item)
        if isinstance(said, Call):
            self._said += len(said.name.encode())
            begun.arguments = ""
        if begun.status is not msgspec.UNSET:
            begun.status = "in_progress"
        if begun.content is not msgspec.UNSET:
            begun.content = []
        if begun.summary is not msgspec.UNSET:
            begun.summary = []
        yield self._event("response.output_item.added", output_index=index, item=begun)
        if isinstance(said, Call):
            yield from self._arguments(item, said, index)
        else:
            yield from self._parts(item, said, index)
        yield self._event("response.output_item.done", output_index=index, item=item)

    def _arguments(self, item: Item, call: Call, index: int) -> Iterator[Event]:
        place = {"item_id": item.id, "output_index": index}
        name = "response.function_call_arguments"
        for text in call.arguments:
            yield self._delta(name, text, place)
        yield self._event(f"{name}.done", **place, name=call.name, arguments=item.arguments)

    def _parts(self, item: Item, runs: tuple[Run, ...], index: int) -> Iterator[Event]:
        parts = item.content or item.summary
        assert isinstance(parts, list)
        for number, (part, run) in enumerate(zip(parts, runs, strict=True)):
            where, name, member = _WORDS[type(part)]
            kind = "summary" if isinstance(part, SummaryPart) else "content"
            place = {"item_id": item.id, "output_index": index, f"{kind}_index": number}
            yield self._event(f"{where}.added", **place, part=msgspec.structs.replace(part, **{member: ""}))
            logprobs: dict[str, Any] = {"logprobs": []} if isinstance(part, TextPart) else {}
            for text in run:
                yield self._delta(name, text, place, logprobs)
            yield self._event(f"{name}.done", **place, **logprobs, **{member: getattr(part, member)})
            yield self._event(f"{where}.done", **place, part=part)

    def _delta(self, name: str, text: str, place: dict[str, Any], more: dict[str, Any] | None = None) -> Event:
        self._said += len(text.encode())
        fields = {**place, "delta": text, **(more or {})}
        if self._padded:
            fields["obfuscation"] = "".join(random.choices(_PADDING, k=random.randint(1, 16)))
        return self._event(f"{name}.delta", **fields)

    def _event(self, type_: str, **fields: object) -> Event:
        said = {"type": type_, "sequence_number": self._number, **fields}
        self._number += 1
        tokens = min(tokens_from_bytes(self._said), self._answer.counts.completion)
        return data_event(_encode(said), tokens, type_.encode())


# A part's kind → its part event, the event of its text, the member that holds the text.
_WORDS = {
    TextPart: ("response.content_part", "response.output_text", "text"),
    RefusalPart: ("response.content_part", "response.refusal", "refusal"),
    SummaryPart: ("response.reasoning_summary_part", "response.reasoning_summary_text", "text"),
}
