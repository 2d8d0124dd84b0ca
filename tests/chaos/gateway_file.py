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
{channels}
"""
_CHANNEL = """\
  up-{protocol}:
    base_url: {origin}/{path}
    allow_http: true
    protocols: [{protocol}]
    credentials: [{{name: main, secret: sk-upstream}}]
"""
PATHS = {"chat": "v1", "responses": "v1", "messages": "v1", "gemini": "v1beta"}
"""By protocol, each of which has a channel of its own: `up-PROTOCOL`."""
PLAIN = f"""\
models:
  "*": {{routes: [{", ".join(f"{{channel: up-{protocol}}}" for protocol in PATHS)}], max_attempts: 1}}
keys:
  - {{name: chaos, secret: {KEY}}}
"""
"""One key, and models by their scenarios' names, all of it without limits or prices."""


def write_config(
    path: Path,
    origin: str,
    *,
    port: int = 0,
    database: str = "",
    valkey: str = "",
    secret: str = "",
    outage: str = "",
    drain: str = "20s",
    objects: str = PLAIN,
) -> Path:
    """Write the file beside its state directory; returns its path. With a `valkey` there are two workers, else one.
    `secret` and `outage`: `state.secret` and `state.shared_outage`. `objects`: the sections `models`, `keys` and
    `owners`."""
    stores = {"database": database, "shared": valkey, "secret": secret, "shared_outage": outage}
    text = _CONFIG.format(
        port=port,
        workers=2 if valkey else 1,
        state=path.parent / "state",
        stores="".join(f", {name}: '{value}'" for name, value in stores.items() if value),
        drain=drain,
        channels="".join(_CHANNEL.format(protocol=one, path=at, origin=origin) for one, at in PATHS.items()),
    )
    path.write_text(text + objects, encoding="utf-8")
    path.chmod(0o600)
    return path
