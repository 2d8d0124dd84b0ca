import json

import pytest

from headrace.model.price import Call, Dimension, Lifetime, LongContext, Price, Rates
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
    assert [one.get("max_output_tokens") for one in made["data"]] == [100, None]
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


PRICE = Price(
    Rates(
        input=1_250_000_000,
        cache_write=((Lifetime.HOUR, 1), (Lifetime.FIVE_MINUTES, 0)),
        per_call=10**9,
        calls=((Call.WEB_SEARCH, 10_000_000),),
    ),
    (("flex", Rates(input=625_000_000)),),
    LongContext(200_000, ((Dimension.INPUT, 2 * 10**9),)),
)


@pytest.mark.parametrize("dialect", [Dialect.OPENAI, Dialect.ANTHROPIC, Dialect.GEMINI])
def test_a_known_price_is_told_in_exact_decimals(dialect: Dialect) -> None:
    form = list_form(dialect)
    assert json.loads(form.one(ModelLine("a", (), price=PRICE)))["pricing"] == {
        "input": "1.25",
        "cache_write": {"1h": "0.000000001", "5m": "0"},
        "per_call": "1",
        "calls": {"web_search": "0.01"},
        "tiers": {"flex": {"input": "0.625"}},
        "long_context": {"above": 200_000, "factors": {"input": "2"}},
    }
    assert json.loads(form.one(ModelLine("a", (), price=Price(Rates(input=0)))))["pricing"] == {"input": "0"}
    assert "pricing" not in json.loads(form.one(ModelLine("a", ())))
