"""The JSON objects of Responses, members in OpenAI's order (openai-python 3.57.0, types/responses)."""

from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from headrace.simulator.answer import Counts
from headrace.simulator.scenario import UsageSpec, UsageStyle


class InputDetails(msgspec.Struct):
    cached_tokens: int
    cache_write_tokens: int = 0


class OutputDetails(msgspec.Struct):
    reasoning_tokens: int


class Usage(msgspec.Struct):
    input_tokens: int
    input_tokens_details: InputDetails
    output_tokens: int
    output_tokens_details: OutputDetails
    total_tokens: int


# None: null; Raw: the script's own object.
UsageField: TypeAlias = Usage | msgspec.Raw | None


class TextPart(msgspec.Struct, kw_only=True):
    type: str = "output_text"
    annotations: list[str] = []
    logprobs: list[str] = []
    text: str


class RefusalPart(msgspec.Struct, kw_only=True):
    type: str = "refusal"
    refusal: str


class SummaryPart(msgspec.Struct, kw_only=True):
    type: str = "summary_text"
    text: str


Part: TypeAlias = TextPart | RefusalPart | SummaryPart


class Item(msgspec.Struct, kw_only=True):
    """An output item: a message, a reasoning, a function call; each has some of the members."""

    id: str
    type: str
    status: str | UnsetType = UNSET
    arguments: str | UnsetType = UNSET
    call_id: str | UnsetType = UNSET
    name: str | UnsetType = UNSET
    content: list[Part] | UnsetType = UNSET
    role: str | UnsetType = UNSET
    summary: list[Part] | UnsetType = UNSET


class ErrorObject(msgspec.Struct):
    code: str | int | None
    message: str


class IncompleteDetails(msgspec.Struct):
    reason: str


class Reasoning(msgspec.Struct):
    effort: None = None
    summary: None = None


class Format(msgspec.Struct):
    type: str = "text"


class TextSetting(msgspec.Struct):
    format: Format = msgspec.field(default_factory=Format)
    verbosity: str = "medium"


class Response(msgspec.Struct, kw_only=True):
    id: str
    object: str = "response"
    created_at: int
    status: str
    background: bool = False
    completed_at: int | None = None
    error: ErrorObject | None = None
    incomplete_details: IncompleteDetails | None = None
    instructions: None = None
    max_output_tokens: None = None
    max_tool_calls: None = None
    model: str
    output: list[Item] = []
    parallel_tool_calls: bool = True
    previous_response_id: None = None
    prompt_cache_key: None = None
    reasoning: Reasoning = msgspec.field(default_factory=Reasoning)
    safety_identifier: None = None
    service_tier: str = "default"
    store: bool = False
    temperature: float = 1.0
    text: TextSetting = msgspec.field(default_factory=TextSetting)
    tool_choice: str = "auto"
    tools: list[str] = []
    top_logprobs: int = 0
    top_p: float = 1.0
    truncation: str = "disabled"
    usage: UsageField = None
    user: None = None
    metadata: dict[str, str] = {}


def usage_object(counts: Counts, spec: UsageSpec) -> UsageField:
    """The usage object of a response that has ended; of the styles only `none` and `zero` differ from the others."""
    if spec.style is UsageStyle.NONE:
        return None
    if spec.object is not None:
        return msgspec.Raw(spec.object)
    if spec.style is UsageStyle.ZERO:
        return Usage(0, InputDetails(0), 0, OutputDetails(0), 0)
    reasoning = min(counts.reasoning, counts.completion)
    return Usage(counts.prompt, InputDetails(counts.cached), counts.completion, OutputDetails(reasoning), counts.total)
