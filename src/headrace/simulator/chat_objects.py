"""The JSON objects of Chat Completions, members in OpenAI's order (openai-python 3.57.0, types/chat)."""

from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from headrace.simulator.answer import Counts
from headrace.simulator.scenario import UsageSpec

FINGERPRINT = "fp_simulator"


class PromptDetails(msgspec.Struct):
    cached_tokens: int
    audio_tokens: int = 0


class CompletionDetails(msgspec.Struct):
    reasoning_tokens: int
    audio_tokens: int = 0
    accepted_prediction_tokens: int = 0
    rejected_prediction_tokens: int = 0


class Usage(msgspec.Struct):
    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    prompt_tokens_details: PromptDetails
    completion_tokens_details: CompletionDetails


# UNSET: no member; None: null; Raw: the script's own object.
UsageField: TypeAlias = Usage | msgspec.Raw | UnsetType | None


class Function(msgspec.Struct):
    name: str | UnsetType
    arguments: str


class ToolDelta(msgspec.Struct):
    index: int
    id: str | UnsetType = UNSET
    type: str | UnsetType = UNSET
    function: Function | UnsetType = UNSET


class Delta(msgspec.Struct):
    role: str | UnsetType = UNSET
    content: str | UnsetType | None = UNSET
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    tool_calls: list[ToolDelta] | UnsetType = UNSET
    refusal: str | UnsetType | None = UNSET


class ChunkChoice(msgspec.Struct):
    index: int
    delta: Delta
    logprobs: None = None
    finish_reason: str | None = None


class Chunk(msgspec.Struct, kw_only=True):
    id: str
    object: str = "chat.completion.chunk"
    created: int
    model: str
    service_tier: str = "default"
    system_fingerprint: str = FINGERPRINT
    choices: list[ChunkChoice]
    usage: UsageField = UNSET
    obfuscation: str | UnsetType = UNSET


class Call(msgspec.Struct, kw_only=True):
    id: str
    type: str = "function"
    function: Function


class Message(msgspec.Struct, kw_only=True):
    role: str = "assistant"
    content: str | None
    reasoning_content: str | UnsetType = UNSET
    reasoning: str | UnsetType = UNSET
    tool_calls: list[Call] | UnsetType = UNSET
    refusal: str | None = None
    annotations: list[str] = []


class CompletionChoice(msgspec.Struct):
    index: int
    message: Message
    logprobs: None
    finish_reason: str


class Completion(msgspec.Struct, kw_only=True):
    id: str
    object: str = "chat.completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: UsageField = UNSET
    service_tier: str = "default"
    system_fingerprint: str = FINGERPRINT


def usage_object(counts: Counts | None, spec: UsageSpec, completion: int | None = None) -> UsageField:
    """The usage object; no counts: all zero; `completion`: the tokens so far, in a running count."""
    if spec.object is not None:
        return msgspec.Raw(spec.object)
    if counts is None:
        return Usage(0, 0, 0, PromptDetails(0), CompletionDetails(0))
    total = counts.total
    if completion is not None:
        total = counts.prompt + completion
    else:
        completion = counts.completion
    reasoning = min(counts.reasoning, completion)
    return Usage(counts.prompt, completion, total, PromptDetails(counts.cached), CompletionDetails(reasoning))
