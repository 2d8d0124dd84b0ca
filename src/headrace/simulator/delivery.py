"""Reads the fields of a scenario that say when bytes are written and what goes wrong: pacing and faults."""

import re
from collections.abc import Mapping

from headrace.simulator import fields as f
from headrace.simulator import scenario as s
from headrace.simulator.fields import Fields, Place, Reader

_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")  # RFC 9110 5.6.2
_offset = f.whole(-(1 << 40), 1 << 40)


def pacing_from_fields(fields: Fields) -> s.Pacing:
    """Takes the fields of pacing; raises ScriptError."""
    return s.Pacing(
        head_delay_s=fields.take("head_delay", f.seconds, 0.0),
        first_delay_s=fields.take("first_delay", f.seconds, 0.0),
        gap_s=fields.take("gap", f.seconds, 0.0),
        gaps=fields.take("gaps", _gaps, {}),
        writes=fields.take("writes", _writes, s.Writes()),
        heartbeats=fields.take("heartbeats", f.list_of(_heartbeat), ()),
    )


def _gaps(value: object, place: Place) -> dict[int, float]:
    """A mapping {event index: pause before it}, or a list of the pauses before events 1, 2, 3, …"""
    if isinstance(value, list):
        return {index + 1: f.seconds(item, place.at(index)) for index, item in enumerate(value)}
    return _by_number(value, place, f.whole(0, 10**9), "event index")


def _by_number(value: object, place: Place, read: Reader[int], what: str) -> dict[int, float]:
    if not isinstance(value, Mapping):
        raise place.error(f"expected a list or a mapping of {what} to seconds")
    return {_number(key, place, read): f.seconds(item, place.at(key)) for key, item in value.items()}


def _number(key: object, place: Place, read: Reader[int]) -> int:
    # JSON, which a request header may hold, has only string keys.
    if isinstance(key, str) and key.lstrip("-").isascii() and key.lstrip("-").isdigit():
        key = int(key)
    return read(key, place.at(key))


def _writes(value: object, place: Place) -> s.Writes:
    if isinstance(value, str):
        value = {"mode": value}
    fields = Fields(value, place)
    mode = fields.take("mode", f.choice(s.WriteMode), s.WriteMode.EVENT)
    size = fields.take("size", f.positive, 0)
    gap = fields.take("gap", f.seconds, 0.0)
    at = fields.take("at", lambda found, where: _offsets(found, where, gap), {})
    in_event = fields.take("in_event", f.whole(0, 10**9), None)
    fields.end()
    if size and at:
        raise place.error("size and at exclude each other")
    if in_event is None and any(offset < 0 for offset in at):
        raise place.at("at").error("negative offsets need in_event")
    return s.Writes(mode=mode, size=1 if mode is s.WriteMode.BYTE else size, at=at, in_event=in_event, gap_s=gap)


def _offsets(value: object, place: Place, gap: float) -> dict[int, float]:
    if isinstance(value, list):
        return {_offset(item, place.at(index)): gap for index, item in enumerate(value)}
    return _by_number(value, place, _offset, "offset")


def _heartbeat(value: object, place: Place) -> s.Heartbeat:
    fields = Fields(value, place)
    made = s.Heartbeat(
        form=fields.take("form", f.raw_bytes, b": ping\n\n"),
        every_s=fields.take("every", f.seconds, 1.0),
        during=fields.take("during", f.choice(s.During), s.During.ANY),
        limit=fields.take("limit", f.natural, None),
    )
    fields.end()
    if made.every_s < 0.001:
        raise place.at("every").error("at least 0.001 seconds")
    return made


