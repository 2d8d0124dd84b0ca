from pathlib import Path

import pytest

from headrace.simulator.fields import Place, ScriptError
from headrace.simulator.script import MAX_INLINE, Script, load_yaml

RULES = """
scenarios:
  one: {text: "1"}
  two: {text: "2"}
  star: {}
models:
  exact: one
  "ex*": two
  "exa*": star
paths:
  /a: one
  /a/deep: two
"""


def test_the_built_in_scenarios_are_always_there() -> None:
    names = set(Script.parse("").scenarios)
    assert {"sim-echo", "sim-slow", "sim-tools", "sim-stall", "sim-cut", "sim-error-first", "sim-error-mid"} <= names
    assert {"sim-429", "sim-500", "sim-reasoning", "sim-long"} <= names
    assert names < set(Script.parse(RULES).scenarios)
    assert Script.parse("").default == "sim-echo"


def test_a_model_finds_its_scenario() -> None:
    script = Script.parse(RULES)
    found = {
        model: script.by_model(model).name for model in ("exact", "exactly", "exotic", "two", "sim-slow", "anything")
    }
    assert found == {
        "exact": "one",
        "exactly": "star",
        "exotic": "two",
        "two": "two",
        "sim-slow": "sim-slow",
        "anything": "sim-echo",
    }


def test_a_path_finds_the_longest_prefix_that_ends_at_a_slash() -> None:
    script = Script.parse(RULES)
    found = [script.by_path(path) for path in ("/a/v1/x", "/a/deep/x", "/ab/x", "/a")]
    assert [scenario and scenario.name for scenario in found] == ["one", "two", None, "one"]
    assert Script.parse({"paths": {"/": "sim-500"}}).by_path("/v1/x") is not None


def test_a_scenario_called_default_is_the_default_unless_another_is_named() -> None:
    assert Script.parse("scenarios: {default: {}}").default == "default"
    assert Script.parse("scenarios: {default: {}}\ndefault: sim-slow").default == "sim-slow"


def test_the_header_names_a_scenario_or_holds_one() -> None:
    script = Script.parse(RULES)
    assert script.by_header(" one ").name == "one"
    inline = script.by_header("{text: [A, 北], gap: 0.5}".encode().decode("latin-1"))
    assert (inline.name[:7], inline.content.choices[0].text, inline.pacing.gap_s) == ("inline-", ("A", "北"), 0.5)
    assert script.by_header('{"status": 500}').faults.status == 500
    assert script.by_header(r'{"text": "\ud83c\udf0a"}').content.choices[0].text == ("🌊",)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nobody", "x-simulate: no scenario 'nobody'; there are one, "),
        ("{" + " " * MAX_INLINE + "}", "x-simulate: 8194 characters; at most 8192"),
        ("{text: &a x, reasoning: *a}", "x-simulate: YAML aliases are not allowed here"),
        ("{text: ", "x-simulate: not YAML"),
        ("{" * 2000, "x-simulate: not "),
        ("{raw_file: /etc/passwd}", "x-simulate.raw_file: files can only be named in a script"),
        ("{body: {file: /etc/passwd}}", "x-simulate.body.file: files can only be named in a script"),
        ('{"gap": 1, "gap": 2}', "x-simulate: a field is given twice among gap, gap"),
        ("{gap: 1, gap: 2}", "line 1, column 10: gap is given twice"),
        ("{sequenze: []}", "x-simulate.sequenze: unknown field; did you mean sequence?"),
    ],
)
def test_a_bad_header_is_refused(value: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        Script.parse(RULES).by_header(value)
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("scenario: {}", "scenario: unknown field; did you mean scenarios?"),
        ("scenarios: []", "scenarios: expected a mapping of names to scenarios"),
        ("scenarios: {a: {gap: x}}", "scenarios.a.gap: expected seconds"),
        ("models: {m: nobody}", "models.m: no scenario 'nobody'"),
        ("paths: {/p: nobody}", "paths./p: no scenario 'nobody'"),
        ("default: nobody", "default: no scenario 'nobody'"),
        ("record: -1", "record: expected a whole number"),
        ("- a", "script: expected a mapping of fields"),
        ("a: b: c", "script: not YAML"),
        ("scenarios:\n  a: {}\n  a: {}", "line 3, column 3: a is given twice"),
    ],
)
def test_a_bad_script_is_refused(text: str, message: str) -> None:
    with pytest.raises(ScriptError) as caught:
        Script.parse(text)
    assert str(caught.value).startswith(message)


