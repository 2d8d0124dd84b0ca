"""Reads runs of plain events in one go: types that admit only what is plain, so that msgspec alone tells.

Whatever does not fit is read by the observers, event by event.
"""

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

_UNREADABLE = (msgspec.MsgspecError, RecursionError)
_Some = Annotated[str, msgspec.Meta(min_length=1)]


class _Delta(msgspec.Struct, gc=False):
    content: _Some
    refusal: None = None
    reasoning_content: None = None
    reasoning: None = None
    tool_calls: None = None
    function_call: None = None


class _Choice(msgspec.Struct, gc=False):
    delta: _Delta
    index: Literal[0] = 0
    finish_reason: None = None


class _Chunk(msgspec.Struct, gc=False):
    """A chat.completion.chunk with content of the first choice and nothing else."""

    choices: tuple[_Choice]
    usage: None = None
    error: None = None


class _Numbered(msgspec.Struct, gc=False):
    """A Responses event with a piece of text."""

    type: str
    sequence_number: int
    delta: str


class _Piece(msgspec.Struct, gc=False):
    text: _Some


class _BlockDelta(msgspec.Struct, gc=False):
    """A content_block_delta of Messages."""

    delta: _Piece


_decode_chunk = msgspec.json.Decoder(_Chunk).decode
_decode_numbered = msgspec.json.Decoder(_Numbered).decode
_decode_block_delta = msgspec.json.Decoder(_BlockDelta).decode


def chat_texts(events: Sequence[bytes]) -> list[str] | None:
    """What the first choice said in each of these events, of one data line each."""
    try:
        return [_decode_chunk(event[6:-2]).choices[0].delta.content for event in events]
    except _UNREADABLE:
        return None


def messages_texts(events: Sequence[bytes], at: int) -> list[str] | None:
    """The text in each of these events, whose JSON begins at `at`."""
    try:
        return [_decode_block_delta(event[at:]).delta.text for event in events]
    except _UNREADABLE:
        return None


def responses_texts(events: Sequence[bytes]) -> tuple[list[str], set[str], int] | None:
    """Of events with an event line and a data line each: the text in each, their types, and the last number."""
    at = events[0].find(b"\n") + len(b"\ndata: ")
    try:
        seen = [_decode_numbered(event[at:-2]) for event in events]
    except _UNREADABLE:
        return None
    return [one.delta for one in seen], {one.type for one in seen}, seen[-1].sequence_number
