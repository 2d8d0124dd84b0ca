"""Clients of all four protocols that ask again and again, and remember all that they saw."""

import asyncio
import json
import random
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, auto
from hashlib import sha256

from headrace.journal.ids import base32
from tests.stand.wire import KEY

DEADLINE_S = 60.0
SCENARIOS: dict[str, dict[str, object]] = {
    "quick": {"text": "a few words that come at once"},
    "slow": {"text": "word " * 12, "gap": 0.1},
    "cut": {"text": "word " * 8, "gap": 0.02, "cut": {"after_events": 4, "how": "rst"}},
    "failed": {"status": 400},
    "silent": {"text": "word " * 8, "cut": {"after_events": 4, "how": "stall"}},
}
"""What the simulator plays; the model has the scenario's name."""
PROTOCOLS = ("chat", "responses", "messages", "gemini")
_ERRORS = (b'"error":{', b"event: error\n", b"response.failed")
"""One of them stands in an event that ends an answer in an error."""
_DIGITS = {digit: number for number, digit in enumerate("0123456789abcdefghjkmnpqrstvwxyz")}


class End(Enum):
    """How an answer ended, as its client saw it."""

    OPEN = auto()
    UNCONNECTED = auto()
    """No connection came about: nobody listened."""
    BROKEN = auto()
    """The connection ended before the answer's end, or before its beginning."""
    WHOLE = auto()
    """As its framing says."""
    LATE = auto()
    """Nothing more came for a minute: a fault, whatever happens around it."""
    LEFT = auto()
    """The client itself went away, once it had seen the head."""


@dataclass(slots=True)
class Asked:
    """One request and what became of it. Times are monotonic seconds."""

    marker: str
    """Sent as the client's own request id, and in the text that goes up."""
    protocol: str
    model: str
    stream: bool
    leaves: bool = False
    """Whether the client goes away: behind the head, or once it has heard `patience` bytes of the answer."""
    patience: int = 0
    text: str = ""
    """Sent up behind the marker."""
    secret: str = KEY
    """Of the key that it is asked with."""
    began: float = field(default_factory=time.monotonic)
    answered: float = 0.0
    """When the head had come."""
    ended: float = 0.0
    id: str = ""
    status: int = 0
    length: int = 0
    sha256: str = ""
    error: bool = False
    """Whether the answer ended in an error event or was an error."""
    refusal: bytes = b""
    """The body of an answer that was an error."""
    retry_after: str = ""
    end: End = End.OPEN

    @property
    def incarnation(self) -> int:
        """Which worker's it was: the 16 bits of the id that name its life."""
        return incarnation_from_id(self.id)


def incarnation_from_id(id: str) -> int:
    """The 16 bits between the time and the random part."""
    number = 0
    for digit in id.removeprefix("hr_"):
        number = number << 5 | _DIGITS[digit]
    assert base32(number) == id.removeprefix("hr_")
    return number >> 64 & 0xFFFF


class Load:
    """`count` clients, each with one request at a time, until `stop`."""

    def __init__(
        self,
        port: int,
        count: int,
        seed: int,
        *,
        scenarios: Sequence[str] = tuple(SCENARIOS),
        weights: Sequence[int] | None = (5, 5, 1, 1, 1),
        leaving: float = 0.05,
        prefix: str = "m",
        patience: int = 0,
        texts: Sequence[str] = ("",),
        secrets: Sequence[str] = (KEY,),
    ) -> None:
        """`patience`: bytes that a leaving client hears, at most; of `texts` and `secrets` each request has one."""
        self.port = port
        self._patience = patience
        self._texts = texts
        self._secrets = secrets
        self._scenarios = scenarios
        self._weights = weights if weights and len(scenarios) == len(weights) else None
        self._leaving = leaving
        self._prefix = prefix
        self.asked: list[Asked] = []
        self._count = count
        self._random = random.Random(seed)
        self._stopping = False
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        """Let the clients begin."""
        self._tasks = [asyncio.create_task(self._client()) for _ in range(self._count)]

    async def stop(self) -> None:
        """No new requests; waits for the running ones."""
        self._stopping = True
        await asyncio.gather(*self._tasks)

    def running(self) -> list[Asked]:
        """Whose answer has begun and not ended."""
        return [one for one in self.asked if one.id and one.end is End.OPEN]

    async def _client(self) -> None:
        while not self._stopping:
            one = Asked(
                f"{self._prefix}-{len(self.asked):07d}",
                self._random.choice(PROTOCOLS),
                self._random.choices(self._scenarios, weights=self._weights)[0],
                self._random.random() < 0.8,
                self._random.random() < self._leaving,
                self._random.randint(0, self._patience),
                self._random.choice(self._texts),
                self._random.choice(self._secrets),
            )
            self.asked.append(one)
            await ask(self.port, one)
            if one.end is End.UNCONNECTED:
                await asyncio.sleep(0.02)