def test_aliases_and_merges_are_fine_in_a_script() -> None:
    made = Script.parse("scenarios:\n  a: &a {gap: 1}\n  b: {<<: *a, status: 500}\n  c: {<<: *a, gap: 2}")
    assert (made.scenarios["b"].pacing.gap_s, made.scenarios["b"].faults.status) == (1.0, 500)
    assert made.scenarios["c"].pacing.gap_s == 2.0


def test_a_file_is_read_with_its_folder(tmp_path: Path) -> None:
    (tmp_path / "recorded.sse").write_bytes(b"data: 1\n\n")
    file = tmp_path / "script.yaml"
    file.write_text("scenarios: {a: {raw_file: recorded.sse}}", "utf-8")
    assert Script.parse(file).scenarios["a"].spelling.raw == b"data: 1\n\n"
    assert Script.parse(str(file)).scenarios["a"].spelling.raw == b"data: 1\n\n"
    with pytest.raises(ScriptError, match="cannot be read"):
        Script.parse(tmp_path / "absent.yaml")


def test_models_listed_are_the_exact_ones_and_the_scenarios_or_as_told() -> None:
    ids = Script.parse(RULES).model_ids
    assert ids[0] == "exact"
    assert "two" in ids
    assert "ex*" not in ids
    assert Script.parse("listed: [a, b]").model_ids == ("a", "b")
    assert Script.parse("listed: []").model_ids == ()


def test_other_settings() -> None:
    made = Script.parse("keys: [sk-a, sk-b]\nrecord: 5\nrefuse_connections: 2")
    assert (made.keys, made.record, made.refuse_connections) == (frozenset({"sk-a", "sk-b"}), 5, 2)


def test_yaml_errors_have_a_place() -> None:
    with pytest.raises(ScriptError, match=r"x: not YAML: .*"):
        load_yaml("[", Place("x"))


# ------------------------------------------------------------------------------------------------- reference page

PAGE = Path(__file__).resolve().parents[2] / "docs" / "reference" / "simulator.md"


def allowed_in(fields: str, at: str) -> set[str]:
    """The field names that an error about an unknown one lists."""
    with pytest.raises(ScriptError) as caught:
        Script.parse(fields)
    path, _, names = str(caught.value).partition("allowed here: ")
    assert path.startswith(f"{at}: ")
    return set(names.split(", "))


@pytest.mark.parametrize(
    ("fields", "at"),
    [
        ("zzzz: 1", "zzzz"),
        ("scenarios: {a: {zzzz: 1}}", "scenarios.a.zzzz"),
        ("scenarios: {a: {choices: [{zzzz: 1}]}}", "scenarios.a.choices.0.zzzz"),
        ("scenarios: {a: {chunks: {zzzz: 1}}}", "scenarios.a.chunks.zzzz"),
        ("scenarios: {a: {tool_calls: [{zzzz: 1}]}}", "scenarios.a.tool_calls.0.zzzz"),
        ("scenarios: {a: {usage: {zzzz: 1}}}", "scenarios.a.usage.zzzz"),
        ("scenarios: {a: {events: [{zzzz: 1}]}}", "scenarios.a.events.0.zzzz"),
        ("scenarios: {a: {writes: {zzzz: 1}}}", "scenarios.a.writes.zzzz"),
        ("scenarios: {a: {heartbeats: {zzzz: 1}}}", "scenarios.a.heartbeats.zzzz"),
        ("scenarios: {a: {error: {zzzz: 1}}}", "scenarios.a.error.zzzz"),
        ("scenarios: {a: {cut: {zzzz: 1}}}", "scenarios.a.cut.zzzz"),
        ("scenarios: {a: {refuse: {zzzz: 1}}}", "scenarios.a.refuse.zzzz"),
        ("scenarios: {a: {preamble: {zzzz: 1}}}", "scenarios.a.preamble.zzzz"),
    ],
)
def test_every_field_is_in_the_reference(fields: str, at: str) -> None:
    page = PAGE.read_text("utf-8")
    missing = {name for name in allowed_in(fields, at) if f"`{name}`" not in page}
    assert not missing, f"docs/reference/simulator.md lacks {sorted(missing)}"


def test_every_built_in_scenario_is_in_the_reference() -> None:
    page = PAGE.read_text("utf-8")
    missing = {name for name in Script.parse("").scenarios if f"`{name}`" not in page}
    assert not missing, f"docs/reference/simulator.md lacks {sorted(missing)}"


def test_the_examples_of_the_reference_can_be_played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "recorded.sse").write_bytes(b"data: 1\n\n")
    monkeypatch.chdir(tmp_path)
    examples = PAGE.read_text("utf-8").split("```yaml\n")[1:]
    assert examples
    for example in examples:
        Script.parse(example.partition("```")[0])
