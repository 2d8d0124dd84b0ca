"""What the kernel knows of a TCP connection: whether it stands, and how much the peer has acknowledged.

The replay rule rests on `tcpi_bytes_acked`: a peer's FIN is processed with the acknowledgement it carries, so
after an EOF an unchanged count proves that no byte of the request had reached the peer's kernel before it closed.
A RST proves nothing: its acknowledgement is thrown away with it (Linux, `tcp_validate_incoming`).
"""

import socket
import struct

ESTABLISHED = 1  # include/net/tcp_states.h
_SIZE = 128  # struct tcp_info up to and including tcpi_bytes_acked
_ACKED = struct.Struct("Q")
_ACKED_AT = 120  # offset of tcpi_bytes_acked (include/uapi/linux/tcp.h, Linux 4.1)
_LEVEL = socket.IPPROTO_TCP
_OPTION = getattr(socket, "TCP_INFO", None)


def sample(sock: socket.socket) -> tuple[bool, int]:
    """Look at `sock` (1 µs): (neither side has closed it, bytes acknowledged since it began or -1 for unknown).

    Works while the descriptor is open, so also in `eof_received` and `connection_lost`.
    """
    if _OPTION is None:
        return True, -1
    try:
        info = sock.getsockopt(_LEVEL, _OPTION, _SIZE)
    except OSError:
        return False, -1
    if len(info) < _SIZE:
        return info[0] == ESTABLISHED, -1
    return info[0] == ESTABLISHED, _ACKED.unpack_from(info, _ACKED_AT)[0]
