"""Words about where a command listens, and why it cannot."""

import errno

from headrace.model.settings import Address


def shown_address(address: Address, tls: bool = False) -> str:
    """What a client's base URL begins with; a Unix socket, which never speaks TLS, as `unix:PATH`."""
    return str(address) if address.path else f"{'https' if tls else 'http'}://{address}"


def cannot_listen(where: str, error: OSError, remedy: str) -> str:
    """The whole sentence; `remedy` says where else to look when the address is taken."""
    if error.errno == errno.EADDRINUSE:
        return f"cannot listen on {where}: address in use; stop what listens there, or {remedy}"
    return f"cannot listen on {where}: {error.strerror or error}"
