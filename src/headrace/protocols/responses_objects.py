"""The few members that are read of Responses events and objects (openai-python 3.57.0, types/responses).

Each is read twice if need be: by msgspec, which is cheap and strict, then leniently (`protocols.lenient`).
"""

import json
from typing import Any

import msgspec

from headrace.protocols.lenient import read_leniently
from headrace.protocols.responses_usage import Counts, Tool, ToolUsage


class Part(msgspec.Struct, gc=False):
    """A part of an item's content or of its summary."""

    text: str | None = None
    refusal: str | None = None


class Item(msgspec.Struct, gc=False):
    """An item of `output`."""

    type: str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None
    content: list[Part] | None = None
    summary: list[Part] | None = None


class ResponseObject(msgspec.Struct, gc=False):
    """A Response without its output."""

    id: str | None = None
    object: str | None = None
    created_at: int | float | None = None
    model: str | None = None
    status: str | None = None
    usage: Counts | None = None
    tool_usage: ToolUsage | None = None
    tools: list[Tool] | None = None
    service_tier: str | None = None
    error: Any = None
    incomplete_details: Any = None


class _ItemName(msgspec.Struct, gc=False):
    type: str | None = None
    name: str | None = None


class Event(msgspec.Struct, gc=False):
    """Any event of a stream. `delta` is text in most of those that have one."""

    type: str = ""
    sequence_number: int | None = None
    delta: Any = None
    response: ResponseObject | None = None
    item: _ItemName | None = None


class Fault(msgspec.Struct, gc=False):
    """What tells an error body from a Response, which has a member of that name too."""

    object: Any = None
    error: Any = None


class Body(ResponseObject, gc=False):
    """A whole reply."""

    output: list[Item] | None = None


decode_event = msgspec.json.Decoder(Event).decode
_decode_fault = msgspec.json.Decoder(Fault).decode
_decode_body = msgspec.json.Decoder(Body).decode


def read_event(payload: bytes) -> Event | None:
    """The event in a `data` field; None where it is no JSON at all. JSON that is no object reads as an event that says
    nothing."""
    try:
        return decode_event(payload)
    except (msgspec.MsgspecError, RecursionError):
        return read_leniently(payload, Event)


def read_body(body: bytes) -> Body | None:
    """A whole reply; None where it is no JSON."""
    try:
        return _decode_body(body)
    except (msgspec.MsgspecError, RecursionError):
        return read_leniently(body, Body)


def read_fault(body: bytes) -> Fault | None:
    """The same of a body that may be an error; None where it is no JSON."""
    try:
        return _decode_fault(body)
    except (msgspec.MsgspecError, RecursionError):
        return read_leniently(body, Fault)


def read_object(payload: bytes) -> dict[str, Any]:
    """A JSON object, empty where there is none."""
    try:
        value = json.loads(payload.decode("utf-8"))
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
