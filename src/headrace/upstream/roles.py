"""What a connection and those around it know of each other."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

from headrace.model.channel import Proxy
from headrace.model.request import ReplyHead


class Origin(NamedTuple):
    """What connections are interchangeable for."""

    scheme: str
    host: str
    port: int
    ca: str
    """A file of trusted certificates in place of the system's; empty for the system's."""
    proxy: Proxy | None = None
    """Who connects to it for us."""


@dataclass(frozen=True, slots=True)
class Loss:
    """Why a request got no head. `malformed`: the reply was not HTTP. `untouched`: proof that no byte was received."""

    detail: str
    malformed: bool = False
    untouched: bool = False
    heard: bool = False
    """Whether any byte of a reply had come."""


class Holder(Protocol):
    """Whoever has a connection for one request. Nothing is called after `release`."""

    uploaded_at: float | None
    """Set by the connection (monotonic) once the whole request has been handed to the kernel."""

    def on_reply(self, head: ReplyHead) -> None:
        """The final head has come."""

    def on_loss(self, loss: Loss) -> None:
        """There will be no head. The connection is closed."""
