"""Where Valkey is: `valkey://[[user]:password@]host[:port][/number]`, `valkeys://` for TLS."""

from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

PORT = 6379
_SCHEMES = {"valkey": False, "valkeys": True}


@dataclass(frozen=True, slots=True)
class ValkeyAddress:
    """The parts of an address. As text it names no user and no password."""

    host: str
    port: int
    tls: bool
    user: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    database: int = 0

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def address_from_url(url: str) -> ValkeyAddress:
    """Raises ValueError with a text that says what is wrong and quotes nothing."""
    try:
        parts = urlsplit(url)
        port = parts.port or PORT
    except ValueError:
        raise ValueError("is no address") from None
    if parts.scheme not in _SCHEMES:
        raise ValueError("must begin with valkey:// or valkeys://")
    if not parts.hostname:
        raise ValueError("names no host")
    number = parts.path.removeprefix("/")
    if not (number.isdecimal() or not number) or parts.query or parts.fragment:
        raise ValueError("must end with the host, its port, or /number of a database")
    return ValkeyAddress(
        parts.hostname,
        port,
        _SCHEMES[parts.scheme],
        unquote(parts.username or ""),
        unquote(parts.password or ""),
        int(number or 0),
    )
