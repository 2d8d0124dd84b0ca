"""`headrace verify ID --body FILE`: whether what a client received is what the gateway says that it gave to it.

The entry has the hash of the delivered body without the gateway's own insertions, and where these stand. They are cut
out of the capture, and the rest is hashed.
"""

from dataclasses import dataclass
from enum import Enum
from hashlib import sha256
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from headrace.cli.configuration import ConfigChoice
from headrace.cli.entry_lookup import IdArgument, StateChoice, look_up
from headrace.cli.output import JsonOption, Section, echo_json, fail, show
from headrace.model.entry import Entry, Wire
from headrace.state.errands import FoundOpen

UNSETTLED = frozenset({"worker_lost", "journal_damaged"})
"""Reasons of entries that tell a course only up to its last checkpoint."""

_ALTERED = "; was it decoded, joined with other output, or saved as text?"

BodyOption = Annotated[
    Path,
    typer.Option("--body", "-b", metavar="FILE", help="What the client received: the response's body, nothing else."),
]


class Verdict(Enum):
    """What can be said of a capture."""

    EQUAL = "equal"
    DIFFERENT = "different"
    UNKNOWN = "unknown"
    """The entry does not say enough."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The verdict, and why in words."""

    verdict: Verdict
    words: str


class Report(msgspec.Struct):
    """What `--json` prints. Bytes; `delivered` is what the gateway gave to the client's connection."""

    id: str
    verdict: str
    why: str
    captured: int
    delivered: int
    inserted: int
    hash_out: str
    hash_capture: str


def verify(
    id: IdArgument,
    body: BodyOption,
    config: ConfigChoice = None,
    state: StateChoice = None,
    json: JsonOption = False,
) -> None:
    """Compare a client's capture with an entry.

    The gateway's insertions are cut out of the capture, and the rest must have the hash that the entry has of what the
    upstream sent. So the client, or you, can prove that nothing was changed on the way.
    """
    try:
        capture = body.read_bytes()
    except OSError as error:
        fail(f"cannot read {body}: {error.strerror}")
    found = look_up(config, state, id)
    if isinstance(found, FoundOpen):
        fail(f"exchange {found.opened.id} is still open; its hash is known when it has ended")
    finding = compare(found.entry, capture)
    if json:
        echo_json(_report(found.entry, capture, finding))
    else:
        show([_section(found.entry, capture, finding)])
    if finding.verdict is not Verdict.EQUAL:
        raise typer.Exit(1)


def compare(entry: Entry, capture: bytes) -> Finding:
    """What a captured body says against its entry."""
    wire = entry.wire
    if finding := _untold(entry):
        return finding
    delivered = wire.released + wire.inserted
    partly = entry.reason in UNSETTLED
    if partly and len(capture) > delivered:
        capture = capture[:delivered]
    if len(capture) != delivered:
        return Finding(Verdict.DIFFERENT, _lengths(capture, delivered))
    if sha256(without_insertions(wire, capture)).hexdigest() != wire.hash_out:
        return Finding(Verdict.DIFFERENT, "the length is right, the bytes are others" + _ALTERED)
    words = "byte for byte what the upstream sent"
    if wire.inserted:
        words += f", with {wire.inserted} bytes of the gateway's own between"
    if partly:
        words += "; up to the last checkpoint, for the process died: nothing is known of what came behind it"
    return Finding(Verdict.EQUAL, words)


def without_insertions(wire: Wire, body: bytes) -> bytes:
    """A delivered body without what the gateway inserted: cut out at its recorded offsets."""
    parts, position = [], 0
    for offset, size in wire.insertions:
        parts.append(body[position:offset])
        position = offset + size
    return b"".join((*parts, body[position:]))


def _untold(entry: Entry) -> Finding | None:
    """Why nothing can be said, whatever the capture is."""
    wire = entry.wire
    if not wire.released:
        return Finding(
            Verdict.UNKNOWN, "nothing of an upstream's was delivered; what the client got was the gateway's own"
        )
    if not wire.hash_out:
        return Finding(Verdict.UNKNOWN, "the entry has no hash: the process died before it could be recorded")
    if sum(size for _, size in wire.insertions) != wire.inserted:
        return Finding(
            Verdict.UNKNOWN,
            f"the gateway inserted more often than an entry can tell where ({len(wire.insertions)} times)",
        )
    return None


def _lengths(capture: bytes, delivered: int) -> str:
    if capture.startswith((b"HTTP/1.", b"HTTP/2")):
        return "the capture begins with the response's head; it must hold the body alone (curl without -i)"
    missing = delivered - len(capture)
    if missing < 0:
        return f"the capture is {-missing} bytes longer than what was delivered{_ALTERED}"
    return (
        f"the capture is {missing} bytes shorter than what was delivered; whether it is the beginning of that cannot be"
        " told from a hash"
    )


def _report(entry: Entry, capture: bytes, finding: Finding) -> Report:
    wire = entry.wire
    return Report(
        entry.id,
        finding.verdict.value,
        finding.words,
        len(capture),
        wire.released + wire.inserted,
        wire.inserted,
        wire.hash_out,
        sha256(without_insertions(wire, capture)).hexdigest(),
    )


def _section(entry: Entry, capture: bytes, finding: Finding) -> Section:
    wire = entry.wire
    rows = [
        (finding.verdict.value, finding.words),
        ("captured", f"{len(capture)} bytes"),
        ("delivered", f"{wire.released + wire.inserted} bytes, {wire.inserted} of them inserted"),
        ("hash out", wire.hash_out or "none"),
    ]
    if finding.verdict is Verdict.DIFFERENT:
        rows.append(("capture's", sha256(without_insertions(wire, capture)).hexdigest()))
    if wire.hash_in != wire.hash_out:
        rows.append(("NOTE", "the entry's own hashes in and out differ: that is a fault of the gateway; report it"))
    return Section(f"exchange {entry.id}", tuple(rows))
