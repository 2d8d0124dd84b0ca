"""Headrace as a real process, with authentication, metering and the journal on."""

import sys
from pathlib import Path

from bench.load import wire
from bench.load.gateway import Launch, Upstream

_CONFIG = """\
server: {{listen: "127.0.0.1:{port}"}}
state: {{directory: "{directory}/data"}}
channels:
  bench:
    base_url: {origin}/v1
    protocols: [chat]
    credentials: [{{name: main, secret: {upstream_secret}}}]
    {trust}
models:
  {model}: {{routes: [{{channel: bench}}]}}
keys:
  - name: bench
    secret: {client_key}
"""


def launch(upstream: Upstream, directory: Path, port: int) -> Launch:
    """Write the configuration; one worker."""
    config = _CONFIG.format(
        port=port,
        directory=directory,
        origin=upstream.origin,
        upstream_secret=wire.UPSTREAM_SECRET,
        trust=f'ca: "{upstream.ca}"' if upstream.ca else "allow_http: true",
        model=wire.MODEL,
        client_key=wire.CLIENT_KEY,
    )
    path = directory / "headrace.yaml"
    path.write_text(config)
    return Launch([sys.executable, "-m", "headrace", "serve", "--config", str(path)])
