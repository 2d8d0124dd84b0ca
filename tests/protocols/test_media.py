import base64
import json

import pytest

from headrace.protocols.media import MEDIA_TOKENS, part_media

B64 = base64.b64encode(bytes(range(256)) * 30).decode()


def url(kind: str) -> str:
    return f"data:{kind};base64,{B64}"


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "image_url", "image_url": {"url": url("image/png"), "detail": "low"}}, "image"),
        ({"type": "input_image", "image_url": url("image/jpeg")}, "image"),
        ({"type": "input_audio", "input_audio": {"data": B64, "format": "wav"}}, "audio"),
        ({"type": "file", "file": {"filename": "a.pdf", "file_data": url("application/pdf")}}, "document"),
        ({"type": "input_file", "filename": "a.pdf", "file_data": B64}, "document"),
        ({"type": "image", "source": {"type": "base64", "media_type": "image/webp", "data": B64}}, "image"),
        ({"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": B64}}, "document"),
        ({"inlineData": {"mimeType": "video/mp4", "data": B64}}, "video"),
        ({"inline_data": {"data": B64, "mime_type": "audio/ogg"}}, "audio"),
        ({"inlineData": {"mimeType": "text/plain", "data": B64}}, "document"),
        ({"type": "redacted_thinking", "data": B64}, "other"),
        ({"url": url("chemical/x-pdb")}, "other"),
    ],
)
@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
def test_each_form_and_kind(part: dict[str, object], kind: str, separators: tuple[str, str]) -> None:
    body = json.dumps({"x": [part, {"text": "what is this?"}]}, separators=separators).encode()
    text, tokens = part_media(body)
    assert tokens == MEDIA_TOKENS[kind]
    assert text == body.replace(B64.encode(), b"")


def test_several_of_them() -> None:
    parts = [
        {"inlineData": {"data": B64, "mimeType": "image/png"}},
        {"inlineData": {"data": B64, "mimeType": "audio/wav"}},
        {"inlineData": {"mimeType": "image/png", "data": B64}},
    ]
    text, tokens = part_media(json.dumps(parts).encode())
    assert tokens == 2 * MEDIA_TOKENS["image"] + MEDIA_TOKENS["audio"]
    assert B64.encode() not in text


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b'{"text":"nothing of that kind"}',
        b'{"text":"the data: a table, image/png;base64, or so"}',
        b'{"input":{"data":"some text in a member of that name, longer than sixty-four bytes, but no base64"}}',
        b'{"data":"short"}',
        b'{"data":{"url":"https://example.com/data"}}',
        b'{"text":"escaped: {\\"data\\":\\"' + b"A" * 100 + b'\\"}"}',
        b'{"data":"' + b"A" * 100,
        b"data",
    ],
)
def test_what_is_text_stays(body: bytes) -> None:
    assert part_media(body) == (body, 0)
