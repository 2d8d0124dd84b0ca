"""The test stand: simulated upstreams, a gateway before them, raw clients, and the journal that tells what happened.

    with Stand(folder) as stand:
        model = stand.model("pair", {"status": 503}, {"text": "hello"})     # ch1, ch2
        reply = stand.ask(chat(model))
        entry = stand.entry(model)

When it is left the gateway has drained without a trace of itself, every upstream connection is closed, and the journal
holds exactly one entry for each exchange that was opened, with equal hashes on both sides.
"""

import itertools
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from string import Template
from types import TracebackType
from typing import Self

from headrace.journal.reader import read_all
from headrace.model.entry import Entry, Opened, Record
from headrace.simulator import Recorded
from headrace.simulator.recorded import End as UpstreamEnd
from tests.stand.books import ledger_entries
from tests.stand.client import Client, Reply
from tests.stand.gateway import GatewayProcess, GatewayThread
from tests.stand.settings import CONFIG
from tests.stand.upstreams import Upstream, Upstreams
from tests.stand.waiting import until
from tests.stand.wire import request

__all__ = ["Stand", "until"]

_numbers = itertools.count(1)


class Stand:
    """`config`: see `settings`. `process`: a real process in place of a thread."""

    def __init__(self, folder: Path, config: str = CONFIG, *, upstreams: int = 2, process: bool = False) -> None:
        self.state = folder / "state"
        self.config = folder / "headrace.yaml"
        self._text = config
        self._process = process
        self._upstreams = Upstreams(upstreams)
        self._opened = ExitStack()
        self._read_at = -1
        self._records: list[Record] = []
        self.gateway: GatewayThread | GatewayProcess

    def __enter__(self) -> Self:
        with ExitStack() as opened:
            upstreams = opened.enter_context(self._upstreams)
            places = {"STATE": str(self.state)}
            for number, upstream in enumerate(upstreams, 1):
                places |= {f"CH{number}": upstream.origin, f"PORT{number}": str(upstream.port)}
            self.config.write_text(Template(self._text).substitute(places), encoding="utf-8")
            self.config.chmod(0o600)
            if self._process:
                self.gateway = opened.enter_context(GatewayProcess(self.config))
            else:
                self.gateway = opened.enter_context(GatewayThread(self.config))
            self._opened = opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._opened:
            if error is None and isinstance(self.gateway, GatewayThread):
                self.gateway.drain()
                self.gateway.wait()
                self.audit()
                for upstream in self._upstreams:
                    until(lambda one=upstream: one.connections == 0, "the end of every upstream connection")  # type: ignore[misc]

    # ---- where things are

    @property
    def ch1(self) -> Upstream:
        return self._upstreams[0]

    @property
    def ch2(self) -> Upstream:
        return self._upstreams[1]

    @property
    def port(self) -> int:
        return self.gateway.port

    @property
    def url(self) -> str:
        """The base URL for an OpenAI SDK."""
        return f"http://127.0.0.1:{self.port}/v1"

    # ---- what is played

    def model(self, pattern: str, *scenarios: Mapping[str, object]) -> str:
        """A fresh name for the pattern `pattern-*`, with what ch1, ch2, … play for it."""
        name = f"{pattern}-{next(_numbers)}"
        for upstream, fields in zip(self._upstreams, scenarios, strict=False):
            upstream.scenario(name, fields)
        return name

    # ---- asking

    def connect(self, *, receive_buffer: int | None = None) -> Client:
        """A raw connection."""
        return Client(self.port, receive_buffer=receive_buffer)

    def ask(self, body: object = b"", **how: object) -> Reply:
        """One request on a connection of its own, and the whole reply; `how`: see `wire.request`."""
        with self.connect() as client:
            client.send(request(body, **how))  # type: ignore[arg-type]  # passed on as they are
            client.head(method=str(how.get("method", "POST")))
            return client.rest()

    def send(self, client: Client, body: object = b"", **how: object) -> Reply:
        """One request on `client`, and the reply's head."""
        client.send(request(body, **how))  # type: ignore[arg-type]  # passed on as they are
        return client.head()

    # ---- what happened

    def entry(self, model: str = "", *, id: str = "") -> Entry:
        """The one entry of an exchange, by its model or its id; waits for it."""
        return until(lambda: self.entries(model, id=id), f"an entry of {model or id}")[-1]

    def entries(self, model: str = "", *, id: str = "", count: int = 0) -> list[Entry]:
        """All entries of a model or an id, so far; waits until there are `count`."""
        if count:
            until(lambda: len(self.entries(model, id=id)) >= count, f"{count} entries of {model or id}")
        found = [one for one in self.records() if isinstance(one, Entry) and (one.id == id or one.model == model != "")]
        assert max(Counter(one.id for one in found).values(), default=1) == 1, "two entries for one exchange"
        return found

    def calls(self, model: str, channel: Upstream | None = None) -> list[Recorded]:
        """What the upstreams (or one) were asked for a model, when they are done with it."""

        def so_far() -> list[Recorded]:
            return [call for one in self._upstreams if channel in (None, one) for call in one.calls(model)]

        until(lambda: all(call.end is not UpstreamEnd.OPEN for call in so_far()), "the end of every upstream call")
        return so_far()

    def records(self) -> list[Record]:
        """What the journals hold; and the ledger, where a control process takes them into it."""
        if self._process:
            here = list(self._journal())
            ids = {one.id for one in here if isinstance(one, Entry)}
            return here + [one for one in ledger_entries(self.state) if one.id not in ids]
        size = sum(path.stat().st_size for path in self.state.glob("journal/*/*/*/*.segment"))
        if size != self._read_at:
            self._records = list(read_all(self.state))
            self._read_at = size
        return self._records

    def _journal(self) -> Iterator[Record]:
        """What is in the journals while a control process reads and deletes them."""
        with suppress(FileNotFoundError):  # it is in the ledger, then
            yield from read_all(self.state)

    def audit(self) -> None:
        """One entry for each exchange, and the same bytes on both sides of the gateway."""
        entries = Counter(record.id for record in self.records() if isinstance(record, Entry))
        opened = Counter(record.id for record in self.records() if isinstance(record, Opened))
        assert not [id for id, count in (entries + opened).items() if count > 2 or entries[id] != 1]
        for record in self.records():
            if isinstance(record, Entry):
                assert record.wire.hash_in == record.wire.hash_out, record
                assert record.wire.released <= record.wire.received, record
