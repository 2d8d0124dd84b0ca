"""The recorded streams, and what each must lead to."""

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from headrace.model.outcome import End
from headrace.model.usage import Usage
from tests.wire.reference import BOM, blocks

FOLDER = Path(__file__).parent / "chat"
HUGE = 3 * 1024 * 1024
TOTALS = Usage(input_total=9, output_total=3)
USAGE = Usage(
    input_total=9, cached_input=4, audio_input=0, output_total=3, reasoning=1, audio_output=0, accepted_prediction=0,
    rejected_prediction=0,
)  # fmt: skip
DETAILED = Usage(
    input_total=90, cached_input=40, cache_write=20, audio_input=5, image_input=6, output_total=30, reasoning=10,
    audio_output=2, image_output=1, accepted_prediction=4, rejected_prediction=3, tier="priority",
)  # fmt: skip


@dataclass(frozen=True)
class Recorded:
    """One stream. `usage` is what it reports, `final` whether behind its last output; `lacks` are the line ends of its
    last event that it came without."""

    name: str
    end: End = End.COMPLETED
    reason: str = "stop"
    usage: Usage = USAGE
    final: bool = True
    added_usage: bool = False
    lacks: bytes = b""
    file: str = ""

    @cached_property
    def data(self) -> bytes:
        """As it came."""
        return huge() if self.name == "huge" else (FOLDER / f"{self.file or self.name}.sse").read_bytes()

    @cached_property
    def removed(self) -> tuple[bytes, ...]:
        """The named exceptions: what of it is not delivered, each once."""
        bom = (BOM,) if self.data.startswith(BOM) else ()
        usage = [block for block in blocks(self.data) if b'"choices":[],"usage":{' in block]
        return (*bom, *usage[:1]) if self.added_usage else bom

    @cached_property
    def delivered(self) -> bytes:
        """What a client must get."""
        rest = self.data
        for piece in self.removed:
            rest = rest.replace(piece, b"", 1)
        return rest + self.lacks


def huge() -> bytes:
    """A stream with one data line of 3 MB."""
    content = "".join(f"{number:07d} word\n" for number in range(HUGE // 14))
    chunks = [
        '{"choices":[{"index":0,"delta":{"role":"assistant"},"finish_reason":null}]}',
        json.dumps({"choices": [{"index": 0, "delta": {"content": content}, "finish_reason": None}]}),
        '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
        json.dumps({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}),
        "[DONE]",
    ]
    return "".join(f"data: {chunk}\n\n" for chunk in chunks).encode()


STREAMS = (
    Recorded("plain"),
    Recorded("crlf"),
    Recorded("cr"),
    Recorded("mixed"),
    Recorded("mixed_lf_crlf"),
    Recorded("utf8"),
    Recorded("bom"),
    Recorded("bom_crlf"),
    Recorded("ids"),
    Recorded("comments"),
    Recorded("no_done"),
    Recorded("tools", reason="tool_calls"),
    Recorded("two"),
    Recorded("usage_everywhere", usage=TOTALS),
    Recorded("usage_early", usage=Usage(input_total=14, output_total=52)),
    Recorded("usage_details", usage=DETAILED),
    Recorded("usage_zero", usage=Usage(input_total=0, output_total=0)),
    Recorded("odd", usage=Usage(input_total=10, output_total=3)),
    Recorded("no_space"),
    Recorded("error_null"),
    Recorded("added", added_usage=True, file="plain"),
    Recorded("added_crlf", added_usage=True, file="crlf"),
    Recorded("added_cr", added_usage=True, file="cr"),
    Recorded("added_mixed", added_usage=True),
    Recorded("after_done", final=False),
    Recorded("no_last_blank", lacks=b"\n\n"),
    Recorded("no_last_blank_crlf", lacks=b"\r\n"),
    Recorded("length", End.INCOMPLETE, "length"),
    Recorded("refused", End.INCOMPLETE, "refusal"),
    Recorded("done_alone", End.INCOMPLETE, "no_finish_reason", Usage(), False),
    Recorded("audio"),
    Recorded("failed", End.FAILED, "upstream_error", Usage(), False),
)
LARGE = (Recorded("huge", usage=TOTALS),)
