"""A stand that speaks TLS, with a certificate of an authority of its own."""

import socket
import ssl
from dataclasses import dataclass
from pathlib import Path

import trustme

from tests.stand.client import Client
from tests.stand.settings import CONFIG


@dataclass(frozen=True)
class Certified:
    """The files, the clients' side, and a server's."""

    cert: Path
    key: Path
    ca: Path
    clients: ssl.SSLContext
    server: ssl.SSLContext

    def configured(self, config: str = CONFIG) -> str:
        """A configuration whose TCP addresses speak TLS."""
        return config.replace("server:\n", f"server:\n  tls: {{cert: '{self.cert}', key: '{self.key}'}}\n", 1)

    def connect(self, port: int, host: str = "127.0.0.1") -> Client:
        """A raw client behind a verified handshake."""
        plain = socket.create_connection((host, port), timeout=10)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        wrapped = self.clients.wrap_socket(plain, server_hostname=host, suppress_ragged_eofs=False)
        return Client(port, connected=wrapped)


def certified(folder: Path) -> Certified:
    """New ones, in `folder`."""
    authority = trustme.CA()
    issued = authority.issue_cert("localhost", "127.0.0.1", "::1")
    cert, key, ca = folder / "cert.pem", folder / "key.pem", folder / "ca.pem"
    cert.write_bytes(b"".join(part.bytes() for part in issued.cert_chain_pems))
    issued.private_key_pem.write_to_path(str(key))
    authority.cert_pem.write_to_path(str(ca))
    clients = ssl.create_default_context(cafile=str(ca))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    issued.configure_cert(server)
    return Certified(cert, key, ca, clients, server)