def faults_from_fields(fields: Fields) -> s.Faults:
    """Takes the fields of faults; raises ScriptError."""
    error = fields.take("error", _error, s.ErrorSpec())
    first = fields.take("error_first", _error_first, False)
    return s.Faults(
        status=fields.take("status", f.whole(200, 999), 200),
        headers=fields.take("headers", _headers, ()),
        content_type=fields.take("content_type", _header_value, None),
        body=fields.take("body", f.body_bytes, None),
        content_encoding=fields.take("content_encoding", f.choice(s.Encoding), s.Encoding.IDENTITY),
        error=error if isinstance(first, bool) else first,
        error_first=first is not False,
        error_at=fields.take("error_at", f.whole(0, 10**9), None),
        cut=fields.take("cut", _cut, None),
        tail_hold_s=fields.take("tail_hold", f.seconds, 0.0),
        framing=fields.take("framing", f.choice(s.Framing), None),
        trailers=fields.take("trailers", _headers, ()),
        surplus=fields.take("surplus", f.raw_bytes, b""),
        refuse=fields.take("refuse", _refuse, None),
        keep_alive=fields.take("keep_alive", f.boolean, True),
        close_idle_after_s=fields.take("close_idle_after", f.seconds, None),
        ignore_request_body=fields.take("ignore_request_body", f.boolean, False),
        interim=fields.take("interim", f.list_of(f.whole(100, 199)), ()),
    )


def _error_first(value: object, place: Place) -> bool | s.ErrorSpec:
    return value if isinstance(value, bool) else _error(value, place)


def _error(value: object, place: Place) -> s.ErrorSpec:
    fields = Fields(value, place)
    made = s.ErrorSpec(
        message=fields.take("message", f.string, None),
        type=fields.take("type", f.string, None),
        code=fields.take("code", _code, None),
        param=fields.take("param", f.string, None),
    )
    fields.end()
    return made


def _code(value: object, place: Place) -> str | int:
    return f.string(value, place) if isinstance(value, str) else f.whole(0, 10**6)(value, place)


def _headers(value: object, place: Place) -> tuple[tuple[str, tuple[str, ...]], ...]:
    """{name: value, or list of values, or null to remove it}. A list of [name, value] pairs keeps their order."""
    if isinstance(value, list):
        return tuple(_pair(item, place.at(index)) for index, item in enumerate(value))
    if not isinstance(value, Mapping):
        raise place.error("expected a mapping of names to values, or a list of [name, value]")
    return tuple(
        (_header_name(name, place), () if item is None else f.list_of(_header_value)(item, place.at(name)))
        for name, item in value.items()
    )


def _pair(value: object, place: Place) -> tuple[str, tuple[str, ...]]:
    if not isinstance(value, list) or len(value) != 2:
        raise place.error("expected [name, value]")
    return _header_name(value[0], place), (_header_value(value[1], place),)


def _header_name(value: object, place: Place) -> str:
    name = f.string(value, place)
    if not _TOKEN.fullmatch(name):
        raise place.error(f"{name!r} is no header name")
    return name


def _header_value(value: object, place: Place) -> str:
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else f.string(value, place)
    if not text.isascii() or not text.isprintable():
        raise place.error("header values are printable ASCII")
    return text


def _cut(value: object, place: Place) -> s.Cut:
    if isinstance(value, str):
        return s.Cut(how=f.choice(s.How)(value, place))
    fields = Fields(value, place)
    made = s.Cut(
        how=fields.take("how", f.choice(s.How), s.How.RST),
        after_events=fields.take("after_events", f.natural, None),
        extra=fields.take("extra", _offset, 0),
        at_byte=fields.take("at_byte", f.natural, None),
        head_bytes=fields.take("head_bytes", f.natural, None),
    )
    fields.end()
    if sum(item is not None for item in (made.after_events, made.at_byte, made.head_bytes)) > 1:
        raise place.error("after_events, at_byte and head_bytes exclude each other")
    if made.extra and made.after_events is None:
        raise place.at("extra").error("needs after_events")
    if made.head_bytes is not None and made.how is s.How.CLEAN:
        raise place.at("how").error("a head cannot end cleanly; allowed: rst, fin, stall")
    return made


def _refuse(value: object, place: Place) -> s.Refuse:
    if isinstance(value, str):
        return s.Refuse(f.choice(s.RefuseWhen)(value, place))
    fields = Fields(value, place)
    made = s.Refuse(
        when=fields.take("when", f.choice(s.RefuseWhen), s.RefuseWhen.BODY),
        how=fields.take("how", f.choice(s.CloseHow), s.CloseHow.FIN),
    )
    fields.end()
    return made
