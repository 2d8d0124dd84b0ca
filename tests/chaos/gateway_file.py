"""The configuration of the gateways that are broken on purpose: limits scaled down, one upstream for every protocol."""

from pathlib import Path

from tests.stand.wire import KEY

# Several workers need a Valkey. Nothing is limited here, so it may be away: the port is that of no service.
_CONFIG = """
server:
  listen: 127.0.0.1:{port}
  workers: {workers}
  drain_notice: 0s
  drain: {drain}
state: {{directory: {state}, checkpoint: 500ms, shared: "valkey://127.0.0.1:9"{database}}}
stream:
  keepalive: 500ms
  first_event: 20s
  stall: 1500ms
  stall_with_pings: 3s
  open: 30s
  reply: 20s
  total: 60s
channels:
  up:
    base_url: {origin}/v1
    allow_http: true
    protocols: [chat, responses, messages]
    credentials: [{{name: main, secret: sk-upstream}}]
  up-gemini:
    base_url: {origin}/v1beta
    allow_http: true
    protocols: [gemini]
    credentials: [{{name: main, secret: sk-upstream}}]
models:
  "*": {{routes: [{{channel: up}}, {{channel: up-gemini}}], max_attempts: 1}}
keys:
  - {{name: chaos, secret: {key}}}
"""


def write_config(
    path: Path, origin: str, *, port: int = 0, workers: int = 2, database: str = "", drain: str = "20s"
) -> Path:
    """Write the file beside its state directory; returns its path."""
    path.write_text(
        _CONFIG.format(
            origin=origin,
            port=port,
            workers=workers,
            state=path.parent / "state",
            database=f", database: '{database}'" if database else "",
            drain=drain,
            key=KEY,
        ),
        encoding="utf-8",
    )
    path.chmod(0o600)
    return path
