"""The client's protocol, speaking for the gateway in one exchange's stream."""

from headrace.model.problem import Problem
from headrace.model.request import RequestHead
from headrace.protocols.interface import Api, Observer


class Voice:
    """Keepalives and the error event for one client (`relay.voice.Voice`). `observer` is the current attempt's."""

    __slots__ = ("_api", "_comment", "_head", "observer")

    def __init__(self, api: Api, head: RequestHead, comment: str) -> None:
        self._api = api
        self._head = head
        self._comment = comment
        self.observer: Observer | None = None

    def keepalive(self, line_end: bytes | None, saw_id: bool) -> bytes:
        """A whole keepalive, or nothing where no form is safe for this client."""
        return self._api.keepalive(line_end, saw_id, self._head, self._comment)

    def interrupt(self, problem: Problem, line_end: bytes | None) -> bytes:
        """A whole error event."""
        return self._api.interrupt(problem, self.observer, line_end)
