import json
import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.model.wire import Asked
from headrace.sse.array import ArrayFramer, framing
from headrace.sse.framing import Framer

SPACES = st.sampled_from(["", " ", "\r\n", "\n\t "])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(alphabet='"\\{}[],: x北\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(alphabet='"\\}]x'), inner, max_size=3),
    max_leaves=8,
)
ELEMENTS = st.lists(st.dictionaries(st.text(alphabet='"\\{[k'), VALUES, max_size=3), max_size=4)


def pieces(stream: bytes, cuts: list[int]) -> list[bytes]:
    framer = ArrayFramer()
    bounds = [0, *sorted(cuts), len(stream)]
    found = [piece for start, end in pairwise(bounds) if start < end for piece in framer.feed(stream[start:end])]
    return [*found, framer.rest()] if framer.held else found


def elements(found: list[bytes]) -> list[object]:
    """The elements of the pieces; brackets, commas and white space are left out."""
    stripped = [piece.strip(b" \t\r\n,") for piece in found]
    stripped[0] = stripped[0].removeprefix(b"[")
    return [json.loads(piece) for piece in stripped if piece.strip(b" \t\r\n]")]


@given(st.data())
def test_every_element_is_a_piece_however_it_was_cut(data: st.DataObject) -> None:
    values = data.draw(ELEMENTS)
    ascii_only = data.draw(st.booleans())
    texts = [data.draw(SPACES) + json.dumps(one, ensure_ascii=ascii_only) + data.draw(SPACES) for one in values]
    stream = (data.draw(SPACES) + "[" + ",".join(texts) + data.draw(SPACES) + "]" + data.draw(SPACES)).encode()
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12))
    found = pieces(stream, cuts)
    assert b"".join(found) == stream
    assert elements(found) == values


def test_cut_at_every_offset_and_byte_by_byte() -> None:
    stream = '[{"a":"x]}\\\\\\"{[","b":[1,{"c":"\\\\"}]}\r\n,\r\n{"t":"北 \\u0022"}\n, {}\r\n]\r\n'.encode()
    whole = elements(pieces(stream, []))
    assert whole == json.loads(stream)
    for offset in range(len(stream) + 1):
        found = pieces(stream, [offset])
        assert b"".join(found) == stream and elements(found) == whole
    assert elements(pieces(stream, list(range(len(stream))))) == whole


def test_an_element_goes_with_what_stands_around_it() -> None:
    framer = ArrayFramer()
    assert framer.feed(b' [ {"a":1}\r\n') == [b' [ {"a":1}\r\n']
    assert framer.feed(b",\r\n{") == [] and framer.held == 4
    assert framer.rest() == b",\r\n{"
    assert framer.feed(b"}") == [b",\r\n{}"] and framer.held == 0
    assert framer.feed(b"\r\n]\r\n") == [b"\r\n]\r\n"]
    assert framer.feed(b" ") == [b" "], "what follows the end is no longer held"


def test_white_space_alone_goes_at_once_between_elements_only() -> None:
    framer = ArrayFramer()
    assert framer.feed(b" ") == []
    assert framer.feed(b"[ ") == []
    assert framer.feed(b"{}") == [b" [ {}"]
    assert framer.feed(b" \n") == [b" \n"]
    assert framer.feed(b",") == []
    assert framer.feed(b" ") == []
    assert framer.feed(b'{"a":"') == []
    assert framer.feed(b" ") == []
    assert framer.feed(b'"}') == [b', {"a":" "}']


@pytest.mark.parametrize(
    ("stream", "found"),
    [
        (b"[]", [b"[]"]),
        (b" [\n]\n", [b" [\n]\n"]),
        (b'{"error":{}}', [b'{"error":{}}']),
        (b"{}\n{}\n", [b"{}\n", b"{}\n"]),
        (b'[1,"]",{}]', [b'[1,"]",{}', b"]"]),
        (b"[[1],[2]]", [b"[[1]", b",[2]", b"]"]),
        (b"]x", [b"]x"]),
        (b"<html>", [b"<html>"]),
    ],
)
def test_other_values(stream: bytes, found: list[bytes]) -> None:
    assert pieces(stream, []) == found
    assert b"".join(pieces(stream, list(range(len(stream))))) == stream


def test_a_piece_that_was_given_up_is_still_framed() -> None:
    framer = ArrayFramer()
    assert framer.feed(b'[{"a":"xx') == []
    assert framer.take_rest() == b'[{"a":"xx'
    assert framer.held == 0
    assert framer.feed(b'"},{}') == [b'"}', b",{}"]
    assert not framer.cr_is_open


def test_large_elements_take_linear_time() -> None:
    """Four times the bytes in small reads take about four times as long, backslashes or not."""

    def cost(unit: bytes, number: int) -> float:
        stream = b'[{"d":"' + unit * number + b'"}]'
        best = 1e9
        for _ in range(3):
            framer = ArrayFramer()
            start = time.process_time()
            for at in range(0, len(stream), 4096):
                framer.feed(stream[at : at + 4096])
            best = min(best, time.process_time() - start)
            assert framer.held == 0
        return best

    for unit in (b"QUJD", b"\\n\\\\", b'\\"xx'):
        assert cost(unit, 1_000_000) < 12 * cost(unit, 250_000) + 0.01


def test_the_framing_follows_what_was_asked() -> None:
    assert framing(Asked.ARRAY) is ArrayFramer
    assert framing(Asked.EVENTS) is Framer
