"""Counts what a request sends, from its raw JSON: for bills without usage, and for limits and holds before it goes up.

Nothing is parsed. The text is counted as it stands in JSON; taken off is what JSON and the API themselves add: a
constant for the envelope, one for each message, one for each part of it. What schemas of tools look like upstream is
not known, and they count as they are written.
"""

from headrace.model.estimate import TextCount
from headrace.protocols.media import part_media
from headrace.protocols.tally import Frame, Tally, sample

_MOST_SEARCHED = 1024 * 1024
"""Bytes of text in which messages are found one by one; that takes 1 ms."""
_MOST_ROUGH = 2048
"""Bytes of a body for which its length tells enough: it is off by some hundred tokens at most."""
_ESCAPED = 3
"""Bytes that `\\u3042` has more than the character itself."""
_ROLE = b'"role"'
_TEXT = b'"text"'
_COMPACT: tuple[Frame, Frame, Frame] = (60, 7, 9, 4), (30, 3, 4, 0), (26, 3, 3, 0)
"""What is taken off for `{"model":"some-model-1","messages":[],"stream":true,"max_tokens":512}`, for each message's
`{"role":"user","content":""},`, and for `{"type":"text","text":""},`, which has the second word twice."""
_SPACED: tuple[Frame, Frame, Frame] = (66, 7, 13, 4), (34, 3, 8, 0), (30, 3, 7, 0)
"""The same with a space behind each colon and comma, which parts the marks."""


def count_request(body: bytes) -> TextCount:
    """Counts over the JSON body of a request; `events` are its messages. Of a long text a sample is counted."""
    text, media = part_media(body)
    envelope, message, part = _SPACED if b'": ' in text[:40] else _COMPACT
    sampled, times = sample(text)
    if len(text) <= _MOST_SEARCHED:
        messages, parts = text.count(_ROLE), text.count(_TEXT)
    else:
        messages, parts = sampled.count(_ROLE) * times, sampled.count(_TEXT) * times
    text = sampled
    if b"\\" in text:
        text = _unescaped(text)
    tally = Tally()
    tally.add(text, times)
    frame = (  # written out: a loop over the four takes longer than counting 300 bytes
        envelope[0] + messages * message[0] + parts * part[0] // 2,
        envelope[1] + messages * message[1] + parts * part[1] // 2,
        envelope[2] + messages * message[2] + parts * part[2] // 2,
        envelope[3] + messages * message[3] + parts * part[3] // 2,
    )
    return tally.count(messages, frame, media)


def rough_tokens(body: bytes) -> int | None:
    """Tokens of a short request, by its length alone and rather too many: for what is settled by real figures soon.
    None where that would not do: count it.

    Texts have 3 to 6 bytes for a token in any script; counting takes ten times as long as this.
    """
    if len(body) > _MOST_ROUGH or b"data" in body:
        return None
    size = len(body) - _COMPACT[0][0]
    if b"\\u" in body:
        size -= _ESCAPED * body.count(b"\\u")
    return max(size * 3 // 10, 1)


def _unescaped(text: bytes) -> bytes:
    """The text with its line ends, quotation marks and escaped characters as they were; what else is escaped stays."""
    if text.isascii() and b"\\u" in text:
        text = text.decode("raw_unicode_escape", "replace").encode("utf-8", "surrogatepass")
    return text.replace(b"\\n", b"\n").replace(b'\\"', b'"')
