"""Headrace as a real process, with authentication, limits, a budget, metering and the journal on (SPEC 15)."""

import sys
from pathlib import Path

from bench.load import wire
from bench.load.gateway import Launch, Upstream, free_port

_CONFIG = """\
server: {{listen: "127.0.0.1:{port}", admin: "127.0.0.1:{admin}", workers: 1}}
state: {{directory: "{directory}/data"}}
channels:
  bench:
    base_url: {origin}/v1
    protocols: [chat]
    credentials: [{{name: main, secret: {upstream_secret}}}]
    {trust}
models:
  {model}: {{routes: [{{channel: bench}}], price: {{input: 1.25, cached_input: 0.125, output: 10.00}}}}
keys:
  - name: bench
    secret: {client_key}
    limits: {{requests_per_minute: 1000000000, tokens_per_minute: 1000000000000, concurrent: 1000000}}
    budget: {{amount: 1000000000, window: month}}
"""


def launch(upstream: Upstream, directory: Path, port: int) -> Launch:
    """Write the configuration; one worker, beside it the supervisor and the control process."""
    config = _CONFIG.format(
        port=port,
        admin=free_port(),
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
