"""The JSON objects of Anthropic Messages, members in Anthropic's order (anthropic-python 2.14.0, types)."""

from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from headrace.simulator.answer import Counts
from headrace.simulator.scenario import UsageSpec, UsageStyle


class CacheCreation(msgspec.Struct):
    ephemeral_5m_input_tokens: int = 0
    ephemeral_1h_input_tokens: int = 0


class OutputDetails(msgspec.Struct):
    thinking_tokens: int


class Usage(msgspec.Struct, kw_only=True):
    input_tokens: int
    cache_creation_input_tokens: int = 0
    cache_read_input_tokens: int
    cache_creation: CacheCreation | UnsetType = UNSET
    output_tokens: int
    output_tokens_details: OutputDetails | UnsetType = UNSET
    service_tier: str | UnsetType = UNSET


# UNSET: no member; Raw: the script's own object.
UsageField: TypeAlias = Usage | msgspec.Raw | UnsetType


class Text(msgspec.Struct, tag="text"):
    text: str


class Thinking(msgspec.Struct, tag="thinking"):
    thinking: str
    signature: str


class ToolUse(msgspec.Struct, tag="tool_use"):
    id: str
    name: str
    input: msgspec.Raw = msgspec.Raw(b"{}")


Block: TypeAlias = Text | Thinking | ToolUse


class TextDelta(msgspec.Struct, tag="text_delta"):
    text: str


class ThinkingDelta(msgspec.Struct, tag="thinking_delta"):
    thinking: str


class SignatureDelta(msgspec.Struct, tag="signature_delta"):
    signature: str


class InputDelta(msgspec.Struct, tag="input_json_delta"):
    partial_json: str


Delta: TypeAlias = TextDelta | ThinkingDelta | SignatureDelta | InputDelta


class Message(msgspec.Struct, kw_only=True, tag="message"):
    id: str
    role: str = "assistant"
    model: str
    content: list[Block]
    stop_reason: str | None = None
    stop_sequence: str | None = None
    usage: UsageField = UNSET


class MessageStart(msgspec.Struct, tag="message_start"):
    message: Message


class BlockStart(msgspec.Struct, tag="content_block_start"):
    index: int
    content_block: Block


class BlockDelta(msgspec.Struct, tag="content_block_delta"):
    index: int
    delta: Delta


class BlockStop(msgspec.Struct, tag="content_block_stop"):
    index: int


class Stop(msgspec.Struct):
    stop_reason: str
    stop_sequence: str | None = None


class MessageDelta(msgspec.Struct, tag="message_delta"):
    delta: Stop
    usage: UsageField


class MessageStop(msgspec.Struct, tag="message_stop"):
    pass


def whole_usage(counts: Counts, spec: UsageSpec, output: int | None = None) -> UsageField:
    """The usage of a whole message; `output`: of message_start, where it is provisional."""
    if spec.style is UsageStyle.NONE:
        return UNSET
    if spec.object is not None and output is None:
        return msgspec.Raw(spec.object)
    usage = _usage(counts, spec, output)
    usage.cache_creation = CacheCreation()
    usage.service_tier = "standard"
    return usage


def final_usage(counts: Counts, spec: UsageSpec) -> UsageField:
    """The usage of message_delta: running totals, fewer members than message_start's."""
    if spec.style is UsageStyle.NONE:
        return UNSET
    return msgspec.Raw(spec.object) if spec.object is not None else _usage(counts, spec)


def _usage(counts: Counts, spec: UsageSpec, output: int | None = None) -> Usage:
    if spec.style is UsageStyle.ZERO:
        return Usage(input_tokens=0, cache_read_input_tokens=0, output_tokens=0)
    usage = Usage(
        input_tokens=max(counts.prompt - counts.cached, 0),
        cache_read_input_tokens=counts.cached,
        output_tokens=counts.completion if output is None else output,
    )
    if counts.reasoning and output is None:
        usage.output_tokens_details = OutputDetails(min(counts.reasoning, counts.completion))
    return usage
