"""`headrace try MODEL TEXT`: streams one answer through the running gateway, then shows what became of it.

GET /v1/models/MODEL in each dialect ──▶ the protocol ──▶ POST, text as it arrives ──▶ the entry, and a check of it
  a name behind a pattern is not listed: then the gateway is asked, and says itself which formats it takes
"""

from contextlib import suppress
from dataclasses import dataclass, field
from typing import Annotated
from urllib.parse import quote

import msgspec
import typer

from headrace.cli.asking import AskError, Reply, Request, asking
from headrace.cli.configuration import ConfigChoice
from headrace.cli.entry_lookup import awaited_entry, place_of_file
from headrace.cli.entry_view import sections
from headrace.cli.gateway_file import KeyUnreadableError
from headrace.cli.output import JsonOption, Section, echo_json, fail, printable, show
from headrace.cli.reading import READINGS, Reading, Sort
from headrace.cli.target import KeyOption, Target, UrlOption, aim
from headrace.cli.verify import Verdict, compare
from headrace.config.errors import ConfigError
from headrace.model.entry import Entry
from headrace.model.wire import WireProtocol
from headrace.routing.catalogue import FORMATS
from headrace.sse.framing import Framer

ENTRY_WAIT_S = 5.0
MOST_ERROR = 1 << 20
"""Bytes of an error's body that are read."""
STREAM = "text/event-stream"
_OK, _BAD_REQUEST, _NOT_FOUND = 200, 400, 404
_DIALECTS = (WireProtocol.CHAT, WireProtocol.MESSAGES, WireProtocol.GEMINI)
"""One protocol of each dialect: a list holds only what its dialect can call."""

ModelArgument = Annotated[str, typer.Argument(metavar="MODEL", help="The model to ask.")]
TextArgument = Annotated[str, typer.Argument(metavar="TEXT", help="What to say to it.")]
ProtocolOption = Annotated[
    str | None,
    typer.Option(
        "--protocol", "-p", metavar="NAME",
        help=f"One of {', '.join(one.value for one in READINGS)}; what the model offers first, else.",
    ),
]  # fmt: skip


class _Error(msgspec.Struct):
    message: str = ""
    code: str | int | None = None
    did_you_mean: str | None = None
    accepted_request_formats: list[str] = []


class _ErrorBody(msgspec.Struct):
    error: _Error


class _ModelBody(msgspec.Struct):
    accepted_request_formats: list[str] = []


@dataclass(slots=True)
class Answer:
    """What came back. `error` is what the gateway, or the upstream through it, said in an error's place."""

    protocol: WireProtocol
    id: str = ""
    status: int = 0
    body: bytearray = field(default_factory=bytearray)
    text: str = ""
    error: str = ""
    formats: tuple[str, ...] = ()
    """What the model takes, where it was asked in a format that it does not."""


class Tried(msgspec.Struct):
    """What `--json` prints; `capture` is what the bytes that came say against the entry."""

    id: str
    status: int
    protocol: str
    text: str
    error: str
    capture: str
    entry: Entry | None


def try_(
    model: ModelArgument,
    text: TextArgument,
    protocol: ProtocolOption = None,
    key: KeyOption = None,
    url: UrlOption = None,
    config: ConfigChoice = None,
    json: JsonOption = False,
) -> None:
    """Stream one answer through the running gateway.

    Its text is printed as it arrives, then the entry of the exchange. Where the gateway is, and a key for it, stand in
    the configuration file.
    """
    if protocol is not None and protocol not in {one.value for one in READINGS}:
        known = ", ".join(one.value for one in READINGS)
        raise typer.BadParameter(f"it is one of {known}", param_hint="--protocol")
    target = aim(config, url, key)
    try:
        asker = _Asker(target, url is None, quiet=json)
        answer = asker.ask(model, text, WireProtocol(protocol) if protocol is not None else None)
    except (AskError, KeyUnreadableError) as error:
        fail(str(error))
    entry = _entry(target, answer.id) if answer.id else None
    if json:
        finding = compare(entry, bytes(answer.body)) if entry is not None else None
        verdict = finding.verdict.value if finding is not None else Verdict.UNKNOWN.value
        echo_json(Tried(answer.id, answer.status, answer.protocol.value, answer.text, answer.error, verdict, entry))
    else:
        _show(answer, entry)
    if answer.error:
        raise typer.Exit(1)


