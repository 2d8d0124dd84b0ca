"""A file that `headrace init` wrote, for a gateway before a simulator; what a newcomer would have."""

import socket
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from headrace.simulator import SimulatorThread
from tests.cli import process

LISTED = """\
models:
  quick: {routes: [{channel: openai}]}
  said-by-claude: {routes: [{channel: anthropic}]}
  said-by-gemini: {routes: [{channel: gemini}]}
  vectors: {routes: [{channel: openai}], protocols: [embeddings]}
"""


@dataclass(frozen=True)
class Served:
    """The folder of the file, the gateway's root URL, and the environment that it is served in."""

    folder: Path
    root: str
    environ: Mapping[str, str]

    @property
    def file(self) -> str:
        return str(self.folder / "headrace.yaml")

    @property
    def key_file(self) -> str:
        return str(self.folder / "headrace.key")


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def provider_variables(upstream: str) -> dict[str, str]:
    """What users of three providers have set, here all at one simulator; `upstream` ends in /v1."""
    root = upstream.removesuffix("/v1")
    return {
        "OPENAI_API_KEY": "sk-simulated",
        "OPENAI_BASE_URL": upstream,
        "ANTHROPIC_API_KEY": "sk-simulated",
        "ANTHROPIC_BASE_URL": root,
        "GEMINI_API_KEY": "sk-simulated",
        "GOOGLE_GEMINI_BASE_URL": root,
    }


def made_file(folder: Path, upstream: SimulatorThread) -> Served:
    """The file, with some models by their names; `headrace init` itself knows only patterns for unusual addresses."""
    port = free_port()
    environ = provider_variables(upstream.url)
    made = process.run("init", "--listen", f"127.0.0.1:{port}", folder=folder, **environ)
    assert (made.returncode, made.stderr) == (0, "")
    file = folder / "headrace.yaml"
    file.write_text(file.read_text().replace("models:\n", LISTED, 1))
    return Served(folder, f"http://127.0.0.1:{port}", environ)
