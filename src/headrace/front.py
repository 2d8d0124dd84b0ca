"""The line's entrance: from a request's path and key to its exchange, or to the short answer that it asks for."""

import asyncio
import time
from collections import Counter

from headrace.admission.admit import unknown_model
from headrace.admission.authenticate import authenticate, authenticate_for_usage
from headrace.admission.standing import standing_claims, usage_page
from headrace.exchange import Exchange
from headrace.http.cors import is_preflight, preflight, reply_headers
from headrace.http.rules import id_headers
from headrace.http.surface import Endpoint, Place, dialect_of, find
from headrace.journal.ids import Ids
from headrace.model.headers import Headers
from headrace.model.key import Key, KeyDigest, digest_key
from headrace.model.outcome import End, Outcome
from headrace.model.ports import ClientRequest
from headrace.model.problem import Kind, Problem
from headrace.model.request import Reply, RequestHead
from headrace.model.wire import Dialect, WireProtocol
from headrace.protocols.chat import Chat
from headrace.protocols.dialect import refuse
from headrace.protocols.gemini import Gemini
from headrace.protocols.interface import Api
from headrace.protocols.messages import Messages
from headrace.protocols.model_list import ModelLine, list_form
from headrace.protocols.passthrough import FAMILIES, Passthrough
from headrace.protocols.responses import Responses
from headrace.routing.catalogue import Catalogue
from headrace.stages import Stages

_JSON = (b"content-type", b"application/json")
_ABOUT = b'{"name":"headrace","what":"a streaming gateway for LLM APIs","docs":"README.md and docs/ of the source"}'


