"""What one protocol is to client and upstream: its request, and every byte of a complete stream.

A stream is the events of `first`, N content events, and those of `last`. A content event carries CLOCK_MONOTONIC in
nanoseconds at the moment of sending, in 18 digits right behind `mark`; that clock is one for all processes of a
machine, so receiving time minus stamp is the delay of the event. Numbers that count up begin at `COUNT_FROM`, so that
all content events of a protocol have one length.
"""

from collections.abc import Callable
from dataclasses import dataclass

from bench.load import wire

STAMP_DIGITS = 18
COUNT_FROM, PROMPT_TOKENS = 100_000, 42


@dataclass(frozen=True, slots=True)
class Protocol:
    """One protocol. `headers` are its SDK's own; with those of `wire.post` a request has 24."""

    name: str
    title: str
    model: str
    target: str
    credential: str  # the header that carries the secret
    headers: dict[str, str]
    body: Callable[[int], dict[str, object]]  # of a request; tells the upstream how many content events to send
    first: list[bytes]
    content: bytes  # a template: `content_event` fills it in
    mark: bytes
    last: Callable[[int], list[bytes]]
    blank: bytes = b"\n\n"  # what ends an event

    @property
    def content_bytes(self) -> int:
        """The length of every content event."""
        return len(content_event(self.content, 0, 0))

    @property
    def content_frame(self) -> bytes:
        """The template of a content event as a chunk of a chunked body."""
        return b"%x\r\n%b\r\n" % (self.content_bytes, self.content)

    def body_bytes(self, events: int) -> int:
        """Bytes of a complete stream's body, without framing."""
        return sum(map(len, self.first)) + events * self.content_bytes + sum(map(len, self.last(events)))

    def request(self, port: int, events: int) -> bytes:
        """A request for a stream of `events` content events; 0 means the first events, then silence."""
        return self.post(port, self.body(events))

    def post(self, port: int, body: dict[str, object]) -> bytes:
        """A request as an official SDK sends it."""
        return wire.post(port, self.target, self.headers | {self.credential: self.secret(wire.CLIENT_KEY)}, body)

    def secret(self, secret: str) -> str:
        """A secret as it stands in the header `credential`."""
        return f"Bearer {secret}" if self.credential == "Authorization" else secret


def content_event(template: bytes, place: int, at_ns: int) -> bytes:
    """Content event number `place`, from 0; `template` is a protocol's `content` or `content_frame`."""
    number = COUNT_FROM + place
    return template % {b"number": number, b"total": number + PROMPT_TOKENS, b"stamp": at_ns}
