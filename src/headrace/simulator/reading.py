"""Turns the fields of a script's scenario into a `Scenario`; the contract is docs/reference/simulator.md."""

from collections.abc import Mapping

from headrace.simulator import fields as f
from headrace.simulator import scenario as s
from headrace.simulator.delivery import faults_from_fields, pacing_from_fields
from headrace.simulator.fields import Fields, Place, Reader

MAX_CHOICES = 128  # OpenAI's own limit for n


def scenario_from_fields(value: object, place: Place, name: str) -> s.Scenario:
    """A scenario of that name; raises ScriptError. A `sequence` or `by_credential` inherits the fields beside it."""
    fields = Fields(value, place)
    for key in ("sequence", "by_credential"):
        if fields.has(key):
            return _many(value, place, name, key)
    made = s.Scenario(
        name=name,
        content=_content(fields),
        spelling=_spelling(fields),
        pacing=pacing_from_fields(fields),
        faults=faults_from_fields(fields),
    )
    fields.take("sequence", _nothing, None)
    fields.take("by_credential", _nothing, None)
    fields.end()
    _check(made, place)
    return made


def _nothing(value: object, place: Place) -> None:
    """Reads nothing: the field is only made known to the list of allowed names."""


def _many(value: object, place: Place, name: str, key: str) -> s.Scenario:
    assert isinstance(value, Mapping)
    shared = {field: item for field, item in value.items() if field != key}
    if "sequence" in shared or "by_credential" in shared:
        raise place.error("sequence and by_credential cannot stand side by side; put one inside the other")

    def read(item: object, at: Place) -> s.Scenario:
        if not isinstance(item, Mapping):
            raise at.error("expected a mapping of scenario fields ({} for the fields beside the list)")
        # A name of its own for each, since sequences inside are counted by it.
        return scenario_from_fields({**shared, **item}, at, f"{name}/{at.path.rpartition('.')[2]}")

    if key == "sequence":
        steps = f.list_of(read)(value[key], place.at(key))
        if not steps:
            raise place.at(key).error("needs at least one scenario")
        return s.Scenario(name=name, sequence=steps)
    cases = f.mapping_of(read)(value[key], place.at(key))
    cases.setdefault("*", scenario_from_fields(shared, place, name))
    return s.Scenario(name=name, by_credential=cases)


def _content(fields: Fields) -> s.Content:
    only = _choice_fields(fields)
    choices = fields.take("choices", f.list_of(_choice), (only,))
    return s.Content(
        choices=choices,
        n=fields.take("n", f.whole(1, MAX_CHOICES), len(choices) if len(choices) > 1 else None),
        usage=fields.take("usage", _usage, s.UsageSpec()),
        id=fields.take("id", f.string, None),
        created=fields.take("created", f.natural, None),
        model=fields.take("model", f.string, None),
    )


def _choice(value: object, place: Place) -> s.ChoiceSpec:
    fields = Fields(value, place)
    made = _choice_fields(fields)
    fields.end()
    return made


def _choice_fields(fields: Fields) -> s.ChoiceSpec:
    return s.ChoiceSpec(
        text=fields.take("text", f.list_of(f.string), None),
        chunks=fields.take("chunks", _chunks, s.Chunks()),
        repeat=fields.take("repeat", f.whole(0, f.MAX_REPEAT), 1),
        echo=fields.take("echo", f.boolean, False),
        reasoning=fields.take("reasoning", f.string, ""),
        refusal=fields.take("refusal", f.string, ""),
        tool_calls=fields.take("tool_calls", f.list_of(_tool_call), ()),
        finish_reason=fields.take("finish_reason", f.string, None),
    )


def _chunks(value: object, place: Place) -> s.Chunks:
    if isinstance(value, str):
        by = f.choice(s.SplitBy)(value, place)
        return s.Chunks(by)
    fields = Fields(value, place)
    sizes = {by: fields.take(by.value, f.positive, 0) for by in s.SplitBy}
    fields.end()
    given = [s.Chunks(by, size) for by, size in sizes.items() if size]
    if len(given) != 1:
        raise place.error("expected words, characters, or one of {words: n}, {characters: n}, {count: n}")
    return given[0]


