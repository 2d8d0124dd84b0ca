"""nginx in front of the gateway: a real process on a free port, in a folder of its own, ended by its id."""

import contextlib
import shutil
import socket
import subprocess
import time
from pathlib import Path
from string import Template
from types import TracebackType
from typing import Self

PROGRAM = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin:/usr/local/sbin")
START_S = 10.0

MAIN = """
daemon off;
master_process off;
pid $FOLDER/nginx.pid;
error_log $FOLDER/error.log info;
events { worker_connections 256; }
http {
    access_log off;
    client_body_temp_path $FOLDER/body;
    proxy_temp_path $FOLDER/proxy;
    fastcgi_temp_path $FOLDER/fastcgi;
    uwsgi_temp_path $FOLDER/uwsgi;
    scgi_temp_path $FOLDER/scgi;
$SERVER
}
"""

DEFAULT = """
    server {
        listen 127.0.0.1:$PORT;
        location / {
            proxy_pass http://127.0.0.1:$GATEWAY;
        }
    }
"""
"""nginx as it comes: HTTP/1.0 to the gateway, a connection for each request, buffering on."""


class Nginx:
    """Runs with `server`, a part of the `http` block in which `$PORT`, `$GATEWAY` and `$FOLDER` are replaced."""

    def __init__(self, folder: Path, gateway: str, server: str = DEFAULT) -> None:
        self._folder = folder
        self._gateway = gateway
        self._server = server
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    def __enter__(self) -> Self:
        assert PROGRAM is not None
        self._folder.mkdir(parents=True, exist_ok=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        places = {"PORT": str(self.port), "GATEWAY": self._gateway, "FOLDER": str(self._folder)}
        text = MAIN.replace("$SERVER", self._server)
        (self._folder / "nginx.conf").write_text(Template(text).safe_substitute(places))
        self._process = subprocess.Popen(
            [PROGRAM, "-p", str(self._folder), "-e", str(self._folder / "error.log"), "-c", "nginx.conf"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        self._wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.communicate(timeout=10)

    @property
    def log(self) -> str:
        """Its error log."""
        return (self._folder / "error.log").read_text()

    def _wait(self) -> None:
        assert self._process is not None
        deadline = time.monotonic() + START_S
        while True:
            if self._process.poll() is not None:
                raise AssertionError(f"nginx did not start: {self._process.communicate()[1]!r}")
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1):
                return
            assert time.monotonic() < deadline, self.log
            time.sleep(0.01)
