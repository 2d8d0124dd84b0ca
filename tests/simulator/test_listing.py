import json

from headrace.simulator.listing import model_json, models_json


def test_a_list_holds_model_objects() -> None:
    made = json.loads(models_json(("a", "b/c")))
    assert made["object"] == "list"
    assert [model["id"] for model in made["data"]] == ["a", "b/c"]
    assert made["data"][0] == json.loads(model_json("a"))
    assert list(made["data"][0]) == ["id", "object", "created", "owned_by"]
