"""Finds inline media in a request's body, so that they are counted by kind and not as text.

Media stand in a JSON string as base64, behind a key that ends in `data` (`source.data`, `inlineData.data`, `file_data`,
`input_audio.data`) or in a `data:` URL. They are found by the word, and their end is the next quotation mark, so even
20 MB of them take a few milliseconds; nothing is decoded or parsed.
"""

import re
from typing import Final

MEDIA_TOKENS: Final = {
    "image": 1_000,
    "audio": 1_500,
    "video": 5_000,
    "document": 3_000,
    "other": 100,
}
"""What each counts for, whatever its size, which is not known without a decoder. An image of 1024 × 1024 takes 765
(OpenAI), 1,398 (Anthropic) or 1,032 tokens (Gemini, four tiles)."""

_WORD = b"data"
_OPENING = re.compile(
    rb'data(?:"\s*:\s*"(?:data:(?P<type>[a-z]+)/[^"]{0,200}?;base64,)?|:(?P<url>[a-z]+)/[^"]{0,200}?;base64,)'
)
_BASE64 = re.compile(rb"(?:[A-Za-z0-9+/=_-]|\\/){64}")
_KIND = re.compile(rb"(image|audio|video|application|text)/|(input_audio)|(file_)$")
_BEFORE, _AFTER = 200, 100
"""Bytes around media in which their type is looked for."""
_KINDS = {
    b"image": "image", b"audio": "audio", b"video": "video", b"application": "document", b"text": "document",
    b"input_audio": "audio", b"file_": "document",
}  # fmt: skip


def part_media(body: bytes) -> tuple[bytes, int]:
    """The body without the base64 in it, and what that counts for."""
    at = body.find(_WORD)
    if at < 0:
        return body, 0
    pieces = []
    tokens = done = 0
    while at >= 0:
        opening = _OPENING.match(body, at)
        if opening is None:
            at = body.find(_WORD, at + len(_WORD))
            continue
        start = opening.end()
        named = opening["type"] or opening["url"]
        end = body.find(b'"', start) if named or _BASE64.match(body, start) else -1
        if end >= 0:
            pieces.append(body[done:start])
            kind = _KINDS.get(named, "other") if named else _kind(body, max(done, at - _BEFORE), at, end)
            tokens += MEDIA_TOKENS[kind]
            done = start = end
        at = body.find(_WORD, start)
    return b"".join((*pieces, body[done:])), tokens


def _kind(body: bytes, since: int, at: int, end: int) -> str:
    """The kind of what stands between `at` and `end`, by the type named right before or behind it."""
    since = max(since, body.rfind(b"}", since, at))
    before = [match.group(match.lastindex or 0) for match in _KIND.finditer(body, since, at)]
    if before:
        return _KINDS[before[-1]]
    behind = _KIND.search(body, end, min(end + _AFTER, len(body)))
    return _KINDS[behind.group(behind.lastindex or 0)] if behind is not None else "other"
