"""A small HTTP/1.1 client over a socket: one POST, its response event by event as it arrives.

It shares no code with the gateway, so that what it finds is evidence.
"""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field

from headrace.model.settings import Address

TIMEOUT_S = 10.0
_EVENT = re.compile(rb".*?(?:\r\n\r\n|\n\n)", re.DOTALL)


class ClientError(Exception):
    """The response could not be read to its end; the text says why."""


@dataclass(frozen=True, slots=True)
class Arrival:
    """One server-sent event or comment, and when its last byte came: seconds after the request."""

    at_s: float
    data: bytes


@dataclass(slots=True)
class Answer:
    """A response: header names in lower case; `arrivals` are the body's events in order, what is left over included."""

    status: int
    headers: dict[str, str]
    arrivals: list[Arrival] = field(default_factory=list)

    @property
    def body(self) -> bytes:
        """All bytes of the body."""
        return b"".join(arrival.data for arrival in self.arrivals)


async def ask(
    address: Address, path: str, headers: dict[str, str], body: bytes, on_arrival: Callable[[Arrival], None]
) -> Answer:
    """POST `body` and read the response to its end; `on_arrival` is called for each event. Raises ClientError."""
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _ask(address, _request(address, path, headers, body), on_arrival)
    except TimeoutError:
        raise ClientError(f"the response did not end within {TIMEOUT_S:g} s") from None
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        raise ClientError("the connection was closed within the response, or its head is too long") from None
    except BrokenPipeError:
        raise  # of what `on_arrival` prints to: the request itself is written before anything can have been closed
    except OSError as error:
        raise ClientError(f"the connection failed: {error.strerror}") from None
    except ValueError as error:
        raise ClientError(f"the response is no HTTP: {error}") from None


def _request(address: Address, path: str, headers: dict[str, str], body: bytes) -> bytes:
    fields = {"host": str(address), **headers, "content-length": str(len(body)), "connection": "close"}
    lines = [f"POST {path} HTTP/1.1", *(f"{name}: {value}" for name, value in fields.items()), "", ""]
    return "\r\n".join(lines).encode("ascii") + body


async def _ask(address: Address, request: bytes, on_arrival: Callable[[Arrival], None]) -> Answer:
    reader, writer = await asyncio.open_connection(address.host, address.port)
    try:
        started = time.monotonic()
        writer.write(request)
        answer = await _head(reader)
        waiting = b""
        async for data in _data(reader, answer):
            at = time.monotonic() - started
            waiting += data
            for event in _EVENT.findall(waiting):
                _take(answer, Arrival(at, event), on_arrival)
                waiting = waiting[len(event) :]
        if waiting:
            _take(answer, Arrival(time.monotonic() - started, waiting), on_arrival)
        return answer
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def _take(answer: Answer, arrival: Arrival, on_arrival: Callable[[Arrival], None]) -> None:
    answer.arrivals.append(arrival)
    on_arrival(arrival)


async def _head(reader: asyncio.StreamReader) -> Answer:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    return Answer(int(first.partition(" ")[2][:3]), headers)


async def _data(reader: asyncio.StreamReader, answer: Answer) -> AsyncIterator[bytes]:
    """The body's bytes as they come; its framing must have its own end."""
    if answer.headers.get("transfer-encoding") == "chunked":
        while size := int(await reader.readuntil(b"\r\n"), 16):
            yield (await reader.readexactly(size + 2))[:-2]
        await reader.readuntil(b"\r\n")
    else:
        yield await reader.readexactly(int(answer.headers.get("content-length", "0")))
