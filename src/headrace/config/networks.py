"""Networks of IP addresses as text."""

from ipaddress import IPv6Network, ip_network
from typing import Annotated

from headrace.config.forms import Form, Reading
from headrace.model.network import UNIX


def _read_network(text: str, reading: Reading) -> str:
    if "%" in text or text.isdigit():
        raise ValueError(_WHAT)
    try:
        network = ip_network(text)
    except ValueError:
        raise ValueError(_why_not(text)) from None
    if isinstance(network, IPv6Network) and network.network_address.ipv4_mapped:
        raise ValueError("must be written as IPv4: what comes as ::ffff:a.b.c.d is taken as a.b.c.d")
    return str(network)


def _why_not(text: str) -> str:
    try:
        return f"has bits set behind the network's own; the network is {ip_network(text, strict=False)}"
    except ValueError:
        return _WHAT


def _read_proxy_network(text: str, reading: Reading) -> str:
    return UNIX if text == UNIX else _read_network(text, reading)


_WHAT = "must be an IP address or a network such as 10.0.0.0/8 or 2001:db8::/32"

Network = Annotated[str, Form("an IP address or a network (CIDR)", _read_network)]
TrustedProxy = Annotated[str, Form("an IP address, a network (CIDR), or unix", _read_proxy_network)]
