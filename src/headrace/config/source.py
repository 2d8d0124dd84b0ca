"""Reads YAML into plain text values that know their lines.

* A scalar stays the text that it was written as; the option that takes it decides how to read it. So `1.10` is no
  number, `no` no boolean and `2027-01-01` no date before somebody asks for one. Only a plain `null`, `~` or nothing
  at all is None.
* Keys may not repeat. Anchors, aliases and `<<` work; an aliased value keeps the lines of its anchor. Tags do not.
* The reader is bounded: bytes, depth, and the number of values after the aliases are followed.
"""

import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias

import yaml

from headrace.config.errors import Fault

MAX_BYTES = 8 << 20
MAX_DEPTH = 32
MAX_VALUES = 500_000

# libyaml reads a file of 10,000 keys in 0.2 s, the parser in Python in 4 s. Both give the same events.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

_NULLS = frozenset({"", "~", "null", "Null", "NULL"})
_STR_TAG = "tag:yaml.org,2002:str"
_SHOWN = re.compile(r"[A-Za-z0-9*][A-Za-z0-9._@+:/*-]{0,63}")

Value: TypeAlias = "Block | Items | str | None"
Location: TypeAlias = Sequence[str | int]


class Block(dict[str, Value]):
    """A mapping: `line` is where it begins, `lines` where each key stands (if it came out of a file), `size` the values
    in it, all levels."""

    def __init__(self, line: int = 1) -> None:
        super().__init__()
        self.line = line
        self.lines: dict[str, int] = {}
        self.size = 1


class Items(list[Value]):
    """A list: `line` is where it begins, `lines` where each item does, `size` the values in it, all levels."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line
        self.lines: list[int] = []
        self.size = 1


def read(text: str) -> tuple[Block, tuple[Fault, ...]]:
    """The file's mapping, as far as it could be read, and what is wrong with its form."""
    tree = _Tree(text)
    try:
        root = tree.root()
    except _UnreadableError as error:
        tree.faults.append(error.fault)
        root = Block()
    except yaml.MarkedYAMLError as error:
        tree.faults.append(_syntax_fault(error))
        root = Block()
    except yaml.reader.ReaderError as error:
        before = text.encode("utf-8", "surrogatepass")[: error.position]
        tree.faults.append(Fault(before.count(b"\n") + 1, "", f"not valid YAML: {error.reason}"))
        root = Block()
    return root, tuple(tree.faults)


def place(root: Block, location: Location) -> tuple[int, str]:
    """The line and the dotted path of a location. Parts that the file does not have take the line of their parent.

    An index below a text or a mapping is left out: that stands for a list of one.
    """
    line, path = root.line, ""
    here: Value = root
    for part in location:
        below = here
        line, here = _step(below, part, line)
        if isinstance(part, int):
            path += "" if isinstance(below, str | Block) else f"[{part}]"
        else:
            shown = part if _SHOWN.fullmatch(part) else "?"
            path += f".{shown}" if path else shown
    return line, path


def value_at(root: Block, location: Location) -> Value:
    """What the file has at the location; None where it has nothing."""
    here: Value = root
    for part in location:
        _, here = _step(here, part, 0)
    return here


def has(root: Block, location: Location) -> bool:
    """Whether the file has something at the location."""
    here: Value = root
    for part in location:
        if not _holds(here, part):
            return False
        _, here = _step(here, part, 0)
    return True


def fault(root: Block, location: Location, message: str) -> Fault:
    """A fault at a location."""
    line, path = place(root, location)
    return Fault(line, path, message)


def _holds(here: Value, part: str | int) -> bool:
    if isinstance(here, Items):
        return isinstance(part, int) and part < len(here)
    return isinstance(here, Block) and part in here


def _step(here: Value, part: str | int, line: int) -> tuple[int, Value]:
    if isinstance(here, Block) and isinstance(part, str) and part in here:
        return here.lines.get(part, line), here[part]
    if isinstance(here, Items) and isinstance(part, int) and part < len(here):
        return here.lines[part], here[part]
    if isinstance(here, Block) and isinstance(part, int):
        return line, here
    return line, None


def _syntax_fault(error: yaml.MarkedYAMLError) -> Fault:
    mark = error.problem_mark or error.context_mark
    # The mark's own text quotes the line, which may hold a secret.
    message = f"not valid YAML: {error.problem or error.context}"
    if "alias" in (error.context or ""):
        message += "; a name that begins with * needs quotes"
    return Fault(mark.line + 1 if mark else None, "", message)


