"""Reads the file of a price table into objects for the database: each gives the model of its name its prices.

    .csv                    rows and columns (`price_csv`)
    YAML or JSON            {model: price}, each as the option `price` of a model is
    JSON of per-token costs the form that a community keeps its list in (`price_community`)

Figures are decimal text from the file to the object; nothing binary is on the way. An error of one's own table is an
error, with file, line and column; out of a community's list a model that cannot be taken is left out with a warning.
"""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from headrace.config import price_community
from headrace.config.checks import check_prices
from headrace.config.draft import read_text
from headrace.config.errors import ConfigError, Fault, sentence
from headrace.config.forms import Reading
from headrace.config.options.objects import StoredPriceOptions
from headrace.config.places import read_model_name
from headrace.config.price_csv import column_of, models_from_csv
from headrace.config.sections import SectionReader
from headrace.config.source import Block, fault, read
from headrace.model.catalogue import ObjectKind, StoredObject

SHOWN_MODELS = 3
_PRICE = "price"


@dataclass(frozen=True, slots=True)
class PriceTable:
    """What a file holds, in its order. Warnings are whole sentences with file and line, about what was left out."""

    objects: tuple[StoredObject, ...]
    warnings: tuple[str, ...]


def read_price_table(path: Path) -> PriceTable:
    """Read the file. Raises ConfigError with all that is wrong."""
    text = read_text(path)
    if path.suffix.lower() == ".csv":
        models, faults = models_from_csv(text)
        return _own(path, models, faults, lambda name, path: column_of(path) or name)
    root, found = read(text)
    if not found and price_community.is_community(root):
        return _community(path, root)
    return _own(path, root, found, lambda name, path: f"{name}{path}")


def _own(path: Path, models: Block, faults: Sequence[Fault], place: Callable[[str, str], str]) -> PriceTable:
    found = [*faults, *(one for name in models for one in _faults(models, name, place))]
    if not found and not models:
        found = [Fault(None, "", "holds no prices")]
    if found:
        raise ConfigError(str(path), tuple(found))
    return PriceTable(tuple(_object(name, models[name]) for name in models), ())


def _community(path: Path, root: Block) -> PriceTable:
    reading, left_out = price_community.Reading(), dict[str, list[str]]()
    models = Block()
    for name, entry in root.items():
        if not isinstance(entry, Block):
            continue
        try:
            models[name] = reading.price(name, entry)
        except price_community.LeftOutError as error:
            left_out.setdefault(str(error), []).append(name)
            continue
        for one in _faults(models, name, lambda name, path: path.removeprefix(".")):
            models.pop(name, None)
            left_out.setdefault(f"{one.path}: {one.message}" if one.path else one.message, []).append(name)
    about = [(f"left out: {_some(names)}: {reason}", names) for reason, names in left_out.items()]
    about += [(f"not taken of {_some(names)}: {field}", names) for field, names in reading.ignored.items()]
    warnings = [sentence(str(path), Fault(root.lines.get(names[0]), "", text)) for text, names in about]
    return PriceTable(tuple(_object(name, price) for name, price in models.items()), tuple(warnings))


def _faults(models: Block, name: str, place: Callable[[str, str], str]) -> Iterator[Fault]:
    """What is wrong with one model's prices; `place` makes the fault's path of the name and the path inside."""
    line = models.lines.get(name, 1)
    try:
        read_model_name(name)
    except ValueError as error:
        yield Fault(line, "", f"the model's name {error}")
        return
    root = Block(line)
    root[_PRICE] = models[name]
    root.lines[_PRICE] = line
    reader = SectionReader(root, Reading(Path(), {}, references=False))
    options = reader.section(StoredPriceOptions, ())
    found = reader.faults
    if options is not None:
        found = [fault(root, where, what) for where, what in check_prices((_PRICE,), options.price)]
    yield from (Fault(one.line, place(name, one.path.removeprefix(_PRICE)), one.message) for one in found)


def _object(name: str, price: object) -> StoredObject:
    return StoredObject(ObjectKind.PRICE, name, json.dumps({_PRICE: price}))


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - SHOWN_MODELS} more" if len(names) > SHOWN_MODELS else ""
    return f"{', '.join(names[:SHOWN_MODELS])}{more}"
