"""The text of the configuration file that `headrace init` writes: short, whole, and with comments that teach."""

import json
import re
from collections.abc import Sequence

from headrace.cli.providers import Found

KEY_NAME = "dev"
CATCH_ALL = "*"

_HEAD = """\
# Headrace, a gateway before {titles}. Written by `headrace init`; now it is yours.
#
#   headrace check            is this file sound? It says where not, and what is allowed there
#   headrace check --explain  every option there is, with its default
#   headrace serve            run the gateway; SIGTERM ends it in good order
#
# No secret stands here: env:NAME is read from the environment of `headrace serve`, file:PATH from a file.

server:
  listen: {listen}  # this machine only; 0.0.0.0:8080 is for all, and wants server.tls or a proxy with TLS before it

state:
  directory: headrace-data  # the journal and the record of every exchange; keep it, and back it up

# A channel is one upstream with its accounts. Where a model has routes to several, the next one is asked when one fails
# before its first event; after that nothing is switched.
channels:
"""
_CHANNEL = """\
  {name}:
    base_url: {base_url}{http}
    protocols: [{protocols}]
    credentials:
      - {{name: main, secret: {secret}}}{note}
"""
_HTTP = (
    "\n    allow_http: true  # the credential travels in the clear: for upstreams on this machine or in your own net"
)
_MODELS = """
# What clients ask for. A name is listed to them (GET /v1/models). A pattern is not; it takes every name that fits, and
# sends it up as it is. An exact name wins, then the longest pattern. Time limits can be set for each: stall, total, …
models:
"""
_KEYS = """
# What clients authenticate with; the providers' keys never leave the gateway. Give each user or program one of its own:
# the record tells them apart, and one can be ended alone.
keys:
  - name: {key}
    secret: file:{key_file}  # made by init, random; `headrace connect` prints how a client takes it from there
    # models: [{example}]  # all, where nothing is said
"""
_PLAIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._/:@-]*")


def text(found: Sequence[Found], listen: str, key_file: str) -> str:
    """The file before the providers of `found` (at least one), listening at `listen`; its key is in `key_file`."""
    models = routed(found)
    titles = [one.provider.title for one in found]
    shown = " and ".join(filter(None, (", ".join(titles[:-1]), titles[-1])))
    parts = [_HEAD.format(titles=shown, listen=_quoted(listen)), *map(_channel, found), _MODELS]
    for name, channels in models.items():
        routes = ", ".join(f"{{channel: {channel}}}" for channel in channels)
        parts.append(f"  {_quoted(name)}: {{routes: [{routes}]}}\n")
    example = ", ".join(_quoted(name) for name in list(models)[:2])
    parts.append(_KEYS.format(key=KEY_NAME, key_file=key_file, example=example))
    return "".join(parts)


def routed(found: Sequence[Found]) -> dict[str, list[str]]:
    """Models and patterns with the channels of their routes: names first.

    What an upstream at an unusual address calls its models is not known here: it gets all names that nothing else fits.
    """
    models: dict[str, list[str]] = {}
    usual = [one.provider for one in found if not one.elsewhere]
    named = [(name, one.channel) for one in usual for name in one.names]
    fitting = [(pattern, one.channel) for one in usual for pattern in one.patterns]
    left = [(CATCH_ALL, one.provider.channel) for one in found if one.elsewhere]
    for name, channel in (*named, *fitting, *left):
        models.setdefault(name, []).append(channel)
    return models


def _channel(one: Found) -> str:
    return _CHANNEL.format(
        name=one.provider.channel,
        base_url=_quoted(one.base_url),
        http=_HTTP if one.base_url.lower().startswith("http://") else "",
        protocols=", ".join(one.provider.protocols),
        secret=f"env:{one.variable}" if one.variable else "simulated",
        note="" if one.variable else "  # any will do",
    )


def _quoted(text: str) -> str:
    """The text as a scalar of YAML."""
    return text if _PLAIN.fullmatch(text) else json.dumps(text)
