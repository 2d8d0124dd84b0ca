"""An upstream whose every byte a test sends by hand: the next event goes out when the client has had the one before.

That is the proof that nothing between the two holds events back; no clock is in it.
"""

import socket
import struct
from types import TracebackType
from typing import Self

from tests.stand.settings import CONFIG

WAIT_S = 10.0


class Paced:
    """Listens; serves one connection after the other, by the test's own calls."""

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._listener.settimeout(WAIT_S)
        self._socket: socket.socket | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
        self._listener.close()

    @property
    def url(self) -> str:
        port: int = self._listener.getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    def configured(self, config: str = CONFIG) -> str:
        """The stand's configuration with models `paced-*` that lead here alone."""
        channel = f"channels:\n  paced: {{base_url: '{self.url}', allow_http: true, protocols: [chat], idle: 1ms,"
        channel += " credentials: [{name: main, secret: sk-paced}]}\n"
        model = "models:\n  paced-*: {routes: [{channel: paced}], max_attempts: 1}\n"
        return config.replace("channels:\n", channel, 1).replace("models:\n", model, 1)

    def request(self) -> bytes:
        """Take the next connection and read the request on it, to the end of its body."""
        self.close()
        self._socket, _ = self._listener.accept()
        self._socket.settimeout(WAIT_S)
        data = b""
        while b"\r\n\r\n" not in data:
            data += self._some()
        head, _, body = data.partition(b"\r\n\r\n")
        length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
        while len(body) < length:
            body += self._some()
        return data

    def head(self, *lines: str, status: str = "200 OK", kind: str = "text/event-stream") -> None:
        """The reply's head; chunked."""
        text = "\r\n".join([f"HTTP/1.1 {status}", f"content-type: {kind}", *lines, "transfer-encoding: chunked"])
        self._connected.sendall(f"{text}\r\n\r\n".encode("latin-1"))

    def send(self, event: str | bytes) -> None:
        """A piece of the body, as one chunk."""
        data = event.encode() if isinstance(event, str) else event
        self._connected.sendall(b"%x\r\n%s\r\n" % (len(data), data))

    def finish(self) -> None:
        """The body's end."""
        self._connected.sendall(b"0\r\n\r\n")

    def reset(self) -> None:
        """RST in place of an end."""
        self._connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close()

    def close(self) -> None:
        """FIN."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def left(self) -> bool:
        """Wait until the gateway closes; whether it did."""
        try:
            return self._connected.recv(1) == b""
        except ConnectionResetError:
            return True

    @property
    def _connected(self) -> socket.socket:
        assert self._socket is not None
        return self._socket

    def _some(self) -> bytes:
        data = self._connected.recv(65536)
        assert data, "the gateway left"
        return data
