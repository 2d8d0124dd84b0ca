"""A price table as CSV: a row for each model, moment and tier, a column for each kind of price.

    model,from,tier,input,cached_input,cache_write_5m,output
    gpt-5.6-sol,,,1.25,0.125,,10
    gpt-5.6-sol,,flex,0.625,0.0625,,5

An empty cell is no price. A row without `tier`, or with a standard one, holds what counts outside the tiers.
"""

import csv
import io
from collections.abc import Iterator, Sequence

from headrace.config.errors import Fault
from headrace.config.forms import closest
from headrace.config.options.spending import RateOptions
from headrace.config.source import Block, Items
from headrace.model.price import STANDARD_TIERS, Call, Lifetime

MODEL, FROM, TIER = "model", "from", "tier"


def _rate_columns() -> Iterator[tuple[str, tuple[str, ...]]]:
    """Columns, with the options that they fill."""
    members = {"cache_write": [one.value for one in Lifetime], "calls": [one.value for one in Call]}
    for name in RateOptions.model_fields:
        inner = members.get(name)
        yield from ((f"{name}_{one}", (name, one)) for one in inner) if inner else [(name, (name,))]


RATE_COLUMNS = dict(_rate_columns())
COLUMNS = (MODEL, FROM, TIER, *RATE_COLUMNS)


def models_from_csv(text: str) -> tuple[Block, list[Fault]]:
    """By model its prices as the configuration file would have them, and what is wrong with the table's form."""
    faults: list[Fault] = []
    rows = _rows(text, faults)
    line, header = next(rows, (1, []))
    columns = [name.strip().lower() for name in header]
    faults += _header_faults(line, columns)
    table = _Table(faults)
    for line, cells in () if faults else rows:
        if len(cells) > len(columns):
            faults.append(Fault(line, "", f"has {len(cells)} cells, the header {len(columns)}"))
            continue
        row = {name: text for name, cell in zip(columns, cells, strict=False) if (text := cell.strip())}
        if MODEL in row:
            table.add(line, row)
        elif row:
            faults.append(Fault(line, f"column {MODEL}", "is required"))
    return table.models, faults


def column_of(path: str) -> str:
    """Which column a path inside a model's prices came from: `[0].tiers.flex.cache_write.5m` → `column cache_write_5m`;
    nothing for a path of none."""
    *_, group, last = ("", *path.split("."))
    column = TIER if group == "tiers" else f"{group}_{last}" if f"{group}_{last}" in COLUMNS else last
    return f"column {column}" if column in COLUMNS else ""


def _rows(text: str, faults: list[Fault]) -> Iterator[tuple[int, list[str]]]:
    """Each row with the line that it begins in; what is no CSV is a fault, and the last."""
    reader = csv.reader(io.StringIO(text, newline=""))
    line = 1
    try:
        for cells in reader:
            yield line, cells
            line = reader.line_num + 1
    except csv.Error as error:
        faults.append(Fault(line, "", f"is not CSV: {error}"))


def _header_faults(line: int, columns: Sequence[str]) -> Iterator[Fault]:
    if MODEL not in columns:
        yield Fault(line, "", f"the first row names the columns, between commas; one is {MODEL}")
        return
    for index, name in enumerate(columns):
        if name not in COLUMNS:
            allowed = ", ".join(COLUMNS)
            yield Fault(line, "", f"column {index + 1} is unknown{closest(name, COLUMNS)}; there are: {allowed}")
        elif name in columns[:index]:
            yield Fault(line, f"column {name}", "stands twice")


class _Table:
    """Collects rows: by model a list of prices, one for each moment that a row names."""

    def __init__(self, faults: list[Fault]) -> None:
        self.models = Block()
        self._faults = faults
        self._prices: dict[tuple[str, str], Block] = {}
        self._first: dict[tuple[str, str, str], int] = {}

    def add(self, line: int, row: dict[str, str]) -> None:
        name, since, tier = row[MODEL], row.get(FROM, ""), row.get(TIER, "").lower()
        tier = "" if tier in STANDARD_TIERS else tier
        if (first := self._first.setdefault((name, since, tier), line)) != line:
            self._faults.append(Fault(line, "", f"is for the same model, moment and tier as line {first}"))
            return
        price = self._price(line, name, since)
        if tier:
            tiers = _inner(price, "tiers", line)
            price = _inner(tiers, tier, line)
        for column, path in RATE_COLUMNS.items():
            if column in row:
                group = price if len(path) == 1 else _inner(price, path[0], line)
                group[path[-1]] = row[column]
                group.lines[path[-1]] = line

    def _price(self, line: int, name: str, since: str) -> Block:
        if (price := self._prices.get((name, since))) is not None:
            return price
        prices = self.models.setdefault(name, Items(line))
        assert isinstance(prices, Items)
        price = self._prices[name, since] = Block(line)
        if since:
            price[FROM] = since
            price.lines[FROM] = line
        prices.append(price)
        prices.lines.append(line)
        self.models.lines.setdefault(name, line)
        return price


def _inner(block: Block, name: str, line: int) -> Block:
    """The group of that name in the block, made where it is not there."""
    inner = block.setdefault(name, Block(line))
    assert isinstance(inner, Block)
    block.lines.setdefault(name, line)
    return inner
