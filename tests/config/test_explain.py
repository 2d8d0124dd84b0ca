"""Every option is explained, and the explanation is true."""

import pytest

from headrace.config.draft import load
from headrace.config.explain import GROUPS, Line, explain, lines
from headrace.config.options.file import FileOptions
from headrace.config.options.group import is_group
from headrace.config.options.settings import StreamOptions
from headrace.model.settings import StreamSettings
from tests.config.conftest import Write

LINES = [line for group in GROUPS for line in lines(group)]


def test_every_option_of_every_group_is_there() -> None:
    options = [field for group in GROUPS for field in group.options.model_fields.values() if not is_group(field)]
    assert len(options) == len(LINES)
    assert {group.title for group in GROUPS} >= FileOptions.model_fields.keys()
    paths = [line.path for line in LINES]
    assert len(set(paths)) == len(paths)
    assert "channels.NAME.credentials[].secret" in paths


@pytest.mark.parametrize("line", LINES, ids=lambda line: str(line.path))
def test_an_option_has_a_type_a_default_and_one_sentence(line: Line) -> None:
    assert line.form
    assert line.default
    assert line.doc.endswith(".")
    assert "\n" not in line.doc + line.form + line.default
    assert "|" not in line.doc + line.form + line.default


def test_shown_defaults_read_back_as_the_defaults(write: Write) -> None:
    text = ""
    for group in [group for group in GROUPS if group.title in {"server", "state", "stream"}]:
        text += f"{group.prefix}:\n"
        text += "".join(f"  {line.name}: {line.default}\n" for line in lines(group) if line.is_value)
    assert load(write(text), {}).settings == load(write(""), {}).settings


def test_options_of_stream_are_those_of_the_worker() -> None:
    assert set(StreamOptions.model_fields) == set(StreamSettings.__dataclass_fields__)


def test_what_a_model_or_key_shares_with_stream_says_so() -> None:
    shown = {line.path: line.default for line in LINES}
    assert shown["models.NAME.stall"] == "stream.stall"
    assert shown["keys[].keepalive"] == "the model's"
    assert shown["stream.early_open"] == "10s"
    assert shown["channels.NAME.base_url"] == "required"
    assert shown["channels.NAME.headers"] == "none"
    assert shown["keys[].models"] == "*"


def test_the_text_holds_every_option() -> None:
    text = explain()
    for line in LINES:
        assert f"\n{line.path}: {line.form}; " in text
        assert line.doc in text


def test_what_has_no_effect_yet_is_explained() -> None:
    text = explain()
    by_title = {group.title: group for group in GROUPS}
    assert {by_title[one].effect for one in ("TLS", "keys", "budget of a key", "price of a model")} == {""}
    for effect in [group.effect for group in GROUPS] + [line.effect for line in LINES]:
        assert effect in text
    idle = {line.path for line in LINES if line.effect}
    assert idle >= {"server.admin", "models.NAME.websocket_bridge", "channels.NAME.bind_ttl"}
    assert not idle & {"keys[].ips", "server.workers", "state.database"}
