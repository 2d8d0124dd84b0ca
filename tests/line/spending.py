"""A stand's configuration where everything costs something: priced models, limited keys, owners and credentials.

Prices are per million tokens, so 1 token of `priced-*` is 3,000 nano-units of input, and 15,000 of output.
"""

import json

from tests.stand.settings import CONFIG
from tests.stand.stand import Stand

PRICE = "{input: 3, cached_input: 0.3, output: 15}"
INPUT, OUTPUT = 3_000, 15_000
"""Nano-units per token of `priced-*`."""

KEYS = {
    "twice": "multiplier: 2, labels: {team: blue}",
    "minute": "limits: {requests_per_minute: 10, wait: 0s}",
    "fresh": "limits: {requests_per_minute: 10, wait: 0s}",
    "counted": "limits: {concurrent: 5}",
    "rich": "budget: {amount: 1000}",
    "tokens": "limits: {tokens_per_minute: 100, wait: 0s}",
    "single": "limits: {concurrent: 1, wait: 0s}",
    "patient-single": "limits: {concurrent: 1, wait: 5s}",
    "broke": "budget: {amount: 0}",
    "broke-429": "budget: {amount: 0, status: 429}",
    "fifty": "budget: {amount: '0.015'}",
    "stopping": "budget: {amount: '0.001', exceeded: stop}",
    "shared-1": "owner: team",
    "shared-2": "owner: team",
    "hurried": "limits: {upstream_wait: 0s}",
    "tight": "budget: {amount: '0.45'}",
    "tight-too": "budget: {amount: '0.45'}",
    "racing": "limits: {concurrent: 1000}, budget: {amount: 1000}",
}
OWNERS = "owners:\n  - {name: team, limits: {concurrent: 1, wait: 0s}, multiplier: 3}\n"
_CHANNELS = """
  everything:
    base_url: $CH1/v1
    allow_http: true
    protocols: [chat, responses, messages, gemini, embeddings]
    credentials: [{name: main, secret: sk-everything}]
  narrow-channel:
    base_url: $CH1/v1
    allow_http: true
    protocols: [chat]
    credentials:
      - {name: one, secret: sk-narrow-1, limits: {concurrent: 1}}
  narrow-too:
    base_url: $CH2/v1
    allow_http: true
    protocols: [chat]
    priority: 1
    credentials:
      - {name: one, secret: sk-narrow-2, limits: {concurrent: 1}}
"""
_MODELS = f"""
  priced-*: {{routes: [{{channel: everything}}], max_attempts: 1, price: {PRICE}}}
  priced-impatient-*:
    routes: [{{channel: everything}}]
    max_attempts: 1
    stall: 600ms
    stall_with_pings: 1200ms
    write_timeout: 500ms
    price: {PRICE}
  priced-drained-*:
    routes: [{{channel: everything}}]
    max_attempts: 1
    client_gone: drain
    drain_cap: 3s
    drain_streams: 10
    price: {PRICE}
  priced-pair-*: {{routes: [{{channel: everything}}, {{channel: ch2, priority: 1}}], price: {PRICE}}}
  narrow-*: {{routes: [{{channel: narrow-channel}}, {{channel: narrow-too}}], price: {PRICE}}}
  half-priced-*: {{routes: [{{channel: everything}}], price: {{input: 3}}}}
  capped-dear-*: {{routes: [{{channel: everything}}], max_output: 20000, price: {{input: 0, output: 15}}}}
  capped-*: {{routes: [{{channel: everything}}], max_output: 20, price: {{input: 0, output: 15}}}}
"""


def secret_of(key: str) -> str:
    """The secret of one of `KEYS`."""
    return f"sk-hr-{key}-0123456789abcdef"


def balance(stand: Stand, key: str) -> dict[str, dict[str, dict[str, object]]]:
    """What the key's own page says."""
    reply = stand.ask(path="/v1/usage", method="GET", key=secret_of(key))
    assert reply.status == 200
    page: dict[str, dict[str, dict[str, object]]] = json.loads(reply.body)
    return page


def _keys() -> str:
    return "".join(f"  - {{name: {name}, secret: {secret_of(name)}, {options}}}\n" for name, options in KEYS.items())


SPENDING = (
    CONFIG.replace("channels:\n", f"channels:\n{_CHANNELS.strip(chr(10))}\n", 1)
    .replace("models:\n", f"models:\n{_MODELS.strip(chr(10))}\n", 1)
    .replace("keys:\n", f"{OWNERS}keys:\n{_keys()}", 1)
)
