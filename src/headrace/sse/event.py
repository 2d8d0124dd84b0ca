"""What one event says: its name, its data, whether it used `id:` (WHATWG HTML, section 9.2.6)."""

import re
from dataclasses import dataclass

_LINES = re.compile(rb"(?>\r\n|\n|\r)")


@dataclass(frozen=True, slots=True)
class Event:
    """One parsed event. `data` is None where no data line came: such a block dispatches nothing."""

    name: bytes
    data: bytes | None
    has_id: bool
    has_field: bool
    """Whether there was any line besides comments and blank ones."""


def parse(event: bytes) -> Event:
    """Read one whole event with its line ends. Never fails: unknown fields are ignored, as the standard says."""
    name = b""
    data: list[bytes] = []
    has_id = False
    has_field = False
    for line in _LINES.split(event):
        if not line or line.startswith(b":"):
            continue
        has_field = True
        field, _, value = line.partition(b":")
        if value.startswith(b" "):
            value = value[1:]
        if field == b"data":
            data.append(value)
        elif field == b"event":
            name = value
        elif field == b"id":
            has_id = True
    return Event(name, b"\n".join(data) if data else None, has_id, has_field)


def missing_end(rest: bytes) -> bytes:
    """The line ends that a stream's last block lacks, in its own style: what must follow so that parsers dispatch
    it."""
    for end in (b"\r\n", b"\n", b"\r"):
        if rest.endswith(end):
            return end
    found = _LINES.search(rest)
    end = found.group() if found is not None else b"\n"
    return end + end
