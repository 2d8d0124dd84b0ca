"""A client of raw sockets: it shows a reply as bytes, and how the connection ended."""

import asyncio
import json
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field

from headrace.simulator import Simulator

CHAT = "/v1/chat/completions"


@dataclass
class Heard:
    """`end`: eof, rst, or open (nothing more came while we waited). `reads`: what each read gave, head included."""

    reads: list[bytes] = field(default_factory=list)
    end: str = "open"

    @property
    def raw(self) -> bytes:
        return b"".join(self.reads)

    @property
    def head(self) -> str:
        return self.raw.partition(b"\r\n\r\n")[0].decode("latin-1")

    @property
    def status(self) -> int:
        return int(self.head.split(" ", 2)[1])

    @property
    def headers(self) -> list[tuple[str, str]]:
        lines = (line.partition(": ") for line in self.head.split("\r\n")[1:])
        return [(name.lower(), value) for name, _, value in lines]

    def header(self, name: str) -> str | None:
        return next((value for found, value in self.headers if found == name), None)

    @property
    def after_head(self) -> bytes:
        return self.raw.partition(b"\r\n\r\n")[2]

    @property
    def chunked(self) -> bool:
        return self.header("transfer-encoding") == "chunked"

    @property
    def body(self) -> bytes:
        """The body, chunk frames removed; as much of it as came."""
        return _dechunked(self.after_head)[0] if self.chunked else self.after_head

    @property
    def rest(self) -> bytes | None:
        """What followed the terminating chunk, trailers too; None: it did not come."""
        return _dechunked(self.after_head)[1]

    @property
    def payloads(self) -> list[str]:
        return [line[6:].decode() for line in self.body.split(b"\n") if line.startswith(b"data: ")]

    @property
    def text(self) -> str:
        chunks = [json.loads(payload) for payload in self.payloads if payload != "[DONE]"]
        choices = [choice for chunk in chunks for choice in chunk.get("choices", [])]
        return "".join(choice["delta"].get("content") or "" for choice in choices)


def _dechunked(data: bytes) -> tuple[bytes, bytes | None]:
    body = b""
    while data:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            return body, data.removeprefix(b"\r\n")
        body += data[:length]
        data = data[length + 2 :]
    return body, None


def request_bytes(
    fields: Mapping[str, object] | str | None = None,
    *,
    path: str = CHAT,
    body: object = None,
    headers: Mapping[str, str] | None = None,
    method: str = "POST",
    version: str = "1.1",
    close: bool = True,
) -> bytes:
    """A request; `fields`: a scenario for `x-simulate`, inline or by name."""
    sent = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hi"}]} if body is None else body
    content = sent if isinstance(sent, bytes) else json.dumps(sent).encode()
    if method == "GET":
        content = b""
    lines = {"Host": "simulator", "Content-Length": str(len(content))}
    if close and version == "1.1":
        lines["Connection"] = "close"
    if fields is not None:
        lines["x-simulate"] = fields if isinstance(fields, str) else json.dumps(fields)
    lines.update(headers or {})
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
    return f"{method} {path} HTTP/{version}\r\n{head}\r\n".encode() + content


async def hear(reader: asyncio.StreamReader, heard: Heard, wait_s: float, until: bytes | None = None) -> Heard:
    """Reads until the connection ends, until `until` came, or nothing came for `wait_s`."""
    while until is None or until not in heard.raw:
        try:
            data = await asyncio.wait_for(reader.read(65536), wait_s)
        except TimeoutError:
            return heard
        except ConnectionResetError:
            heard.end = "rst"
            return heard
        if not data:
            heard.end = "eof"
            return heard
        heard.reads.append(data)
    return heard


async def ask(
    sim: Simulator,
    fields: Mapping[str, object] | str | None = None,
    *,
    wait_s: float = 5.0,
    tls: ssl.SSLContext | None = None,
    **request: object,
) -> Heard:
    """One request on a connection of its own."""
    reader, writer = await asyncio.open_connection(sim.host, sim.port, ssl=tls)
    writer.write(request_bytes(fields, **request))  # type: ignore[arg-type]
    heard = await hear(reader, Heard(), wait_s)
    writer.transport.abort()
    return heard
