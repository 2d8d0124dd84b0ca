"""OpenAI's model list and model objects (openai-python 3.57.0, types/model.py)."""

import msgspec

OWNER = "simulator"
CREATED = 1_700_000_000


class _Model(msgspec.Struct):
    id: str
    object: str = "model"
    created: int = CREATED
    owned_by: str = OWNER


class _List(msgspec.Struct, kw_only=True):
    object: str = "list"
    data: list[_Model]


def models_json(ids: tuple[str, ...]) -> bytes:
    return msgspec.json.encode(_List(data=[_Model(id_) for id_ in ids]))


def model_json(id_: str) -> bytes:
    return msgspec.json.encode(_Model(id_))
