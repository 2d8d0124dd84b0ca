"""The recorded streams of Responses, and what each must lead to."""

import json
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path

import msgspec

from headrace.metering.meter import Meter
from headrace.model.outcome import End
from headrace.model.request import RequestHead
from headrace.model.usage import Calls, ExtraUsage, Usage
from headrace.protocols.responses import Responses
from headrace.protocols.responses_observer import ResponsesObserver
from headrace.protocols.voice import Voice
from headrace.relay.machine import Machine
from tests.relay.driver import Client
from tests.wire.reference import BOM, blocks, payload

FOLDER = Path(__file__).parent / "responses"
ID = "resp_68f1c0ffee"
CREATED_AT = 1790000000
MODEL = "gpt-5.6-sol-2026-08-01"
USAGE = Usage(input_total=9, cached_input=4, cache_write=1, output_total=3, reasoning=1, tier="default")
NO_TIER = msgspec.structs.replace(USAGE, tier="")
SEARCHED = msgspec.structs.replace(USAGE, calls=Calls(web_search=1))
DRAWN = Usage(
    input_total=900, cached_input=400, cache_write=60, cache_write_30m=50, cache_write_12h=10, output_total=30,
    reasoning=0, calls=Calls(image_generation=1, code_execution=1, file_search=1), tier="priority",
    extra=(
        ExtraUsage(
            kind="image_generation",
            model="gpt-image-2",
            usage=Usage(input_total=70, cached_input=16, image_input=50, output_total=1600, image_output=1590),
        ),
    ),
)  # fmt: skip
TERMINALS = ("response.completed", "response.incomplete", "response.failed", "error")


@dataclass(frozen=True)
class Recorded:
    """One stream. `bytes_said` are the ASCII and other bytes of what the model generated; `lacks` are the line ends of
    its last event that it came without."""

    name: str
    end: End = End.COMPLETED
    reason: str = "completed"
    usage: Usage = USAGE
    bytes_said: tuple[int, int] = (2, 3)
    lacks: bytes = b""

    @cached_property
    def data(self) -> bytes:
        """As it came."""
        return (FOLDER / f"{self.name}.sse").read_bytes()

    @property
    def delivered(self) -> bytes:
        """What a client must get."""
        return self.data.removeprefix(BOM) + self.lacks


STREAMS = (
    Recorded("plain"),
    Recorded("crlf"),
    Recorded("cr"),
    Recorded("mixed"),
    Recorded("mixed_crlf_lf"),
    Recorded("unnamed"),
    Recorded("unnumbered"),
    Recorded("gaps"),
    Recorded("no_space"),
    Recorded("odd"),
    Recorded("wrapped"),
    Recorded("utf8", bytes_said=(0, 14)),
    Recorded("surrogates"),
    Recorded("bom"),
    Recorded("keepalives"),
    Recorded("done"),
    Recorded("queued"),
    Recorded("no_last_blank", lacks=b"\n\n"),
    Recorded("no_last_blank_crlf", lacks=b"\r\n"),
    Recorded("tools", bytes_said=(22, 6)),
    Recorded("reasoning", bytes_said=(9, 0)),
    Recorded("search", usage=SEARCHED, bytes_said=(1, 0)),
    Recorded("images", usage=DRAWN, bytes_said=(4, 0)),
    Recorded("unknown", bytes_said=(1, 0)),
    Recorded("refused", End.INCOMPLETE, "refusal", bytes_said=(9, 0)),
    Recorded("length", End.INCOMPLETE, "max_output_tokens", NO_TIER, bytes_said=(1, 3)),
    Recorded("filtered", End.INCOMPLETE, "content_filter", NO_TIER, bytes_said=(0, 0)),
    Recorded("failed", End.FAILED, "server_error", NO_TIER, bytes_said=(1, 0)),
    Recorded("failed_first", End.FAILED, "rate_limit_exceeded", Usage(), (0, 0)),
    Recorded("error_flat", End.FAILED, "server_error", Usage(), (1, 0)),
    Recorded("error_nested", End.FAILED, "rate_limit_exceeded", Usage(), (1, 0)),
    Recorded("error_unnamed", End.FAILED, "server_is_overloaded", Usage(), (1, 0)),
    Recorded("error_and_failed", End.FAILED, "server_error", NO_TIER, bytes_said=(0, 0)),
)


class ResponsesClient(Client):
    """One exchange whose client and upstream speak Responses."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.voice = Voice(Responses(), RequestHead("POST", "/v1/responses", "", list(self.headers)), "ka")
        self.machine = Machine(self.limits, self.voice, self.clock, self.trace)
        self.meter = Meter(ResponsesObserver())

    def answer(self, now: float = 0.0) -> "ResponsesClient":
        """The attempt's head is there."""
        self.meter = Meter(ResponsesObserver())
        self.voice.observer = self.meter.observer
        self.machine.answered(self.meter, now)
        self.take()
        return self


@dataclass
class Told:
    """By a reading of its own: what a client knows of a response after some whole events."""

    events: int = 0
    terminal: bool = False
    id: str = ""
    number: int | None = None

    def read(self, block: bytes) -> bool:
        """Take one block; whether it was an event, not a heartbeat."""
        text = payload(block)
        if text is None:
            return False
        if text.startswith("[DONE]"):
            self.events += 1
            return True
        try:
            value = json.loads(text)
        except ValueError:
            return False
        self.number = value.get("sequence_number", self.number)
        if value.get("type") == "keepalive":
            return False
        self.events += 1
        self.terminal = self.terminal or value.get("type") in TERMINALS or "type" not in value
        if value.get("type") == "response.created":
            self.id = value["response"]["id"]
        return True


@cache
def _told(data: bytes) -> Told:
    told = Told()
    for block in blocks(data):
        told.read(block)
    return told


def told_by(data: bytes) -> Told:
    """What whole blocks tell."""
    return replace(_told(data))
