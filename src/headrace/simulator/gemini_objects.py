"""The JSON objects of Gemini, members in Google's order (google-genai 3.6.1, types.py); what is not set is left out."""

from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from headrace.simulator.answer import Counts
from headrace.simulator.scenario import ErrorSpec, UsageSpec


class FunctionCall(msgspec.Struct):
    id: str
    name: str
    args: msgspec.Raw


class Part(msgspec.Struct, rename="camel"):
    text: str | UnsetType = UNSET
    thought: bool | UnsetType = UNSET
    function_call: FunctionCall | UnsetType = UNSET


class Content(msgspec.Struct):
    parts: list[Part] | UnsetType = UNSET
    role: str = "model"


class Candidate(msgspec.Struct, rename="camel"):
    content: Content
    finish_reason: str | UnsetType = UNSET
    index: int = 0


class Details(msgspec.Struct, rename="camel"):
    token_count: int
    modality: str = "TEXT"


class Usage(msgspec.Struct, rename="camel"):
    prompt_token_count: int
    candidates_token_count: int
    total_token_count: int
    cached_content_token_count: int | UnsetType = UNSET
    prompt_tokens_details: list[Details] | UnsetType = UNSET
    thoughts_token_count: int | UnsetType = UNSET


# UNSET: no member; Raw: the script's own object.
UsageField: TypeAlias = Usage | msgspec.Raw | UnsetType


class Chunk(msgspec.Struct, rename="camel", kw_only=True):
    candidates: list[Candidate] | UnsetType = UNSET
    usage_metadata: UsageField = UNSET
    model_version: str
    response_id: str


def usage_object(counts: Counts | None, spec: UsageSpec, output: int | None = None) -> UsageField:
    """The usageMetadata; no counts: all zero; `output`: the tokens so far, in a running total.

    What a script calls a completion includes the thoughts, as elsewhere; here they are counted apart.
    """
    if spec.object is not None:
        return msgspec.Raw(spec.object)
    if counts is None:
        return Usage(0, 0, 0)
    total = counts.total if output is None else counts.prompt + output
    output = counts.completion if output is None else output
    thoughts = min(counts.reasoning, output)
    return Usage(
        counts.prompt,
        output - thoughts,
        total,
        counts.cached or UNSET,
        [Details(counts.prompt)],
        thoughts or UNSET,
    )


# status → (name, message); the other statuses are as 400 or 500.
_ERRORS = {
    400: ("INVALID_ARGUMENT", "Request contains an invalid argument."),
    401: ("UNAUTHENTICATED", "Request had invalid authentication credentials."),
    402: ("RESOURCE_EXHAUSTED", "Your prepayment credits are depleted."),
    403: ("PERMISSION_DENIED", "The caller does not have permission"),
    404: ("NOT_FOUND", "Requested entity was not found."),
    409: ("ABORTED", "The operation was aborted."),
    429: ("RESOURCE_EXHAUSTED", "Resource has been exhausted (e.g. check quota)."),
    499: ("CANCELLED", "The operation was cancelled."),
    500: ("INTERNAL", "An internal error has occurred. Please retry or report in https://developers.google.com/."),
    501: ("UNIMPLEMENTED", "Operation is not implemented, or supported, or enabled."),
    503: ("UNAVAILABLE", "The model is overloaded. Please try again later."),
    504: ("DEADLINE_EXCEEDED", "Deadline expired before operation could complete."),
}


def error_json(status: int, spec: ErrorSpec) -> bytes:
    """`{"error": {code, message, status}}`; `type`: the name; `code`: a number, or a text, ErrorInfo's reason."""
    name, message = _ERRORS.get(status) or _ERRORS[400 if status < 500 else 500]
    error: dict[str, Any] = {
        "code": spec.code if isinstance(spec.code, int) else status,
        "message": spec.message if spec.message is not None else message,
        "status": spec.type if spec.type is not None else name,
    }
    if isinstance(spec.code, str):
        kind = "type.googleapis.com/google.rpc.ErrorInfo"
        error["details"] = [{"@type": kind, "reason": spec.code, "domain": "googleapis.com"}]
    return msgspec.json.encode({"error": error})
