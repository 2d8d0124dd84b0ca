"""The client's protocol, speaking for the gateway in one exchange's stream."""

from headrace.model.problem import Problem
from headrace.model.request import RequestHead
from headrace.protocols.interface import Api, Observer


class Voice:
    """Keepalives and the error event for one client (`relay.voice.Voice`). `observer` is the current attempt's."""

    __slots__ = ("_api", "_comment", "_head", "_request_id", "observer")

    def __init__(self, api: Api, head: RequestHead, comment: str, request_id: str = "") -> None:
        self._request_id = request_id
        self._api = api
        self._head = head
        self._comment = comment
        self.observer: Observer | None = None

    def keepalive(self, line_end: bytes | None, saw_id: bool) -> bytes:
        """A whole keepalive, or nothing where no form is safe for this client."""
        return self._api.keepalive(line_end, saw_id, self._head, self._comment)

    def interrupt(self, problem: Problem, line_end: bytes | None, heard: bool) -> bytes:
        """A whole error event. `heard`: the client was given something of the upstream's."""
        return self._api.interrupt(problem, self.observer if heard else None, line_end, self._request_id)
