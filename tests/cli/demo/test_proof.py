"""A proof that cannot fail is none: each thing that may be wrong is made wrong once."""

from dataclasses import replace
from hashlib import sha256

import msgspec
import pytest

from headrace.cli.demo.client import Answer, Arrival
from headrace.cli.demo.proof import Evidence, faults
from headrace.cli.demo.shows import ANSWER, Show
from headrace.cli.reading import ChatReading, Said, Sort
from headrace.model.entry import AttemptLine, Entry, Wire
from tests.cli.entries import OTHER_DIGEST, PLAIN

SENT = b"data: all of it\n\ndata: [DONE]\n\n"
KEEPALIVE = b": k\n\n"
HALF = len(b"data: all of it\n\n")
SHOW = Show(title="t", about="a", reading=ChatReading(), model="m", scenario={}, keepalives=1)
CUT = replace(SHOW, end="interrupted", keepalives=0)
ATTEMPT = AttemptLine(channel="c", credential="d", upstream_model="m", started_s=0.0, ended_s=1.0)


def evidence_of(sent: bytes, inserted: bytes, said: tuple[Said, ...], end: str, keepalives: int) -> Evidence:
    digest = sha256(SENT[: len(sent)]).hexdigest()
    wire = Wire(
        insertions=((HALF, len(inserted)),),
        keepalives=keepalives,
        hash_in=digest,
        hash_out=digest,
        first_event_s=0.1,
    )
    entry = msgspec.structs.replace(PLAIN, end=end, attempts=(ATTEMPT,), wire=wire)
    body = sent[:HALF] + inserted + sent[HALF:]
    return Evidence(Answer(200, {}, [Arrival(0.1, body)]), said, entry, SENT)


GOOD = evidence_of(SENT, KEEPALIVE, (Said(Sort.OUTPUT, ANSWER), Said(Sort.KEEPALIVE), Said(Sort.LAST)), "completed", 1)
GOOD_CUT = evidence_of(
    SENT[:HALF], b"data: error\n\n", (Said(Sort.OUTPUT, ANSWER[:9]), Said(Sort.ERROR)), "interrupted", 0
)


def entry(evidence: Evidence, **fields: object) -> Evidence:
    changed: Entry = msgspec.structs.replace(evidence.entry, **fields)
    return replace(evidence, entry=changed)


def wire(evidence: Evidence, **fields: object) -> Evidence:
    return entry(evidence, wire=msgspec.structs.replace(evidence.entry.wire, **fields))


def body(evidence: Evidence, data: bytes) -> Evidence:
    return replace(evidence, answer=Answer(200, {}, [Arrival(0.1, data)]))


def test_what_is_as_it_must_be() -> None:
    assert faults(SHOW, GOOD) == []
    assert faults(CUT, GOOD_CUT) == []


def test_insertions_are_cut_out_where_they_stand() -> None:
    assert GOOD.delivered == SENT
    many = wire(body(GOOD, b"XXab" + KEEPALIVE + KEEPALIVE + b"cY"), insertions=((0, 2), (4, 5), (9, 5), (15, 1)))
    assert many.delivered == b"abc"


@pytest.mark.parametrize(
    ("evidence", "fault"),
    [
        (wire(GOOD, hash_out=OTHER_DIGEST), "hashes in and out differ"),
        (wire(GOOD, hash_in=OTHER_DIGEST, hash_out=OTHER_DIGEST), "another hash than the entry"),
        (body(GOOD, SENT[:HALF] + KEEPALIVE + SENT[HALF:].lower()), "not those that the upstream sent"),
        (replace(GOOD, sent=SENT + b"more"), "the upstream sent more"),
        (replace(GOOD, answer=Answer(502, {}, GOOD.answer.arrivals)), "the status is 502"),
        (entry(GOOD, end="incomplete"), "the entry says incomplete, not completed"),
        (entry(GOOD, attempts=(ATTEMPT, ATTEMPT)), "2 attempts, not 1"),
        (entry(GOOD, usage_origin="none"), "usage is not the upstream's"),
        (wire(GOOD, keepalives=2), "1 keepalives came, the entry has 2"),
        (wire(GOOD, first_event_s=None), "no time of the first event"),
        (replace(GOOD, said=(Said(Sort.OUTPUT, ANSWER), Said(Sort.LAST))), "0 keepalives came"),
        (replace(GOOD, said=(Said(Sort.OUTPUT, "other"), *GOOD.said[1:])), "the text is 'other'"),
        (replace(GOOD, said=GOOD.said[:-1]), "last event is missing"),
        (replace(GOOD, said=(Said(Sort.ERROR), *GOOD.said)), "an error event came"),
    ],
)
def test_what_is_wrong_with_a_stream(evidence: Evidence, fault: str) -> None:
    found = faults(SHOW, evidence)
    assert any(fault in one for one in found), found


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        (GOOD_CUT.said[:1], "0 error events came"),
        ((*GOOD_CUT.said, Said(Sort.ERROR)), "2 error events came"),
        ((*GOOD_CUT.said, Said(Sort.OTHER)), "exactly one must, as the last event"),
        ((Said(Sort.LAST), *GOOD_CUT.said), "as if the answer were whole"),
        ((Said(Sort.OUTPUT, "other"), Said(Sort.ERROR)), "the text is 'other'"),
        ((Said(Sort.ERROR),), "the text is ''"),
        ((), "0 error events came"),
    ],
)
def test_what_is_wrong_with_a_cut(said: tuple[Said, ...], fault: str) -> None:
    found = faults(CUT, replace(GOOD_CUT, said=said))
    assert any(fault in one for one in found), found


def test_a_failover_must_have_happened() -> None:
    assert faults(replace(SHOW, failover=True), GOOD) == ["the entry has 1 attempts, not 2"]
