from pathlib import Path

import pytest

from headrace.simulator.fields import Place, ScriptError
from headrace.simulator.reading import scenario_from_fields
from headrace.simulator.scenario import (
    CloseHow,
    Cut,
    During,
    Encoding,
    ErrorSpec,
    Faults,
    Framing,
    Heartbeat,
    How,
    Pacing,
    Refuse,
    RefuseWhen,
    WriteMode,
    Writes,
)


def pacing(**fields: object) -> Pacing:
    return scenario_from_fields(fields, Place("s", Path()), "s").pacing


def faults(**fields: object) -> Faults:
    return scenario_from_fields(fields, Place("s", Path()), "s").faults


def test_delays_and_gaps() -> None:
    assert pacing(head_delay=1, first_delay=0.5, gap=0.02) == Pacing(1.0, 0.5, 0.02)
    assert pacing(gaps=[1, 2]).gaps == {1: 1.0, 2: 2.0}
    assert pacing(gaps={"3": 1.5}).gaps == pacing(gaps={3: 1.5}).gaps == {3: 1.5}


def test_writes() -> None:
    assert pacing(writes="joined").writes.mode is WriteMode.JOINED
    assert pacing(writes="byte").writes.size == pacing(writes={"mode": "byte"}).writes.size == 1
    assert pacing(writes={"size": 64, "gap": 0.1}).writes == Writes(size=64, gap_s=0.1)
    assert pacing(writes={"at": [5, 9], "gap": 0.1}).writes.at == {5: 0.1, 9: 0.1}
    assert pacing(writes={"at": {"-1": 0.5}, "in_event": 3}).writes == Writes(at={-1: 0.5}, in_event=3)


def test_heartbeats() -> None:
    assert pacing(heartbeats={}).heartbeats == (Heartbeat(),)
    given = {"form": ": x\n", "every": 0.2, "during": "stall", "limit": 3}
    assert pacing(heartbeats=[given]).heartbeats == (Heartbeat(b": x\n", 0.2, During.STALL, 3),)


def test_errors() -> None:
    assert faults(error_first=True).error_first
    assert not faults(error_first=False).error_first
    made = faults(error_first={"code": 429, "type": "t", "message": "m", "param": "p"})
    assert (made.error_first, made.error) == (True, ErrorSpec("m", "t", 429, "p"))
    assert faults(error_at=3, error={"code": "x"}).error == ErrorSpec(code="x")


def test_headers_replace_repeat_and_remove() -> None:
    assert faults(headers={"a": 1, "b": ["x", "y"], "c": None}).headers == (("a", ("1",)), ("b", ("x", "y")), ("c", ()))
    assert faults(headers=[["a", "1"], ["b", "2"], ["a", "3"]]).headers == (("a", ("1",)), ("b", ("2",)), ("a", ("3",)))


def test_cuts_and_refusals() -> None:
    assert faults(cut="fin").cut == Cut(How.FIN)
    assert faults(cut={"after_events": 2, "extra": -12}).cut == Cut(How.RST, 2, -12)
    assert faults(refuse="head").refuse == Refuse(RefuseWhen.HEAD)
    assert faults(refuse={"how": "rst"}).refuse == Refuse(RefuseWhen.BODY, CloseHow.RST)


def test_the_rest() -> None:
    made = faults(
        status=529,
        content_type="text/x",
        body={"a": 1},
        content_encoding="gzip",
        tail_hold=1,
        framing="close",
        surplus="more",
        keep_alive=False,
        close_idle_after=2,
        ignore_request_body=True,
        interim=103,
    )
    assert made == Faults(
        status=529,
        content_type="text/x",
        body=b'{"a":1}',
        content_encoding=Encoding.GZIP,
        tail_hold_s=1.0,
        framing=Framing.CLOSE,
        surplus=b"more",
        keep_alive=False,
        close_idle_after_s=2.0,
        ignore_request_body=True,
        interim=(103,),
    )


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"gap": "20ms"}, "s.gap: expected seconds"),
        ({"gaps": 1}, "s.gaps: expected a list or a mapping of event index to seconds"),
        ({"gaps": {"a": 1}}, "s.gaps.a: expected a whole number"),
        ({"gaps": [1, "x"]}, "s.gaps.1: expected seconds"),
        ({"writes": "word"}, "s.writes.mode: 'word' is not one of event, byte, joined"),
        ({"writes": {"size": 1, "at": [1]}}, "s.writes: size and at exclude each other"),
        ({"writes": {"at": [-1]}}, "s.writes.at: negative offsets need in_event"),
        ({"heartbeats": {"every": 0}}, "s.heartbeats.every: at least 0.001 seconds"),
        ({"heartbeats": {"during": "night"}}, "s.heartbeats.during: 'night' is not one of first, gap, stall, any"),
        ({"status": 100}, "s.status: expected a whole number from 200 to 999"),
        ({"headers": "a: b"}, "s.headers: expected a mapping of names to values"),
        ({"headers": [["a"]]}, "s.headers.0: expected [name, value]"),
        ({"headers": {"a": "北"}}, "s.headers.a: header values are printable ASCII"),
        ({"headers": {"a b": "c"}}, "s.headers: 'a b' is no header name"),
        ({"headers": [["é", "c"]]}, "s.headers.0: 'é' is no header name"),
        ({"content_type": "a\r\nb"}, "s.content_type: header values are printable ASCII"),
        ({"headers": {"a": True}}, "s.headers.a: expected a string"),
        ({"content_encoding": "br"}, "s.content_encoding: 'br' is not one of identity, gzip, deflate"),
        ({"cut": {"after_events": 1, "at_byte": 1}}, "s.cut: after_events, at_byte and head_bytes exclude each other"),
        ({"cut": {"extra": 1}}, "s.cut.extra: needs after_events"),
        ({"cut": {"head_bytes": 1, "how": "clean"}}, "s.cut.how: a head cannot end cleanly"),
        ({"refuse": "never"}, "s.refuse: 'never' is not one of head, body"),
        ({"error": "text"}, "s.error: expected a mapping of fields"),
        ({"error": {"code": []}}, "s.error.code: expected a whole number"),
    ],
)
def test_mistakes_are_named(fields: dict[str, object], message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        faults(**fields)
    assert str(caught.value).startswith(message)
