"""Counts what a request sends, from its raw JSON: for limits and holds before it goes up, and for bills without usage.

Nothing is parsed. The text is counted as it stands in JSON; taken off is what JSON and the API themselves add: a
constant for the envelope, one for each message, one for each part of it. What schemas of tools look like upstream is
not known, and they count as they are written.
"""

from headrace.model.estimate import TextCount
from headrace.protocols.media import part_media
from headrace.protocols.tally import Frame, Tally, sample

_MOST_SEARCHED = 1024 * 1024
"""Bytes of text in which messages are found one by one; that takes 1 ms."""
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
    ascii_bytes, words, marks, digits = (
        envelope[at] + messages * message[at] + parts * part[at] // 2 for at in range(len(envelope))
    )
    return tally.count(messages, (ascii_bytes, words, marks, digits), media)


def _unescaped(text: bytes) -> bytes:
    """The text with its line ends, quotation marks and escaped characters as they were; what else is escaped stays."""
    if text.isascii() and b"\\u" in text:
        text = text.decode("raw_unicode_escape", "replace").encode("utf-8", "surrogatepass")
    return text.replace(b"\\n", b"\n").replace(b'\\"', b'"')
