"""Decides about one reply once enough of its body has come: give it to the client, or let the attempt fail."""

import time

from headrace.model.outcome import Failure
from headrace.model.problem import Kind, Problem, Source
from headrace.model.request import ReplyHead
from headrace.model.wire import Asked
from headrace.protocols.interface import Api
from headrace.upstream.classify import Advice, Verdict, classify, needs_body

_GOOD = Verdict(Advice.RELAY)


class Judge:
    """One reply's. Call it with the body so far and whether that is all; `verdict` is the last one given.

    `opened`: the client has been sent an event stream's head already, so no other reply can be given to it.
    """

    __slots__ = ("_api", "_asked", "_head", "_opened", "verdict")

    def __init__(self, api: Api, head: ReplyHead, asked: Asked, opened: bool) -> None:
        self._api = api
        self._head = head
        self._asked = asked
        self._opened = opened
        self.verdict: Verdict | None = None

    def stream(self) -> bool:
        """Whether the head alone says that this is a good stream of the asked kind."""
        if 200 <= self._head.status < 300 and self._asked in (Asked.EVENTS, Asked.ARRAY):
            self.verdict = classify(self._head, b"", self._asked, time.time(), whole=False, opened=self._opened)
            return self.verdict.as_stream
        return False

    @property
    def at_once(self) -> bool:
        """Whether this good head's body is passed on as it comes, unseen: passthrough, and no JSON."""
        is_good = 200 <= self._head.status < 300
        return is_good and self._asked is Asked.ANYTHING and not needs_body(self._head, self._asked)

    def __call__(self, body: bytes, whole: bool) -> Failure | None:
        """Why this reply cannot be given to the client, or None."""
        head = self._head
        is_object = head.status == 200 and self._asked in (Asked.JSON, Asked.ANYTHING) and body[:1] == b"{"
        if is_object and b'"error"' not in body and head.media_type == "application/json":
            # Nearly every reply: nothing in it can be an error, so it need not be read here.
            self.verdict = _GOOD
            return None
        reading = self._api.classify_fault(head, body) if whole else None
        self.verdict = verdict = classify(
            head, body, self._asked, time.time(), whole=whole, opened=self._opened, reading=reading
        )
        if verdict.problem is not None:
            return Failure(verdict.problem)
        if verdict.advice is Advice.RELAY_FAULT and self._opened:
            # The status said that it is the client's; a word that means something else does not overrule it.
            if reading is None or reading.kind is not Kind.BAD_REQUEST:
                reading = _refused_late(head.status)
            return Failure(reading, final=True)
        return None

    @property
    def replaceable(self) -> bool:
        """Whether the reply itself was judged not to be what was asked for."""
        return self.verdict is not None and self.verdict.advice is Advice.TRY_NEXT

    @property
    def word(self) -> str:
        """The entry's word for what was decided."""
        return self.verdict.word if self.verdict is not None else ""


def _refused_late(status: int) -> Problem:
    message = f"The upstream refused the request with status {status}."
    return Problem(Kind.BAD_REQUEST, message, Source.UPSTREAM, status)
