"""OpenAI's smaller endpoints, and rerank: moderations, images, speech, transcriptions, videos, each as small as clients
take it. Forms (multipart/form-data) are read by the standard library's mail parser, none of the gateway's own."""

import base64
import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from email.parser import BytesParser
from typing import Any

import msgspec

from headrace.simulator.answer import Answer, Asked, tokens_from_bytes
from headrace.simulator.request import Request, RequestError, body_as

SPEECH = "/audio/speech"
PIECE_BYTES = 1024
"""Bytes of speech for each piece of the text."""
PNG = base64.b64encode(
    bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b4944415478da6364f80f00010501012718e366"
        "0000000049454e44ae426082"
    )
).decode()
"""A picture of one pixel."""
_CATEGORIES = ("harassment", "hate", "self-harm", "sexual", "violence")


class _Fields(msgspec.Struct):
    """What is read of a request, JSON or a form; one kind of endpoint has one part of it."""

    model: str = ""
    stream: bool | None = None
    n: int | None = None
    input: Any = None
    prompt: str | None = None
    query: str | None = None
    documents: list[Any] = []
    response_format: Any = None
    file_bytes: int = 0


@dataclass(frozen=True, slots=True)
class Made:
    """A reply: its pieces are paced as events are; `in_pieces`: they come chunked."""

    content_type: str
    pieces: tuple[bytes, ...]
    in_pieces: bool = False


Make = Callable[[_Fields, Answer], Made]


def find(path: str) -> Make | None:
    """What makes the replies at a path, by its end."""
    return next((make for end, make in _MAKERS.items() if path.endswith(end)), None)


def read_request(request: Request) -> tuple[Asked, _Fields]:
    """What is asked for, in JSON or in a form; raises RequestError."""
    content_type = request.header("content-type") or ""
    if content_type.lower().startswith("multipart/form-data"):
        fields = _fields_from_form(content_type, request.body)
    else:
        fields = body_as(_Fields, request.body)
    texts = [one for one in (fields.input, fields.prompt, fields.query, *fields.documents) if isinstance(one, str)]
    size = sum(len(one.encode("utf-8", "replace")) for one in texts) + fields.file_bytes
    asked = Asked(
        model=fields.model,
        stream=bool(fields.stream),
        input=texts[0] if texts else "",
        prompt_tokens=tokens_from_bytes(size),
    )
    return asked, fields


def _fields_from_form(content_type: str, body: bytes) -> _Fields:
    form = BytesParser().parsebytes(b"Content-Type: " + content_type.encode("latin-1") + b"\r\n\r\n" + body)
    if not form.is_multipart() or form.defects:
        raise RequestError("Could not parse multipart form")
    fields = _Fields()
    for part in form.walk():
        if part.is_multipart():
            continue
        name, value = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        content = value if isinstance(value, bytes) else b""
        if part.get_filename() is not None:
            fields.file_bytes += len(content)
            continue
        text = content.decode("utf-8", "replace")
        match name:
            case "model" | "prompt" | "response_format":
                setattr(fields, name, text)
            case "n":
                fields.n = int(text) if text.isdigit() else None
            case "stream":
                fields.stream = text == "true"
    return fields


# --------------------------------------------------------------------------------------------------------- the replies


def _moderations(fields: _Fields, answer: Answer) -> Made:
    inputs = fields.input if isinstance(fields.input, list) else [fields.input]
    result = {
        "flagged": False,
        "categories": dict.fromkeys(_CATEGORIES, False),
        "category_scores": dict.fromkeys(_CATEGORIES, 0.0),
        "category_applied_input_types": {name: ["text"] for name in _CATEGORIES},
    }
    model = answer.model or "omni-moderation-latest"
    return _json({"id": f"modr-{answer.id}", "model": model, "results": [result for _ in inputs]})


def _images(fields: _Fields, answer: Answer) -> Made:
    number = min(max(fields.n or 1, 1), 10)
    made: dict[str, object] = {"created": answer.created, "data": [{"b64_json": PNG}] * number}
    out = 100 * number
    made["usage"] = _usage(answer, out) | {"input_tokens_details": {"text_tokens": answer.counts.prompt}}
    return _json(made)


def _variations(fields: _Fields, answer: Answer) -> Made:
    return _json({"created": answer.created, "data": [{"b64_json": PNG}] * min(max(fields.n or 1, 1), 10)})


def _speech(fields: _Fields, answer: Answer) -> Made:
    pieces = tuple(speech_from(text) for text in answer.choices[0].text)
    return Made("audio/mpeg", pieces, in_pieces=True)


def speech_from(text: str) -> bytes:
    """The same bytes for the same piece of text."""
    return hashlib.shake_256(text.encode()).digest(PIECE_BYTES)


def _transcriptions(fields: _Fields, answer: Answer) -> Made:
    text = answer.choices[0].text.text
    if fields.response_format == "text":
        return Made("text/plain; charset=utf-8", (text.encode() + b"\n",))
    details = {"audio_tokens": answer.counts.prompt, "text_tokens": 0}
    usage = {"type": "tokens"} | _usage(answer, answer.counts.completion) | {"input_token_details": details}
    return _json({"text": text, "usage": usage})


def _rerank(fields: _Fields, answer: Answer) -> Made:
    """By how many of the query's words a document holds."""
    words = set((fields.query or "").lower().split())
    texts = [one if isinstance(one, str) else str(one.get("text", "")) for one in fields.documents]
    scores = [len(words & set(text.lower().split())) / (len(words) or 1) for text in texts]
    best = sorted(range(len(texts)), key=lambda index: -scores[index])
    results = [{"index": index, "relevance_score": scores[index], "document": {"text": texts[index]}} for index in best]
    usage = {"total_tokens": answer.counts.prompt}
    return _json({"id": answer.id, "model": answer.model, "results": results, "usage": usage})


def _videos(fields: _Fields, answer: Answer) -> Made:
    made = {"id": f"video_{answer.id}", "object": "video", "model": answer.model, "status": "queued", "progress": 0}
    return _json(made | {"created_at": answer.created})


def _usage(answer: Answer, out: int) -> dict[str, object]:
    prompt = answer.counts.prompt
    return {"input_tokens": prompt, "output_tokens": out, "total_tokens": prompt + out}


def _json(value: object) -> Made:
    return Made("application/json", (msgspec.json.encode(value),))


_MAKERS: dict[str, Make] = {
    "/moderations": _moderations,
    "/images/generations": _images,
    "/images/edits": _images,
    "/images/variations": _variations,
    SPEECH: _speech,
    "/audio/transcriptions": _transcriptions,
    "/audio/translations": _transcriptions,
    "/rerank": _rerank,
    "/videos": _videos,
}