class _Asker:
    """One run's client. `own` says that the gateway is the file's, so its certificate is to be trusted."""

    def __init__(self, target: Target, own: bool, *, quiet: bool) -> None:
        self._root = target.root
        self._key = target.key.read()
        tls = target.file.draft.settings.server.tls if own and target.file is not None else None
        self._authorities = tls.cert if tls is not None else ""
        self._quiet = quiet

    def ask(self, model: str, text: str, protocol: WireProtocol | None) -> Answer:
        """The answer through `protocol`, or the first that the model offers. Raises AskError."""
        if protocol is not None:
            return self._post(READINGS[protocol], model, text)
        formats = self._formats(model)
        if formats is not None:
            return self._post(_readable(model, formats), model, text)
        answer = self._post(next(iter(READINGS.values())), model, text)
        return self._post(_readable(model, answer.formats), model, text) if answer.formats else answer

    def _formats(self, model: str) -> tuple[str, ...] | None:
        """What a listed model takes; None for one that is not listed."""
        path = f"/v1/models/{quote(model, safe='')}"
        for dialect in _DIALECTS:
            request = Request("GET", path, READINGS[dialect].headers(self._key))
            with asking(self._root, request, self._authorities) as reply:
                body = _limited(reply)
            if reply.status == _OK:
                return _formats(body)
            if reply.status != _NOT_FOUND:
                raise AskError(_words(reply.status, body))
        return None

    def _post(self, reading: Reading, model: str, text: str) -> Answer:
        """One request and its answer, printed as it comes."""
        answer = Answer(reading.protocol)
        request = Request("POST", reading.path(model), reading.headers(self._key), reading.body(model, text))
        with asking(self._root, request, self._authorities) as reply:
            answer.id = reply.headers.get("x-request-id", "")
            answer.status = reply.status
            if reply.status != _OK:
                body = _limited(reply)
                answer.body += body
                answer.error = _words(reply.status, body)
                if reply.status == _BAD_REQUEST:
                    answer.formats = tuple(_error(body).accepted_request_formats)
            elif reply.headers.get("content-type", "").startswith(STREAM):
                self._follow(reply, reading, answer)
            else:
                answer.body += b"".join(reply.pieces)
                answer.text = answer.body.decode(errors="replace")
                self._print(answer.text)
        return answer

    def _follow(self, reply: Reply, reading: Reading, answer: Answer) -> None:
        """Read the events to their end; one that breaks off leaves what came before it."""
        framer = Framer()
        try:
            for piece in reply.pieces:
                answer.body += piece
                for event in framer.feed(piece):
                    said = _said(reading, event)
                    if said is not None and said[0] is Sort.ERROR:
                        answer.error = said[1] or "the stream ended in an error event without a message"
                    elif said is not None:
                        answer.text += said[1]
                        self._print(said[1])
        except AskError as error:
            answer.error = str(error)

    def _print(self, text: str) -> None:
        if text and not self._quiet:
            lines = (printable(line) for line in text.replace("\t", "    ").split("\n"))
            typer.echo("\n".join(lines), nl=False)


def _said(reading: Reading, event: bytes) -> tuple[Sort, str] | None:
    try:
        said = reading.said(event)
    except (ValueError, msgspec.MsgspecError):
        return None  # whatever an upstream sends beside the text
    return said.sort, said.text


def _readable(model: str, formats: tuple[str, ...]) -> Reading:
    for protocol, reading in READINGS.items():
        if FORMATS[protocol] in formats:
            return reading
    raise AskError(f"the model {model!r} is not offered in a format that streams text; it takes: {', '.join(formats)}")


def _formats(body: bytes) -> tuple[str, ...]:
    try:
        return tuple(msgspec.json.decode(body, type=_ModelBody).accepted_request_formats)
    except msgspec.MsgspecError:
        raise AskError("the reply about the model is not JSON: is this a Headrace gateway?") from None


def _limited(reply: Reply) -> bytes:
    """The body as far as it is worth reading."""
    body = bytearray()
    for piece in reply.pieces:
        body += piece
        if len(body) > MOST_ERROR:
            break
    return bytes(body)


def _error(body: bytes) -> _Error:
    """What an error's body says; nothing where it is none."""
    try:
        return msgspec.json.decode(body, type=_ErrorBody).error
    except msgspec.MsgspecError:
        return _Error()


def _words(status: int, body: bytes) -> str:
    """`404 model_not_found: There is no model 'x'. Did you mean y?`"""
    error = _error(body)
    code = f" {error.code}" if isinstance(error.code, str) else ""
    hint = f" Did you mean {error.did_you_mean}?" if error.did_you_mean else ""
    message = error.message or body[:200].decode(errors="replace").strip() or "no message"
    return printable(f"{status}{code}: {message}{hint}")


def _entry(target: Target, id: str) -> Entry | None:
    """The exchange's entry; None where its record is not here, or not to be read by whoever asks."""
    if target.file is None:
        return None
    with suppress(ConfigError):
        return awaited_entry(place_of_file(target.file.path), id, ENTRY_WAIT_S)
    return None


def _show(answer: Answer, entry: Entry | None) -> None:
    if answer.text:
        typer.echo("\n" if not answer.text.endswith("\n") else "")
    if answer.error:
        typer.echo(answer.error, err=True)
    if entry is not None:
        finding = compare(entry, bytes(answer.body))
        came = [Section("what came here", ((finding.verdict.value, finding.words),))] if entry.wire.released else []
        show([*sections(entry), *came])
    elif answer.id:
        typer.echo(f"its entry is where the gateway runs: headrace explain {answer.id}", err=True)
