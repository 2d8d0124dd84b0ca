import json

from headrace.model.wire import Dialect, WireProtocol
from headrace.protocols.model_list import ModelLine, list_form

LINES = [ModelLine("a", ("anthropic_messages",), 100), ModelLine("b", ())]


def test_openais_list() -> None:
    form = list_form(Dialect.OPENAI)
    made = json.loads(form.many(LINES))
    assert made["object"] == "list"
    assert [(one["id"], one["object"], one["accepted_request_formats"]) for one in made["data"]] == [
        ("a", "model", ["anthropic_messages"]),
        ("b", "model", []),
    ]
    assert json.loads(form.one(LINES[0])) == made["data"][0]
    assert WireProtocol.MESSAGES not in form.protocols


def test_anthropics_list() -> None:
    form = list_form(Dialect.ANTHROPIC)
    made = json.loads(form.many(LINES))
    assert (made["first_id"], made["last_id"], made["has_more"]) == ("a", "b", False)
    assert (
        made["data"][0]
        == json.loads(form.one(LINES[0]))
        == {
            "type": "model",
            "id": "a",
            "display_name": "a",
            "created_at": "1970-01-01T00:00:00Z",
            "lifecycle": "active",
            "max_input_tokens": None,
            "max_tokens": 100,
            "accepted_request_formats": ["anthropic_messages"],
        }
    )
    assert json.loads(form.many([])) == {"data": [], "first_id": None, "last_id": None, "has_more": False}
    assert form.protocols == {WireProtocol.MESSAGES}


def test_googles_list() -> None:
    form = list_form(Dialect.GEMINI)
    made = json.loads(form.many(LINES))
    assert list(made) == ["models"]
    assert [(one["name"], one.get("outputTokenLimit")) for one in made["models"]] == [
        ("models/a", 100),
        ("models/b", None),
    ]
    assert "streamGenerateContent" in made["models"][0]["supportedGenerationMethods"]
    assert json.loads(form.one(LINES[0])) == made["models"][0]
    assert form.protocols == {WireProtocol.GEMINI}
