"""One HTTP reply ready to be played: its head as bytes, its body as timed steps, and how it ends."""

from collections.abc import Iterator
from dataclasses import dataclass
from email.utils import formatdate
from http import HTTPStatus

from headrace.simulator.scenario import Framing, How, Scenario
from headrace.simulator.timeline import Step, Timeline

Headers = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Body:
    """The body before its faults: content type, timeline, and the number of bytes if that is to be told ahead."""

    content_type: str
    timeline: Timeline
    framing: Framing
    length: int | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What the player plays. `tail` ends a body that may end: terminating chunk, trailers, surplus."""

    status: int
    interim: bytes
    head: bytes
    head_delay_s: float
    steps: Iterator[Step]
    timeline: Timeline
    chunked: bool
    tail: bytes
    keep_alive: bool
    close_idle_after_s: float | None
    head_cut: How | None = None


def reply_from(scenario: Scenario, body: Body, extra: Headers, version: str, *, keep_alive: bool) -> Reply:
    """`extra`: the API's own headers; `version`: the request's HTTP version, which decides what framing is possible."""
    faults, pacing = scenario.faults, scenario.pacing
    framing = Framing.CLOSE if version == "1.0" and body.framing is Framing.CHUNKED else body.framing
    keep_alive = keep_alive and faults.keep_alive and framing is not Framing.CLOSE
    headers = _headers(scenario, body, extra, framing, keep_alive=keep_alive)
    head = head_bytes(faults.status, headers)
    cut = faults.cut
    head_cut = cut.how if cut is not None and cut.head_bytes is not None else None
    if cut is not None and cut.head_bytes is not None:
        head = head[: cut.head_bytes]
    chunked = framing is Framing.CHUNKED
    trailers = "".join(f"{name}: {value}\r\n" for name, values in faults.trailers for value in values)
    end = b"0\r\n" + trailers.encode("latin-1") + b"\r\n" if chunked else b""
    return Reply(
        status=faults.status,
        interim=b"".join(head_bytes(status, ()) for status in faults.interim),
        head=head,
        head_delay_s=pacing.head_delay_s,
        steps=body.timeline.steps(pacing, faults),
        timeline=body.timeline,
        chunked=chunked,
        tail=end + faults.surplus,
        keep_alive=keep_alive,
        close_idle_after_s=faults.close_idle_after_s,
        head_cut=head_cut,
    )


def head_bytes(status: int, headers: Headers) -> bytes:
    """A response head (RFC 9112). An unknown status has an empty reason."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = ""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    return f"HTTP/1.1 {status} {reason}\r\n{lines}\r\n".encode("latin-1")


def _headers(scenario: Scenario, body: Body, extra: Headers, framing: Framing, *, keep_alive: bool) -> Headers:
    faults = scenario.faults
    made: list[tuple[str, str]] = [("Date", formatdate(usegmt=True)), ("Content-Type", body.content_type)]
    match framing:
        case Framing.CHUNKED:
            made.append(("Transfer-Encoding", "chunked"))
        case Framing.LENGTH:
            made.append(("Content-Length", str(body.length)))
        case Framing.CLOSE:
            pass
    made.append(("Connection", "keep-alive" if keep_alive else "close"))
    if faults.content_encoding.value != "identity":
        made.append(("Content-Encoding", faults.content_encoding.value))
    made.extend(extra)
    replaced = {name.lower() for name, _ in faults.headers}
    own = [(name, value) for name, values in faults.headers for value in values]
    return tuple([header for header in made if header[0].lower() not in replaced] + own)
