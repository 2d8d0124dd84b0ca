import socket

import pytest

from headrace.upstream import kernel
from headrace.upstream.kernel import sample


def test_acknowledged_bytes_and_the_end_of_a_connection() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        far, _ = listener.accept()
        with near, far:
            established, before = sample(near)
            assert established and before >= 0
            near.sendall(b"x" * 1000)
            assert far.recv(1000, socket.MSG_WAITALL)
            far.sendall(b"y")  # carries the acknowledgement
            assert near.recv(1)
            assert sample(near) == (True, before + 1000)
            far.close()
            assert not sample(near)[0]
            near.sendall(b"z")
            assert near.recv(1) == b""
            assert sample(near)[1] == before + 1000
        assert sample(near) == (False, -1)


def test_a_kernel_that_says_less(monkeypatch: pytest.MonkeyPatch) -> None:
    class Old:
        def getsockopt(self, *_: object) -> bytes:
            return bytes([1]) + bytes(103)

    assert sample(Old()) == (True, -1)  # type: ignore[arg-type]
    monkeypatch.setattr(kernel, "_OPTION", None)
    assert sample(Old()) == (True, -1)  # type: ignore[arg-type]
