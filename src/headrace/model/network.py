"""Networks of IP addresses: what `ips` of a key and `server.trusted_proxies` hold."""

from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

UNIX = "unix"
"""Stands among trusted proxies for what comes over a Unix socket, which has no address."""


def parse_address(text: str) -> IPv4Address | IPv6Address | None:
    """An IP address; IPv4 in its IPv6 form, as sockets for both have it, is IPv4. None for what is none."""
    try:
        address = ip_address(text)
    except ValueError:
        return None
    return (address.ipv4_mapped or address) if isinstance(address, IPv6Address) else address


@lru_cache(4096)
def is_within(address: str, networks: tuple[str, ...]) -> bool:
    """Whether an address is in one of the networks (CIDR). What is no address is in none."""
    parsed = parse_address(address)
    return parsed is not None and any(parsed in network for network in _networks(networks))


@lru_cache(1024)
def _networks(texts: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text) for text in texts if text != UNIX)
