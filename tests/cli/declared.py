"""A configuration file with objects of each kind, for commands beside a gateway that does not run."""

import json
from pathlib import Path
from typing import Any

from typer.testing import CliRunner, Result

from headrace.cli.app import app

FILE = """\
channels:
  sim: {{base_url: https://a.example, protocols: [chat, responses], credentials: [{{name: m, secret: env:HR_NOT_SET}}]}}
models:
  gpt: {{routes: [{{channel: sim, upstream_model: gpt-up}}, {{channel: sim}}], max_output: 4000}}
  priced: {{routes: [{{channel: sim}}], protocols: [chat], price: {{input: 1.25, output: 10}}}}
  "sim-*": {{routes: [{{channel: sim}}]}}
keys:
  - {{name: dev, secret: env:HR_NOT_SET_EITHER, owner: team}}
owners:
  - {{name: team, budget: {{amount: 5.5, window: day}}, limits: {{concurrent: 3}}}}
state: {{directory: state{state}}}
"""


class Beside:
    """Runs commands on one file."""

    def __init__(self, folder: Path, database: str = "") -> None:
        self.file = folder / "headrace.yaml"
        self.directory = folder / "state"
        self.file.write_text(FILE.format(state=f", database: '{database}'" if database else ""))

    def run(self, *arguments: str) -> Result:
        """One command; its exit code is the caller's to look at."""
        return CliRunner().invoke(app, [*arguments, "--config", str(self.file)])

    def did(self, *arguments: str) -> str:
        """What a command that works prints."""
        result = self.run(*arguments)
        assert result.exit_code == 0, result.output
        return result.stdout

    def told(self, *arguments: str) -> Any:
        """What it prints for programs."""
        return json.loads(self.did(*arguments, "--json"))

    def refused(self, *arguments: str, code: int = 1) -> str:
        """What a command that is refused says."""
        result = self.run(*arguments)
        assert (result.exit_code, result.stdout) == (code, ""), result.output
        return result.stderr.strip()
