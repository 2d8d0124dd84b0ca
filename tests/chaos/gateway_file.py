"""The configuration of the gateways that are broken on purpose: limits scaled down, one upstream for every protocol."""

from pathlib import Path

from tests.stand.wire import KEY

_CONFIG = """
server:
  listen: 127.0.0.1:{port}
  workers: {workers}
  drain_notice: 0s
  drain: {drain}
state: {{directory: {state}, checkpoint: 500ms{stores}}}
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
    path: Path, origin: str, *, port: int = 0, database: str = "", valkey: str = "", drain: str = "20s"
) -> Path:
    """Write the file beside its state directory; returns its path. With a `valkey` there are two workers, else one."""
    stores = {"database": database, "shared": valkey}
    path.write_text(
        _CONFIG.format(
            origin=origin,
            port=port,
            workers=2 if valkey else 1,
            state=path.parent / "state",
            stores="".join(f", {name}: '{address}'" for name, address in stores.items() if address),
            drain=drain,
            key=KEY,
        ),
        encoding="utf-8",
    )
    path.chmod(0o600)
    return path
