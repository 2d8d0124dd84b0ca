"""Sections are read one by one, and each fault stands where it is."""

from pathlib import Path

from headrace.config.forms import Reading
from headrace.config.sections import Sections, read_sections
from headrace.config.source import read


def sections(text: str) -> tuple[Sections, list[tuple[int | None, str, str]]]:
    found, faults = read_sections(read(text)[0], Reading(Path("/etc/headrace"), {"A": "aaaa"}))
    return found, [(fault.line, fault.path, fault.message) for fault in faults]


def test_a_bad_section_leaves_the_others_readable() -> None:
    found, faults = sections("server: {drain: 5}\nstate: {directory: d}\nstream: 7\nchannels: {a: }\n")
    assert found.server is None
    assert found.stream is None
    assert found.state is not None
    assert dict(found.channels) == {"a": None}
    assert [path for _, path, _ in faults] == [
        "server.drain",
        "stream",
        "channels.a.base_url",
        "channels.a.protocols",
        "channels.a.credentials",
    ]


def test_faults_of_aliased_values_stand_at_their_anchor() -> None:
    _, faults = sections("stream: {stall: &t 5,\n  open: *t}\nserver:\n  drain: *t\n")
    assert {(line, path) for line, path, _ in faults} == {(1, "stream.stall"), (2, "stream.open"), (4, "server.drain")}


def test_lists_without_good_items_are_not_called_empty() -> None:
    text = (
        "channels:\n  a:\n    base_url: https://a.example\n    protocols: [x, y]\n    credentials:\n    - {name: m}\n"
    )
    _, faults = sections(text)
    assert [(line, path) for line, path, _ in faults] == [
        (4, "channels.a.protocols[0]"),
        (4, "channels.a.protocols[1]"),
        (6, "channels.a.credentials[0].secret"),
    ]


def test_unknown_options_are_compared_with_those_of_their_own_group() -> None:
    text = "models:\n  m:\n    routes:\n    - {channel: a, chanel: b, weigth: 3, limits: 1}\n    - {channel: b}\n"
    _, faults = sections(text)
    assert [(line, path) for line, path, _ in faults] == [
        (4, "models.m.routes[0].chanel"),
        (4, "models.m.routes[0].weigth"),
        (4, "models.m.routes[0].limits"),
    ]
    allowed = "allowed here: channel, upstream_model, priority, weight, price"
    assert [message for _, _, message in faults] == [
        f"unknown option (did you mean channel?); {allowed}",
        f"unknown option (did you mean weight?); {allowed}",
        f"unknown option; {allowed}",
    ]