class Front:
    """Takes every request with a sound head. Belongs to one worker."""

    def __init__(self, stages: Stages, catalogue: Catalogue, ids: Ids) -> None:
        self.catalogue = catalogue
        self.ready = True
        """What /readyz says: false as soon as a drain begins, while requests are still taken."""
        self.draining = False
        """Whether new exchanges are refused."""
        self.counts: Counter[str] = Counter()
        self.running: dict[Exchange, asyncio.Task[None]] = {}
        self._pages: set[asyncio.Task[None]] = set()
        self._stages = stages
        self._ids = ids
        self._origins = stages.settings.server.cors_origins
        self._proxies = stages.settings.server.trusted_proxies
        self._digest = KeyDigest(digest_key(stages.settings.state.secret))
        self._apis: dict[WireProtocol, Api] = {
            WireProtocol.CHAT: Chat(),
            WireProtocol.RESPONSES: Responses(),
            WireProtocol.MESSAGES: Messages(),
            WireProtocol.GEMINI: Gemini(),
            **{family: Passthrough(family) for family in FAMILIES},
        }

    def handle(self, request: ClientRequest) -> None:
        """Begin to answer one request (model.ports.Handler)."""
        head = request.head
        if is_preflight(head):
            self._send(request, preflight(head, self._origins), id_headers(self._ids.new()))
            return
        endpoint = find(head.method, head.path)
        if isinstance(endpoint, Problem):
            self._refuse(request, endpoint)
        elif endpoint.place is Place.EXCHANGE:
            self._exchange(request, endpoint)
        else:
            self._page(request, endpoint)

    def refuse_edge(self, head: RequestHead | None, problem: Problem) -> Reply:
        """The reply to a request that the edge refused: in the path's dialect where a path is known."""
        self.counts[problem.kind.value] += 1
        id = self._ids.new()
        reply = refuse(dialect_of(head) if head is not None else Dialect.OPENAI, problem, id)
        marks = id_headers(id)
        if head is not None:
            marks += reply_headers(head, self._origins)
        return Reply(reply.status, reply.headers + marks, reply.body)

    @property
    def taken(self) -> tuple[asyncio.Task[None], ...]:
        """The exchanges that run and were not refused at once."""
        return tuple(task for exchange, task in self.running.items() if exchange.refusal is None)

    def stop_all(self, outcome: Outcome) -> None:
        """End every running exchange: the drain deadline has passed. One that is being refused has its answer."""
        for exchange in tuple(self.running):
            if exchange.refusal is None:
                exchange.stop(outcome)

    def stop_key(self, name: str, outcome: Outcome) -> None:
        """End every running exchange of a key."""
        for exchange in tuple(self.running):
            if exchange.refusal is None and exchange.key.name == name:
                exchange.stop(outcome)

    def stop_spending(self, purse: str) -> None:
        """End every running exchange that is paid from a budget: it is spent, and wants that."""
        for exchange in tuple(self.running):
            if exchange.refusal is None and exchange.account.is_paid_from(purse):
                exchange.stop(_BUDGET_SPENT)

    def _exchange(self, request: ClientRequest, endpoint: Endpoint) -> None:
        key = self._key(request)
        if isinstance(key, Problem):
            self._refuse(request, key)
            return
        if endpoint.protocol is None:
            raise AssertionError("an exchange's endpoint has a protocol")
        api = self._apis[endpoint.protocol]
        id = self._ids.new()
        marks = id_headers(id) + reply_headers(request.head, self._origins, key.origins)
        exchange = Exchange(self._stages, self.catalogue, request, key, api, endpoint.operation, id, marks)
        exchange.refusal = _DRAINING if self.draining else None
        # Not `create_task`, which spells out a name first, to give it this one then: 1 µs.
        self.running[exchange] = asyncio.Task(exchange.run(self._over), loop=self._stages.loop, name=id)

    def _over(self, exchange: Exchange) -> None:
        self.running.pop(exchange, None)

    def _key(self, request: ClientRequest) -> Key | Problem:
        return authenticate(request.head, self.catalogue, self._digest, time.time(), self._proxies)

    def _page(self, request: ClientRequest, endpoint: Endpoint) -> None:
        match endpoint.place:
            case Place.HEALTH:
                self._answer(request, Reply(200, [_JSON], b'{"status":"ok"}'))
            case Place.READY:
                body = b'{"status":"ready"}' if self.ready else b'{"status":"draining"}'
                self._answer(request, Reply(200 if self.ready else 503, [_JSON], body))
            case Place.ABOUT:
                self._answer(request, Reply(200, [_JSON], _ABOUT))
            case Place.USAGE:
                self._usage(request)
            case _:
                self._models(request, endpoint)

    def _usage(self, request: ClientRequest) -> None:
        key = authenticate_for_usage(request.head, self.catalogue, self._digest, time.time(), self._proxies)
        if isinstance(key, Problem):
            self._refuse(request, key)
            return
        task = self._stages.loop.create_task(self._tell_usage(request, key))
        self._pages.add(task)
        task.add_done_callback(self._pages.discard)

    async def _tell_usage(self, request: ClientRequest, key: Key) -> None:
        now = time.time()
        asked = standing_claims(key, self.catalogue.owner(key.owner), now)
        balances = await self._stages.counters.balances(asked)
        if not request.sink.gone:
            reply = Reply(200, [_JSON], usage_page(key, asked, balances, now))
            self._answer(request, reply, origins=key.origins)

    def _models(self, request: ClientRequest, endpoint: Endpoint) -> None:
        key = self._key(request)
        if isinstance(key, Problem):
            self._refuse(request, key)
            return
        form, catalogue, now = list_form(dialect_of(request.head)), self.catalogue, time.time()
        lines = [
            ModelLine(model.name, catalogue.formats(model), model.max_output, catalogue.price(model, None, now))
            for model in catalogue.models_for(key, form.protocols)
        ]
        if endpoint.place is Place.MODELS:
            self._answer(request, Reply(200, [_JSON], form.many(lines)), origins=key.origins)
            return
        for line in lines:
            if line.name == endpoint.argument:
                self._answer(request, Reply(200, [_JSON], form.one(line)), origins=key.origins)
                return
        self._refuse(request, unknown_model(endpoint.argument, key, self.catalogue))

    def _refuse(self, request: ClientRequest, problem: Problem) -> None:
        self.counts[problem.kind.value] += 1
        id = self._ids.new()
        self._answer(request, refuse(dialect_of(request.head), problem, id), id)

    def _answer(self, request: ClientRequest, reply: Reply, id: str = "", *, origins: tuple[str, ...] = ()) -> None:
        marks = id_headers(id or self._ids.new()) + reply_headers(request.head, self._origins, origins)
        self._send(request, reply, marks)

    def _send(self, request: ClientRequest, reply: Reply, marks: Headers) -> None:
        sink = request.sink
        sink.start(reply.status, reply.headers + marks, len(reply.body))
        sink.insert(reply.body)
        sink.finish()


_BUDGET_SPENT = Outcome(
    End.STOPPED,
    "budget",
    Problem(Kind.STOPPED, "The budget that this answer was to be paid from is spent, so the gateway ended it."),
)
_DRAINING = Problem(Kind.DRAINING, "This instance is shutting down. Try again: another will answer.", retry_after_s=1.0)