async def ask(port: int, one: Asked) -> None:
    """Send one request on a connection of its own and hear its answer to the end."""
    try:
        async with asyncio.timeout(DEADLINE_S):
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                one.end = End.UNCONNECTED
                return
            try:
                writer.write(request_from(one))
                one.end = End.LEFT if not await _hear(reader, one) else End.WHOLE
            except (OSError, asyncio.IncompleteReadError):
                one.end = End.BROKEN
            finally:
                writer.close()
                with suppress(OSError):
                    await writer.wait_closed()
    except TimeoutError:
        one.end = End.LATE
    finally:
        one.ended = time.monotonic()


def request_from(one: Asked) -> bytes:
    """The request's bytes, in its protocol."""
    model, text = one.model, f"{one.marker} {one.text}" if one.text else one.marker
    body: dict[str, object]
    match one.protocol:
        case "chat":
            path = "/v1/chat/completions"
            body = {"model": model, "messages": [{"role": "user", "content": text}], "stream": one.stream}
        case "responses":
            path, body = "/v1/responses", {"model": model, "input": text, "stream": one.stream}
        case "messages":
            path = "/v1/messages"
            content = [{"role": "user", "content": text}]
            body = {"model": model, "max_tokens": 100, "messages": content, "stream": one.stream}
        case _:
            verb = "streamGenerateContent?alt=sse" if one.stream else "generateContent"
            path = f"/v1beta/models/{model}:{verb}"
            body = {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    content_bytes = json.dumps(body).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: gateway\r\nauthorization: Bearer {one.secret}\r\n"
        f"content-type: application/json\r\nx-request-id: {one.marker}\r\ncontent-length: {len(content_bytes)}\r\n\r\n"
    )
    return head.encode() + content_bytes


async def _hear(reader: asyncio.StreamReader, one: Asked) -> bool:
    """The answer, to its end; False where the client leaves before."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
    lines = head.split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:] if ": " in line)
    one.status = int(lines[0].split(" ")[1])
    one.id, one.answered = headers["x-request-id"], time.monotonic()
    one.retry_after = headers.get("retry-after", "")
    if one.leaves and not one.patience:
        return False
    digest = sha256()
    tail = b""

    def take(data: bytes) -> bytes:
        digest.update(data)
        one.length += len(data)
        return (tail + data)[-4000:]

    if headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            tail = take(await reader.readexactly(size))
            if one.leaves and one.length >= one.patience:
                return False
            await reader.readexactly(2)
        await reader.readexactly(2)
    else:
        tail = take(await reader.readexactly(int(headers["content-length"])))
    one.sha256 = digest.hexdigest()
    one.refusal = tail if one.status >= 400 else b""
    last = tail.rstrip().rsplit(b"\n\n", 1)[-1]
    one.error = one.status >= 400 or any(word in last for word in _ERRORS)
    return True


async def until_so(holds: Callable[[], bool], what: str, wait_s: float = 30.0) -> float:
    """Wait until it is so; the time (monotonic seconds) at which it was."""
    deadline = time.monotonic() + wait_s
    while not holds():
        assert time.monotonic() < deadline, f"{what} never came"
        await asyncio.sleep(0.01)
    return time.monotonic()
