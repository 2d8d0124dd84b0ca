"""Which options are set and do nothing."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import pytest

from headrace.config.advice import advise
from headrace.config.forms import Reading
from headrace.config.idle import UNSERVED, idle_options
from headrace.config.options.group import NoEffect, Options
from headrace.config.options.objects import ChannelOptions, KeyOptions, ModelOptions
from headrace.config.options.settings import ServerOptions
from headrace.config.sections import read_sections
from headrace.config.source import read
from headrace.http.surface import find
from headrace.model.problem import Problem
from headrace.model.wire import WireProtocol

READING = Reading(Path(), {})
CHANNEL = {"base_url": "https://a.example", "credentials": [{"name": "m", "secret": "s"}]}


def options(kind: type[Options], value: Mapping[str, object]) -> list[str]:
    group = kind.model_validate(value, context=READING)
    return [".".join(map(str, idle.location)) for idle in idle_options(group, ("x",))]


def test_only_what_is_set_is_named() -> None:
    assert options(KeyOptions, {"name": "k", "secret": "s"}) == []
    given = {
        "name": "k",
        "secret": "s",
        "budget": {"amount": "1"},
        "labels": {"team": "a"},
        "limits": {"concurrent": "1"},
    }
    assert options(KeyOptions, given) == [], "they have an effect"
    assert options(ServerOptions, {"admin": "a:1", "workers": "2"}) == ["x.admin"]


def test_what_is_off_promises_nothing() -> None:
    model = {"routes": [{"channel": "a"}]}
    assert options(ModelOptions, model | {"websocket_bridge": "false"}) == []
    assert options(ModelOptions, model | {"websocket_bridge": "true"}) == ["x.websocket_bridge"]


class Inner(Options):
    """A group in another, with an option that does nothing."""

    idle: Annotated[int, NoEffect("nothing happens")] = 0


class Outer(Options):
    """It has some of them."""

    inner: tuple[Inner, ...] = ()


def test_groups_inside_are_looked_at() -> None:
    assert options(Outer, {"inner": [{}, {"idle": 1}]}) == ["x.inner.1.idle"]


@pytest.mark.parametrize("protocol", list(WireProtocol))
def test_a_protocol_that_no_request_can_ask_for_is_named(protocol: WireProtocol) -> None:
    found = options(ChannelOptions, CHANNEL | {"protocols": ["chat", protocol.value]})
    assert found == (["x.protocols.1"] if protocol in UNSERVED else [])


@pytest.mark.parametrize(
    ("path", "protocol"), [("/v1/files", WireProtocol.FILES), ("/v1/vector_stores", WireProtocol.VECTOR_STORES)]
)
def test_there_is_no_such_path(path: str, protocol: WireProtocol) -> None:
    assert protocol in UNSERVED
    assert isinstance(find("POST", path), Problem), "it is served now: take it out of UNSERVED"


def test_many_places_make_one_warning() -> None:
    model = "{routes: [{channel: a}], websocket_bridge: %s}"
    text = f"models:\n  m: {model % 'true'}\n  n: {model % 'false'}\n  o: {model % 'true'}\n  p: {model % 'true'}\n"
    sections, faults = read_sections(read(text)[0], READING)
    assert not faults
    (said,) = [one for one in advise(sections, False) if "no effect" in one.message]
    assert (said.line, said.path) == (2, "models.m.websocket_bridge")
    assert said.message == "has no effect in this version: no WebSocket is taken; likewise in 2 more places"