def _tool_call(value: object, place: Place) -> s.ToolCall:
    fields = Fields(value, place)
    made = s.ToolCall(
        name=fields.take("name", f.string, ""),
        arguments=fields.take("arguments", _arguments, "{}"),
        id=fields.take("id", f.string, None),
        pieces=fields.take("pieces", f.positive, 3),
    )
    fields.end()
    if not made.name:
        raise place.at("name").error("a tool call needs a name")
    return made


def _arguments(value: object, place: Place) -> str:
    return f.string(value, place) if isinstance(value, str) else f.json_bytes(value, place).decode()


def _usage(value: object, place: Place) -> s.UsageSpec:
    if isinstance(value, str):
        return s.UsageSpec(style=f.choice(s.UsageStyle)(value, place))
    fields = Fields(value, place)
    made = s.UsageSpec(
        style=fields.take("style", f.choice(s.UsageStyle), s.UsageStyle.ASKED),
        prompt=fields.take("prompt", f.natural, None),
        completion=fields.take("completion", f.natural, None),
        total=fields.take("total", f.natural, None),
        cached=fields.take("cached", f.natural, 0),
        reasoning=fields.take("reasoning", f.natural, None),
        object=fields.take("object", f.json_bytes, None),
    )
    fields.end()
    return made


def _spelling(fields: Fields) -> s.Spelling:
    raw = fields.take("raw", f.raw_bytes, None)
    return s.Spelling(
        stream=fields.take("stream", f.boolean, None),
        role=fields.take("role", f.choice(s.RoleStyle), s.RoleStyle.FIRST),
        done=fields.take("done", _done, None),
        obfuscation=fields.take("obfuscation", f.boolean, False),
        reasoning_field=fields.take("reasoning_field", f.choice(s.ReasoningField), s.ReasoningField.REASONING_CONTENT),
        events=fields.take("events", f.list_of(_event), None),
        raw=fields.take("raw_file", f.file_bytes, raw),
        preamble=fields.take("preamble", f.raw_bytes, b""),
        line_end=fields.take("line_end", f.choice(s.LineEnd), None),
        space=fields.take("space", f.boolean, True),
    )


def _done(value: object, place: Place) -> bool | str:
    return f.string(value, place) if isinstance(value, str) else f.boolean(value, place)


def _event(value: object, place: Place) -> s.ScriptedEvent:
    if isinstance(value, str):
        return s.ScriptedEvent(raw=f.raw_bytes(value, place))
    fields = Fields(value, place)
    names = ("comment", "id", "event", "retry", "data")
    lines = tuple(line for name in names for line in fields.take(name, _lines(name), ()))
    raw = {name: fields.take(name, _verbatim(name), b"") for name in ("text", "base64", "json", "file")}
    repeat = fields.take("repeat", f.whole(0, f.MAX_REPEAT), 1)
    delay = fields.take("delay", f.seconds, None)
    fields.end()
    given = [item for item in raw.values() if item]
    if len(given) + bool(lines) != 1:
        raise place.error(
            "expected either SSE fields (data, event, id, retry, comment) or one of text, base64, json, file"
        )
    return s.ScriptedEvent(lines=lines, raw=given[0] if given else b"", repeat=repeat, delay_s=delay)


def _verbatim(name: str) -> Reader[bytes]:
    return lambda value, place: f.raw_bytes({name: value}, place)


def _lines(name: str) -> Reader[tuple[tuple[bytes, bytes], ...]]:
    """An SSE field's lines: strings are split at LF, other values of `data` are JSON; a comment has no field name."""
    wire = b"" if name == "comment" else name.encode()

    def read(value: object, place: Place) -> tuple[tuple[bytes, bytes], ...]:
        text = f.raw_bytes(value, place) if isinstance(value, str) else f.json_bytes(value, place)
        return tuple((wire, line) for line in text.split(b"\n"))

    return read


def _check(made: s.Scenario, place: Place) -> None:
    """Refuses fields that contradict each other."""
    spelling, faults = made.spelling, made.faults
    if spelling.events is not None and spelling.raw is not None:
        raise place.error("events and raw exclude each other")
    if faults.framing is s.Framing.LENGTH and made.pacing.heartbeats:
        raise place.at("framing").error("length cannot be told ahead with heartbeats; allowed: chunked, close")
    if faults.trailers and faults.framing not in (None, s.Framing.CHUNKED):
        raise place.at("trailers").error("need framing chunked")
