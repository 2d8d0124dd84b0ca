"""A script: named scenarios, and the rules that choose one for a request.

Order: `x-simulate` header, path prefix (longest first), exact model, scenario of the model's name, model pattern
(longest first), `default`. The built-in scenarios (default.yaml) are always there and can be redefined.
"""

import contextlib
import fnmatch
import hashlib
import json
from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

import yaml

from headrace.simulator import fields as f
from headrace.simulator.fields import Fields, Place, ScriptError
from headrace.simulator.reading import scenario_from_fields
from headrace.simulator.scenario import Scenario

HEADER = "x-simulate"
MAX_INLINE = 8192
_WILD = frozenset("*?[")


@dataclass(frozen=True, slots=True)
class Script:
    """Scenarios by name; `models` and `paths` map patterns and prefixes to names; no `keys`: any credential will do."""

    scenarios: Mapping[str, Scenario] = field(default_factory=dict)
    models: Mapping[str, str] = field(default_factory=dict)
    paths: Mapping[str, str] = field(default_factory=dict)
    default: str = "sim-echo"
    listed: tuple[str, ...] | None = None
    keys: frozenset[str] = frozenset()
    record: int = 1000
    refuse_connections: int = 0

    @classmethod
    def parse(cls, source: str | Path | Mapping[str, object]) -> "Script":
        """From YAML text, a mapping, or a file: a Path, or one line ending in .yaml or .yml. Raises ScriptError."""
        if isinstance(source, Mapping):
            return _script_from(source, Path.cwd())
        if isinstance(source, str) and "\n" not in source and source.endswith((".yaml", ".yml")):
            source = Path(source)
        if isinstance(source, Path):
            try:
                text = source.read_text("utf-8")
            except (OSError, UnicodeDecodeError) as error:
                raise ScriptError(f"{source}: cannot be read: {error}") from None
            return _script_from(load_yaml(text, Place()), source.parent)
        return _script_from(load_yaml(source, Place()), Path.cwd())

    def with_scenario(self, scenario: Scenario) -> "Script":
        return replace(self, scenarios={**self.scenarios, scenario.name: scenario})

    def by_path(self, path: str) -> Scenario | None:
        """The scenario of the longest prefix in `paths`; a prefix ends at a slash of the path, or with it."""
        under = [prefix for prefix in self.paths if (path + "/").startswith(prefix.rstrip("/") + "/")]
        return self.scenarios[self.paths[max(under, key=len)]] if under else None

    def by_model(self, model: str) -> Scenario:
        if model in self.models:
            return self.scenarios[self.models[model]]
        if model in self.scenarios:
            return self.scenarios[model]
        matching = [pattern for pattern in self.models if fnmatch.fnmatchcase(model, pattern)]
        return self.scenarios[self.models[max(matching, key=len)] if matching else self.default]

    def by_header(self, value: str) -> Scenario:
        """`x-simulate`: a name, or `{…}`: a scenario's fields as YAML or JSON (files refused). Raises ScriptError."""
        # Header values are read as latin-1; clients that send UTF-8 mean UTF-8.
        with contextlib.suppress(UnicodeError):
            value = value.encode("latin-1").decode()
        value = value.strip()
        if not value.startswith("{"):
            if value in self.scenarios:
                return self.scenarios[value]
            raise ScriptError(f"{HEADER}: no scenario {value!r}; there are {', '.join(sorted(self.scenarios))}")
        if len(value) > MAX_INLINE:
            raise ScriptError(f"{HEADER}: {len(value)} characters; at most {MAX_INLINE}")
        place = Place(HEADER)
        # Its sequence is counted by its text, which a client's retries repeat.
        name = f"inline-{hashlib.sha256(value.encode()).hexdigest()[:8]}"
        return scenario_from_fields(_inline(value, place), place, name)

    @property
    def model_ids(self) -> tuple[str, ...]:
        """What GET …/models lists."""
        if self.listed is not None:
            return self.listed
        exact = [model for model in self.models if not _WILD & set(model)]
        return tuple(dict.fromkeys([*exact, *self.scenarios]))


def _script_from(value: object, folder: Path) -> Script:
    builtin = _read(
        load_yaml((files("headrace.simulator") / "default.yaml").read_text("utf-8"), Place()), folder, Script()
    )
    return builtin if value is None else _read(value, folder, builtin)


def _read(value: object, folder: Path, under: Script) -> Script:
    place = Place(folder=folder)
    fields = Fields(value, place)
    own: dict[str, Scenario] = fields.take("scenarios", _scenarios, {})
    scenarios = {**under.scenarios, **own}
    usual = "default" if "default" in own else under.default
    script = Script(
        scenarios=scenarios,
        models=fields.take("models", f.mapping_of(f.string), under.models),
        paths=fields.take("paths", f.mapping_of(f.string), under.paths),
        default=fields.take("default", f.string, usual),
        listed=fields.take("listed", f.list_of(f.string), under.listed),
        keys=frozenset(fields.take("keys", f.list_of(f.string), ())),
        record=fields.take("record", f.whole(0, 1_000_000), under.record),
        refuse_connections=fields.take("refuse_connections", f.whole(0, 10**9), 0),
    )
    fields.end()
    names = {**{("models", key): name for key, name in script.models.items()}, ("default", ""): script.default}
    names |= {("paths", key): name for key, name in script.paths.items()}
    for (where, key), name in names.items():
        if name not in scenarios:
            at = place.at(where).at(key) if key else place.at(where)
            raise at.error(f"no scenario {name!r}; there are {', '.join(sorted(scenarios))}")
    return script


def _inline(text: str, place: Place) -> object:
    """JSON, which is read as such since YAML knows no surrogate pairs and is slower; else YAML."""
    try:
        return json.loads(text, object_pairs_hook=_without_duplicates)
    except (json.JSONDecodeError, RecursionError):
        return load_yaml(text, place, aliases=False)


def _without_duplicates(pairs: list[tuple[str, object]]) -> dict[str, object]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ScriptError(f"{HEADER}: a field is given twice among {', '.join(name for name, _ in pairs)}")
    return made


def _scenarios(value: object, place: Place) -> dict[str, Scenario]:
    if not isinstance(value, Mapping):
        raise place.error("expected a mapping of names to scenarios")
    return {str(name): scenario_from_fields(item or {}, place.at(name), str(name)) for name, item in value.items()}


class _StrictLoader(yaml.SafeLoader):
    """Safe YAML without duplicate keys."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Hashable, Any]:
        seen = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in seen:
                    mark = key.start_mark
                    raise ScriptError(f"line {mark.line + 1}, column {mark.column + 1}: {key.value} is given twice")
                seen.add(key.value)
        return super().construct_mapping(node, deep)


class _PlainLoader(_StrictLoader):
    """Without aliases too: nothing that a client sends may grow when it is read."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise ScriptError(f"{HEADER}: YAML aliases are not allowed here")
        return super().compose_node(parent, index)


def load_yaml(text: str, place: Place, *, aliases: bool = True) -> object:
    """The document; raises ScriptError with line and column."""
    try:
        return yaml.load(text, Loader=_StrictLoader if aliases else _PlainLoader)  # noqa: S506  (both are SafeLoaders)
    except yaml.YAMLError as error:
        raise place.error(f"not YAML: {error}") from None
    except (RecursionError, ValueError) as error:
        if isinstance(error, ScriptError):
            raise
        raise place.error(f"not readable: {error}") from None
