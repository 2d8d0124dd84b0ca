"""`headrace demo`: plays the shows, prints what arrives and when, checks each, and then serves on."""

import asyncio
from pathlib import Path
from typing import Annotated

import msgspec
import typer

from headrace.cli.demo.client import Answer, Arrival, ClientError, ask
from headrace.cli.demo.proof import Evidence, faults
from headrace.cli.demo.shows import PROMPT, SHOWS, Show
from headrace.cli.demo.stage import Stage, stage
from headrace.cli.entry_summary import seconds
from headrace.cli.entry_view import brief, sections
from headrace.cli.output import fail, printable
from headrace.cli.output import show as show_sections
from headrace.cli.reading import Reading, Said, Sort
from headrace.cli.signals import stop_signals
from headrace.journal.reader import find_entry
from headrace.model.entry import Entry
from headrace.worker import run

ENTRY_TIMEOUT_S = 2.0
POLL_S = 0.01
SHOWN_CHARACTERS = 72

OnceOption = Annotated[bool, typer.Option("--once", help="Exit after the shows instead of serving on.")]


class DemoError(Exception):
    """A show could not be played to its end, or was not as it must be."""


def demo(once: OnceOption = False) -> None:
    """Show the gateway at work.

    It needs no configuration, account or network: simulated upstreams and a gateway run in this process on loopback
    ports. Each show is checked; the exit code is 1 if one is not as it must be. Without --once the gateway then serves
    on until Ctrl-C.
    """
    try:
        run(_demo(once))
    except DemoError as error:
        fail(str(error))
    except BrokenPipeError:
        raise  # who read the output has left: Typer ends it quietly with 1
    except OSError as error:
        fail(f"the demo cannot run here: {error}")


async def _demo(once: bool) -> None:
    with stop_signals() as stop:
        async with stage(SHOWS, _report) as playing:
            acting = asyncio.ensure_future(_play_all(playing))
            stopping = asyncio.ensure_future(stop.wait())
            try:
                await asyncio.wait((acting, stopping), return_when=asyncio.FIRST_COMPLETED)
                if not acting.done():
                    raise DemoError("stopped before the last show")
                acting.result()
                if not once:
                    _invite(playing)
                    await stopping
            finally:
                acting.cancel()
                stopping.cancel()
                await asyncio.gather(acting, stopping, return_exceptions=True)


async def _play_all(playing: Stage) -> None:
    for number, one in enumerate(SHOWS, 1):
        typer.echo(f"\n{number}. {one.title}\n{one.about}\n")
        await _play(playing, one)
    typer.echo(f"\nall {len(SHOWS)} shows were as they must be")


async def _play(playing: Stage, one: Show) -> None:
    """One request, its entry, and the check of both. Raises DemoError."""
    reading = one.reading
    said: list[Said] = []

    def on_arrival(arrival: Arrival) -> None:
        said.append(_said(reading, arrival))
        typer.echo(arrival_line(arrival, said[-1]))

    body = reading.body(one.model, PROMPT)
    try:
        answer = await ask(playing.address, reading.path(one.model), reading.headers(playing.key), body, on_arrival)
    except ClientError as error:
        raise DemoError(f"{one.title}: {error}") from None
    entry = await _entry(playing.directory, answer, one)
    typer.echo("")
    show_sections(sections(entry) if one.whole else [brief(entry)])
    wrong = faults(one, Evidence(answer, tuple(said), entry, playing.sent))
    if wrong:
        raise DemoError("\n".join(f"{one.title}: {fault}" for fault in wrong))


def _said(reading: Reading, arrival: Arrival) -> Said:
    try:
        return reading.said(arrival.data)
    except (ValueError, msgspec.MsgspecError) as error:
        raise DemoError(f"an event that is not of {reading.protocol.value}: {error}: {arrival.data!r}") from None


async def _entry(directory: Path, answer: Answer, one: Show) -> Entry:
    """The exchange's entry: it is written when the exchange ends, which may be after its last byte."""
    id = answer.headers.get("x-request-id", "")
    deadline = asyncio.get_running_loop().time() + ENTRY_TIMEOUT_S
    while (entry := find_entry(directory, id)) is None:
        if asyncio.get_running_loop().time() > deadline:
            raise DemoError(f"{one.title}: no entry {id!r} in the journal")
        await asyncio.sleep(POLL_S)
    return entry


def arrival_line(arrival: Arrival, said: Said) -> str:
    """`+0.312 s  text       "water "  data: {…`: when it came, what it is, what it says, how it looks on the wire."""
    wire = printable(" ⏎ ".join(arrival.data.decode("utf-8", errors="replace").rstrip("\n").split("\n")))
    shown = f"{said.text!r:12}  {wire}" if said.sort is Sort.OUTPUT else wire
    if said.sort is not Sort.ERROR and len(shown) > SHOWN_CHARACTERS:
        shown = f"{shown[:SHOWN_CHARACTERS]}…"
    return f"+{seconds(arrival.at_s)}  {said.sort.value:9}  {len(arrival.data):4} B  {shown}"


def _invite(playing: Stage) -> None:
    body = SHOWS[0].reading.body("sim-echo", PROMPT).decode()
    typer.echo(f"""
The gateway serves on; Ctrl-C ends it. Its models are the shows' ({", ".join(one.model for one in SHOWS)})
and the simulator's scenarios (sim-echo, sim-slow, sim-tools, sim-cut, …).

base_url: {playing.base_url}
api_key:  {playing.key}

curl -N {playing.base_url}/chat/completions -H 'Authorization: Bearer {playing.key}' \\
  -H 'Content-Type: application/json' -d '{body}'
""")


def _report(line: str) -> None:
    typer.echo(line, err=True)
