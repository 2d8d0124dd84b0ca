"""Which addresses no channel may ever lead to: link-local ones and the metadata services of clouds."""

import ipaddress

Address = ipaddress.IPv4Address | ipaddress.IPv6Address

_FORBIDDEN_NETWORKS = (
    ipaddress.ip_network("169.254.0.0/16"),  # link-local; 169.254.169.254 and 169.254.170.2 are metadata services
    ipaddress.ip_network("fe80::/10"),
)
_FORBIDDEN_ADDRESSES = frozenset(
    map(
        ipaddress.ip_address,
        (
            "fd00:ec2::254",  # AWS
            "fd20:ce::254",  # Google Cloud
            "100.100.100.200",  # Alibaba Cloud
        ),
    )
)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def numeric(host: str) -> Address | None:
    """The address that `host` spells (no brackets), or None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def is_forbidden(address: Address) -> bool:
    """Whether nothing may connect to `address`, in whichever form it embeds an IPv4 address."""
    if isinstance(address, ipaddress.IPv6Address):
        embedded = _embedded(address)
        if embedded is not None and is_forbidden(embedded):
            return True
        if address.scope_id is not None:
            address = ipaddress.IPv6Address(int(address))
    return address in _FORBIDDEN_ADDRESSES or any(address in network for network in _FORBIDDEN_NETWORKS)


def _embedded(address: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside a mapped (::ffff:0:0/96), compatible (::/96), 6to4 or NAT64 one."""
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and (address in _NAT64 or int(address) >> 32 == 0):
        inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return inner
