"""Entries for tests of what is said about them."""

from headrace.model.entry import AttemptLine, Entry, Wire
from headrace.model.usage import Usage

DIGEST = "ab" * 32
OTHER_DIGEST = "cd" * 32

PLAIN = Entry(
    id="hr_0001",
    at=1_800_000_000.25,
    duration_s=1.5,
    protocol="chat",
    operation="chat.completions",
    key="dev",
    model="gpt",
    stream=True,
    end="completed",
    reason="stop",
    status=200,
    served_model="gpt-2027",
    finish_reasons=("stop",),
    usage=Usage(input_total=9, cached_input=4, output_total=20),
    usage_origin="upstream",
    attempts=(
        AttemptLine(
            channel="east", credential="main", upstream_model="gpt", started_s=0.001, ended_s=0.101, status=503,
            verdict="upstream_error", detail="status 503 overloaded",
        ),
        AttemptLine(
            channel="west", credential="main", upstream_model="gpt-x", started_s=0.101, ended_s=1.5, status=200,
            verdict="relay", reused=True, upstream_request_id="req_1",
        ),
    ),
    wire=Wire(
        received=1000, released=900, removed=100, inserted=42, events=8, keepalives=2, first_event_s=0.2,
        last_event_s=1.4, gaps=(0, 0, 4, 0, 2, 0, 0, 1, 0, 0, 0, 0), longest_gaps=((3, 0.9), (5, 0.09)),
        insertions=((300, 21), (321, 21)), hash_in=DIGEST, hash_out=DIGEST,
    ),
)  # fmt: skip
