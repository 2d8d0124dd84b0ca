"""Which address a client has, where proxies stand before the gateway: X-Forwarded-For, believed as far as it may be.

Each proxy adds at the right end who connected to it. So the list is read from there, and as long as the one who tells
it is trusted; the first that is not is the client. What stands further left anybody could have written.
"""

from headrace.model.network import UNIX, is_within, parse_address
from headrace.model.request import RequestHead

MAX_ADDRESS = 64
"""Characters; with a zone an address could have any length, and addresses are remembered."""


def client_address(head: RequestHead, trusted: tuple[str, ...]) -> str:
    """The client's IP address; empty where it is not known: over a Unix socket, or by a word that is no address.

    `trusted` are networks (CIDR), and `unix` for a Unix socket's peers.
    """
    address = head.peer
    if not trusted or not _is_trusted(address, trusted):
        return address
    told = [part for value in head.every(b"x-forwarded-for") for part in value.decode("latin-1").split(",")]
    for part in reversed(told):
        address = _address(part.strip())
        if not is_within(address, trusted):
            break
    return address


def _is_trusted(peer: str, trusted: tuple[str, ...]) -> bool:
    return is_within(peer, trusted) if peer else UNIX in trusted


def _address(text: str) -> str:
    """The address in one item of the list, without a port; empty where it is none."""
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    return text if len(text) <= MAX_ADDRESS and parse_address(text) is not None else ""
