"""Documents that are changed member by member."""

import json
from typing import Any

import pytest

from headrace.cli.object_document import ObjectDocument
from headrace.model.catalogue import ObjectKind, StoredObject


def document(text: str) -> ObjectDocument:
    return ObjectDocument(StoredObject(ObjectKind.KEY, "k", text))


def said(one: ObjectDocument) -> Any:
    return json.loads(one.stored(ObjectKind.KEY, "k").document)


def test_a_new_one_is_made_of_what_is_put() -> None:
    one = ObjectDocument()
    one.put("owner", "team")
    one.put("limits.concurrent", "5")
    one.put("limits.wait", "5s")
    one.put("models", ["a", "b"])
    one.put("stop", True)
    assert said(one) == {
        "owner": "team", "limits": {"concurrent": "5", "wait": "5s"}, "models": ["a", "b"], "stop": True,
    }  # fmt: skip


def test_what_is_not_touched_stays_as_it_was_written() -> None:
    text = '{"later":{"x":[1,{"y":null}]},"budget":{"amount":0.10,"window":"day"},"big":12345678901234567890.123}'
    one = document(text)
    one.put("owner", "team")
    one.drop("owner")
    assert one.stored(ObjectKind.KEY, "k").document == text


def test_a_group_that_is_empty_goes() -> None:
    one = document('{"limits":{"wait":"5s"},"owner":"team"}')
    one.drop("limits.wait")
    one.drop("limits.concurrent")
    one.drop("budget")
    assert said(one) == {"owner": "team"}


@pytest.mark.parametrize(("path", "value"), [("a.b", "c"), ("a.d", None), ("x", None), ("x.y", None), ("a.b.c", None)])
def test_members(path: str, value: object) -> None:
    assert document('{"a":{"b":"c"}}').member(path) == value


def test_a_group_takes_the_place_of_what_is_none() -> None:
    one = document('{"limits":"x"}')
    one.put("limits.wait", "5s")
    assert said(one) == {"limits": {"wait": "5s"}}


def test_equal_ones_say_the_same_in_any_order() -> None:
    one, other = document('{"a": 1.50, "b": {"c": "x"}}'), document('{"b":{"c":"x"},"a":1.50}')
    assert one == other
    assert one != document('{"a":1.5,"b":{"c":"y"}}')
    assert one != "a"
