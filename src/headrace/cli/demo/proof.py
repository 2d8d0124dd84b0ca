"""Whether a show went as it must: the client's bytes against the entry, the upstream's record and the expectation."""

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from headrace.cli.demo.client import Answer
from headrace.cli.demo.shows import ANSWER, Show
from headrace.cli.reading import Said, Sort
from headrace.model.entry import Entry


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known after a show: the answer as it came and as it reads, the entry, the body that the upstream sent."""

    answer: Answer
    said: tuple[Said, ...]
    entry: Entry
    sent: bytes

    @property
    def delivered(self) -> bytes:
        """The client's body without what the gateway inserted: the insertions cut out at their offsets."""
        body, kept, position = self.answer.body, b"", 0
        for offset, size in self.entry.wire.insertions:
            kept += body[position:offset]
            position = offset + size
        return kept + body[position:]

    @property
    def text(self) -> str:
        """What the answer says."""
        return "".join(one.text for one in self.said if one.sort is Sort.OUTPUT)

    def count(self, sort: Sort) -> int:
        """How many events of a sort came."""
        return sum(one.sort is sort for one in self.said)


def faults(show: Show, evidence: Evidence) -> list[str]:
    """All that is not as it must be; empty where the show is proof."""
    return [*_bytes(evidence), *_course(show, evidence), *(_cut(evidence) if show.is_cut else _complete(evidence))]


def _bytes(evidence: Evidence) -> Iterator[str]:
    wire = evidence.entry.wire
    if wire.hash_in != wire.hash_out:
        yield "the entry's hashes in and out differ"
    if sha256(evidence.delivered).hexdigest() != wire.hash_out:
        yield "the client's bytes have another hash than the entry"
    if not evidence.sent.startswith(evidence.delivered):
        yield "the client's bytes are not those that the upstream sent"


def _course(show: Show, evidence: Evidence) -> Iterator[str]:
    entry, keepalives = evidence.entry, evidence.count(Sort.KEEPALIVE)
    if evidence.answer.status != 200:
        yield f"the status is {evidence.answer.status}"
    if entry.end != show.end:
        yield f"the entry says {entry.end}, not {show.end}"
    if len(entry.attempts) != 1 + show.failover:
        yield f"the entry has {len(entry.attempts)} attempts, not {1 + show.failover}"
    if keepalives < show.keepalives or keepalives != entry.wire.keepalives:
        yield f"{keepalives} keepalives came, the entry has {entry.wire.keepalives}, at least {show.keepalives} must be"
    if entry.wire.first_event_s is None:
        yield "the entry has no time of the first event"


def _complete(evidence: Evidence) -> Iterator[str]:
    if evidence.text != ANSWER:
        yield f"the text is {evidence.text!r}"
    if evidence.sent != evidence.delivered:
        yield "the upstream sent more than the client got"
    if evidence.count(Sort.ERROR):
        yield "an error event came"
    if evidence.said[-1:] != (Said(Sort.LAST),):
        yield "the protocol's last event is missing"
    if evidence.entry.usage_origin != "upstream":
        yield "the usage is not the upstream's"


def _cut(evidence: Evidence) -> Iterator[str]:
    if not evidence.text or not ANSWER.startswith(evidence.text):
        yield f"the text is {evidence.text!r}"
    if evidence.count(Sort.ERROR) != 1 or evidence.said[-1].sort is not Sort.ERROR:
        yield f"{evidence.count(Sort.ERROR)} error events came; exactly one must, as the last event"
    if evidence.count(Sort.LAST):
        yield "the protocol's last event came, as if the answer were whole"