class _UnreadableError(Exception):
    """Reading cannot go on."""

    def __init__(self, line: int, message: str) -> None:
        super().__init__(message)
        self.fault = Fault(line, "", message)


class _Tree:
    """Builds the values of one document from the parser's events."""

    def __init__(self, text: str) -> None:
        self.faults: list[Fault] = []
        self._events: Iterator[yaml.Event] = yaml.parse(text, Loader=_LOADER)
        self._anchors: dict[str, Value] = {}
        self._values = 0

    def root(self) -> Block:
        next(self._events)
        if isinstance(next(self._events), yaml.StreamEndEvent):
            return Block()
        start = next(self._events)
        root = self._value(start, 0)
        next(self._events)
        after = next(self._events)
        if not isinstance(after, yaml.StreamEndEvent):
            raise _UnreadableError(_line(after), "a second document begins here; a file holds one")
        if root is None:
            return Block()
        if not isinstance(root, Block):
            raise _UnreadableError(_line(start), "the file must be a mapping of options")
        return root

    def _value(self, event: yaml.Event, depth: int) -> Value:
        if isinstance(event, yaml.AliasEvent):
            return self._aliased(event)
        self._count(event, 1)
        assert isinstance(event, yaml.ScalarEvent | yaml.CollectionStartEvent)
        self._refuse_tag(event)
        value: Value
        if isinstance(event, yaml.ScalarEvent):
            plain = event.implicit[0] and event.tag is None
            value = None if plain and event.value in _NULLS else event.value
        elif depth == MAX_DEPTH:
            raise _UnreadableError(_line(event), f"nested deeper than {MAX_DEPTH} levels")
        else:
            read = self._items if isinstance(event, yaml.SequenceStartEvent) else self._block
            value = read(event, depth)
        if event.anchor:
            self._anchors[event.anchor] = value
        return value

    def _aliased(self, event: yaml.AliasEvent) -> Value:
        if event.anchor not in self._anchors:
            message = "no anchor of this name stands before it; a name that begins with * needs quotes"
            raise _UnreadableError(_line(event), message)
        value = self._anchors[event.anchor]
        self._count(event, value.size if isinstance(value, Block | Items) else 1)
        return value

    def _items(self, start: yaml.Event, depth: int) -> Items:
        items = Items(_line(start))
        before = self._values
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            items.append(self._value(event, depth + 1))
            items.lines.append(_line(event))
        items.size = self._values - before + 1
        return items

    def _block(self, start: yaml.Event, depth: int) -> Block:
        block = Block(_line(start))
        merged: list[Block] = []
        before = self._values
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._value(event, depth + 1)
            value = self._value(next(self._events), depth + 1)
            if isinstance(key, Block | Items):
                raise _UnreadableError(_line(event), "a key must be text")
            if key == "<<":
                merged += self._merged(event, value)
            elif (name := key or "") in block:
                self._fault(_line(event), name, f"stands twice; the first is in line {block.lines[name]}")
            else:
                block[name] = value
                block.lines[name] = _line(event)
        for other in merged:
            for name in [name for name in other if name not in block]:
                block[name] = other[name]
                block.lines[name] = other.lines[name]
        block.size = self._values - before + 1
        return block

    def _merged(self, event: yaml.Event, value: Value) -> list[Block]:
        found = [other for other in (value if isinstance(value, Items) else [value]) if isinstance(other, Block)]
        if not found or (isinstance(value, Items) and len(found) != len(value)):
            self._fault(_line(event), "<<", "takes a mapping, or a list of them")
        return found

    def _fault(self, line: int, name: str, message: str) -> None:
        self.faults.append(Fault(line, name if _SHOWN.fullmatch(name) or name == "<<" else "?", message))

    def _refuse_tag(self, event: yaml.ScalarEvent | yaml.CollectionStartEvent) -> None:
        if event.tag not in {None, "!", _STR_TAG} or (event.tag and not isinstance(event, yaml.ScalarEvent)):
            raise _UnreadableError(_line(event), "tags are not supported here; quote a text that begins with !")

    def _count(self, event: yaml.Event, values: int) -> None:
        self._values += values
        if self._values > MAX_VALUES:
            raise _UnreadableError(_line(event), f"more than {MAX_VALUES} values, aliases followed")


def _line(event: yaml.Event) -> int:
    return int(event.start_mark.line) + 1 if event.start_mark else 1
