"""Headrace as a real process, with authentication, metering and the journal on."""

import sys
from pathlib import Path

from bench.load import wire
from bench.load.gateway import Launch, Upstream
from bench.load.protocols import CHAT, GEMINI, MESSAGES

_CONFIG = """\
server: {{listen: "127.0.0.1:{port}"}}
state: {{directory: "{directory}/data"}}
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
  {openai_model}: {{routes: [{{channel: openai}}]}}
  {anthropic_model}: {{routes: [{{channel: anthropic}}]}}
  {google_model}: {{routes: [{{channel: google}}]}}
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
        openai_model=CHAT.model,
        anthropic_model=MESSAGES.model,
        google_model=GEMINI.model,
        client_key=wire.CLIENT_KEY,
    )
    path = directory / "headrace.yaml"
    path.write_text(config)
    return Launch([sys.executable, "-m", "headrace", "serve", "--config", str(path)])
