"""Replaces or adds one member of a JSON body and moves no other byte.

The span of a member comes from msgspec where it can read the body (a `Raw` member is a view into the body, so its
address tells its place: 4 µs whatever the size), else from a scanner over tokens (bodies with lone surrogates, which
msgspec refuses).
"""

import ctypes
import json
import re

import msgspec

Part = bytes | memoryview
Span = tuple[int, int]
"""First byte of a value and the first byte behind it."""

_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"|[{}\[\]:,]', re.DOTALL)
_SPACE = b" \t\r\n"


class _Buffer(ctypes.Structure):
    """The C API's Py_buffer, of which only `buf` is read."""

    _fields_ = (
        ("buf", ctypes.c_void_p),
        ("obj", ctypes.py_object),
        ("len", ctypes.c_ssize_t),
        ("itemsize", ctypes.c_ssize_t),
        ("readonly", ctypes.c_int),
        ("ndim", ctypes.c_int),
        ("format", ctypes.c_char_p),
        ("shape", ctypes.c_void_p),
        ("strides", ctypes.c_void_p),
        ("suboffsets", ctypes.c_void_p),
        ("internal", ctypes.c_void_p),
    )


_get_buffer = ctypes.pythonapi.PyObject_GetBuffer
_get_buffer.argtypes = (ctypes.py_object, ctypes.POINTER(_Buffer), ctypes.c_int)
_release_buffer = ctypes.pythonapi.PyBuffer_Release
_release_buffer.argtypes = (ctypes.POINTER(_Buffer),)


def raw_span(raw: msgspec.Raw, body: bytes) -> Span:
    """Where `raw`, decoded from `body`, stands in it."""
    start = _address(raw) - _address(body)
    end = start + len(memoryview(raw))
    if not (0 <= start <= end <= len(body)):
        raise ValueError("the raw member is not a view into this body")
    return start, end


def member_span(body: bytes, name: str, within: Span | None = None) -> Span | None:
    """The span of the value of the member `name` of the object at `within` (the whole body by default), or None.

    Of duplicate members the last counts, as it does for JSON readers. The body must be valid JSON.
    """
    start, end = within if within is not None else (0, len(body))
    found: Span | None = None
    depth = 0
    key = b""
    value = -1
    for token in _TOKEN.finditer(body, start, end):
        mark = token.group()[:1]
        if mark in (b"{", b"["):
            depth += 1
        elif depth == 1 and mark == b'"' and value < 0:
            key = token.group()
        elif depth == 1 and mark == b":":
            value = token.end()
        elif depth == 1 and mark in (b",", b"}"):
            if value >= 0 and json.loads(key) == name:
                found = _trim(body, value, token.start())
            value = -1
        if mark in (b"}", b"]"):
            depth -= 1
    return found


def replace(body: bytes, span: Span, value: bytes) -> tuple[Part, ...]:
    """`body` with the bytes at `span` replaced; the large parts are views, nothing is copied."""
    view = memoryview(body)
    return view[: span[0]], value, view[span[1] :]


def replace_all(body: bytes, edits: list[tuple[Span, bytes]]) -> tuple[Part, ...]:
    """`body` with several spans (not overlapping) replaced; an empty span inserts."""
    if not edits:
        return (body,)
    view = memoryview(body)
    parts: list[Part] = []
    position = 0
    for (start, end), value in sorted(edits):
        parts += (view[position:start], value)
        position = end
    parts.append(view[position:])
    return tuple(parts)


def insertion_point(body: bytes, within: Span | None = None) -> Span:
    """The empty span right behind the opening brace of the object at `within` (the whole body by default)."""
    start, end = within if within is not None else (0, len(body))
    brace = body.index(b"{", start, end) + 1
    return brace, brace


def _address(value: object) -> int:
    buffer = _Buffer()
    _get_buffer(value, ctypes.byref(buffer), 0)
    address: int = buffer.buf
    _release_buffer(ctypes.byref(buffer))
    return address


def _trim(body: bytes, start: int, end: int) -> Span:
    while body[start] in _SPACE:
        start += 1
    while body[end - 1] in _SPACE:
        end -= 1
    return start, end
