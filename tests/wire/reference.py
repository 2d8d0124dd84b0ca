"""Server-sent events read once more, one byte at a time and as the standard words it, to compare the gateway with."""

import json
from dataclasses import dataclass, field
from itertools import pairwise

BOM = b"\xef\xbb\xbf"


def boundaries(stream: bytes) -> list[int]:
    """The offsets behind each blank line of `stream` (without a BOM). A CRLF is one line end, also for the offset; a CR
    at the end is a line end, although an LF may follow."""
    found = []
    line_is_empty = True
    position = 0
    while position < len(stream):
        byte = stream[position]
        position += 1
        if byte not in b"\r\n":
            line_is_empty = False
            continue
        if byte == 0x0D and position < len(stream) and stream[position] == 0x0A:
            position += 1
        if line_is_empty:
            found.append(position)
        line_is_empty = True
    return found


def boundaries_within(stream: bytes, ends: list[int], size: int) -> list[int]:
    """The boundaries of the first `size` bytes, from those of the whole: a CRLF that was cut ends in its CR."""
    within = [end for end in ends if end <= size]
    if size + 1 in ends and stream[size - 1 : size + 1] == b"\r\n":
        within.append(size)
    return within


def blocks(stream: bytes) -> list[bytes]:
    """`stream` cut behind each blank line; the last one may be unfinished."""
    ends = boundaries(stream)
    return [stream[start:end] for start, end in pairwise([0, *ends, len(stream)]) if start < end]


def payload(block: bytes) -> str | None:
    """What a block dispatches; None for nothing."""
    lines = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")
    data = []
    for line in lines:
        name, _, value = line.partition(b":")
        if name == b"data":
            data.append(value.removeprefix(b" "))
    return b"\n".join(data).decode("utf-8") if data else None


@dataclass
class Story:
    """What a client that reads Chat Completions would know after some bytes."""

    events: int = 0
    done: bool = False
    failed: bool = False
    finishes: dict[int, str | None] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether nothing that matters is missing."""
        return self.failed or self.done or (bool(self.finishes) and None not in self.finishes.values())

    def read(self, block: bytes) -> bool:
        """Take one block; whether it was an event, not a heartbeat."""
        try:
            text = payload(block)
        except UnicodeDecodeError:
            return False
        if text is None:
            return False
        if text.startswith("[DONE]"):
            self.events += 1
            self.done = True
            return True
        try:
            value = json.loads(text)
        except ValueError:
            return False
        self.events += 1
        self._note(value)
        return True

    def _note(self, value: object) -> None:
        if not isinstance(value, dict):
            return
        spoke = False
        for choice in value.get("choices") or ():
            spoke = spoke or bool(choice["delta"].get("content"))
            if choice["finish_reason"] is not None:
                self.finishes[choice["index"]] = choice["finish_reason"]
            else:
                self.finishes.setdefault(choice["index"], None)
        if value.get("error") and not spoke and not self.done:
            self.failed = True
