"""`GET /v1/models` in each dialect: which models a dialect can call, and how it spells them."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec

from headrace.http.model_path import VERBS
from headrace.model.limits import decimal_text
from headrace.model.price import Price, Rates
from headrace.model.wire import Dialect, WireProtocol


@dataclass(frozen=True, slots=True)
class ModelLine:
    """What is told of one model: `formats` are the words of `accepted_request_formats`; None is unknown."""

    name: str
    formats: tuple[str, ...]
    max_output: int | None = None
    price: Price | None = None


@dataclass(frozen=True, slots=True)
class ListForm:
    """A dialect's way: models that offer one of `protocols`, as a list and one by one (both JSON)."""

    protocols: frozenset[WireProtocol]
    many: Callable[[Sequence[ModelLine]], bytes]
    one: Callable[[ModelLine], bytes]


def list_form(dialect: Dialect) -> ListForm:
    """The form of `dialect`; OpenAI's for one that has none here."""
    return _FORMS.get(dialect, _FORMS[Dialect.OPENAI])


def _openai_one(line: ModelLine) -> bytes:
    return msgspec.json.encode(_openai(line))


def _openai_many(lines: Sequence[ModelLine]) -> bytes:
    return msgspec.json.encode({"object": "list", "data": [_openai(line) for line in lines]})


def _openai(line: ModelLine) -> dict[str, object]:
    """`created` and `owned_by` are members that its SDKs require."""
    model: dict[str, object] = {
        "id": line.name,
        "object": "model",
        "created": 0,
        "owned_by": "headrace",
        "accepted_request_formats": list(line.formats),
    }
    if line.max_output is not None:
        model["max_output_tokens"] = line.max_output
    return model | _pricing(line)


def _anthropic_one(line: ModelLine) -> bytes:
    return msgspec.json.encode(_anthropic(line))


def _anthropic_many(lines: Sequence[ModelLine]) -> bytes:
    """All on one page, whatever `limit` says."""
    names = [line.name for line in lines]
    return msgspec.json.encode(
        {
            "data": [_anthropic(line) for line in lines],
            "first_id": names[0] if names else None,
            "last_id": names[-1] if names else None,
            "has_more": False,
        }
    )


def _anthropic(line: ModelLine) -> dict[str, object]:
    """anthropic-python 2.14.0, types/model_info.py; an unknown release is told as the epoch, as there."""
    return {
        "type": "model",
        "id": line.name,
        "display_name": line.name,
        "created_at": "1970-01-01T00:00:00Z",
        "lifecycle": "active",
        "max_input_tokens": None,
        "max_tokens": line.max_output,
        "accepted_request_formats": list(line.formats),
        **_pricing(line),
    }


def _gemini_one(line: ModelLine) -> bytes:
    return msgspec.json.encode(_gemini(line))


def _gemini_many(lines: Sequence[ModelLine]) -> bytes:
    """All on one page: without `nextPageToken` it is the last."""
    return msgspec.json.encode({"models": [_gemini(line) for line in lines]})


def _gemini(line: ModelLine) -> dict[str, object]:
    """google-genai 3.6.1, types.Model; `displayName` and `version` are always there."""
    model: dict[str, object] = {
        "name": f"models/{line.name}",
        "version": "001",
        "displayName": line.name,
        "supportedGenerationMethods": list(VERBS),
        "accepted_request_formats": list(line.formats),
    }
    if line.max_output is not None:
        model["outputTokenLimit"] = line.max_output
    return model | _pricing(line)


def _pricing(line: ModelLine) -> dict[str, object]:
    """The price in the form that the configuration file has: currency units per million tokens, as exact decimals."""
    if line.price is None:
        return {}
    shown = _rates(line.price.rates)
    if line.price.tiers:
        shown["tiers"] = {name: _rates(rates) for name, rates in line.price.tiers}
    if (long := line.price.long_context) is not None:
        factors = {dimension.value: decimal_text(factor) for dimension, factor in long.factors}
        shown["long_context"] = {"above": long.above, "factors": factors}
    return {"pricing": shown}


def _rates(rates: Rates) -> dict[str, object]:
    """What has a rate."""
    shown: dict[str, object] = {}
    for name in Rates.__dataclass_fields__:
        value = getattr(rates, name)
        if isinstance(value, tuple):
            shown |= {name: {one.value: decimal_text(rate) for one, rate in value}} if value else {}
        elif value is not None:
            shown[name] = decimal_text(value)
    return shown


_OPENAI = frozenset(
    (
        WireProtocol.CHAT,
        WireProtocol.RESPONSES,
        WireProtocol.COMPLETIONS,
        WireProtocol.EMBEDDINGS,
        WireProtocol.MODERATIONS,
        WireProtocol.IMAGES,
        WireProtocol.AUDIO,
        WireProtocol.VIDEOS,
        WireProtocol.RERANK,
    )
)
_FORMS = {
    Dialect.OPENAI: ListForm(_OPENAI, _openai_many, _openai_one),
    Dialect.ANTHROPIC: ListForm(frozenset((WireProtocol.MESSAGES,)), _anthropic_many, _anthropic_one),
    Dialect.GEMINI: ListForm(frozenset((WireProtocol.GEMINI,)), _gemini_many, _gemini_one),
}
