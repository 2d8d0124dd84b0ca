"""Content codings: what each undoes, and how broken, cut, unknown and exploding bodies are told."""

import gzip
import random
import zlib
from collections.abc import Callable

import brotli
import pytest
import zstandard

from headrace.http.coding import PIECE, CodingError, decode_body, decoder
from headrace.model.problem import Kind, Problem

LIMIT = 1 << 26
BODY = b'{"model":"m","messages":["' + "北京 hello ".encode() * 3000 + b'"]}'


def raw_deflate(body: bytes) -> bytes:
    """deflate without the zlib wrapper."""
    machine = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return machine.compress(body) + machine.flush()


def unsized_zstd(body: bytes) -> bytes:
    """A frame that does not say how large its content is, as streaming clients write it."""
    machine = zstandard.ZstdCompressor(level=3, write_content_size=False).compressobj()
    return machine.compress(body) + machine.flush()


CODINGS: list[tuple[bytes, Callable[[bytes], bytes]]] = [
    (b"gzip", gzip.compress),
    (b"X-GZIP", gzip.compress),
    (b"deflate", zlib.compress),
    (b"deflate", raw_deflate),
    (b"br", brotli.compress),
    (b"zstd", zstandard.compress),
    (b"zstd", unsized_zstd),
]


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_each_is_undone(coding: bytes, encode: Callable[[bytes], bytes]) -> None:
    assert decode_body(encode(BODY), coding, LIMIT) == BODY


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
@pytest.mark.parametrize("step", [1, 7, 1000])
def test_pieces_may_be_cut_anywhere(coding: bytes, encode: Callable[[bytes], bytes], step: int) -> None:
    machine = decoder(coding)
    assert machine is not None
    encoded = encode(BODY)
    pieces = [piece for at in range(0, len(encoded), step) for piece in machine.feed(encoded[at : at + step])]
    assert b"".join(pieces) == BODY
    assert machine.complete


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_a_cut_body_is_refused(coding: bytes, encode: Callable[[bytes], bytes]) -> None:
    for kept in (0, 3, -3):
        problem = decode_body(encode(BODY)[:kept], coding, LIMIT)
        assert isinstance(problem, Problem)
        assert problem.kind is Kind.BAD_REQUEST


@pytest.mark.parametrize("coding", [b"gzip", b"deflate", b"br", b"zstd"])
def test_bytes_that_are_something_else_are_refused(coding: bytes) -> None:
    problem = decode_body(BODY, coding, LIMIT)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.http_status) == (Kind.BAD_REQUEST, 400)


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_an_exploding_body_stops_at_the_limit(coding: bytes, encode: Callable[[bytes], bytes]) -> None:
    bomb = encode(b"\0" * (1 << 24))
    assert len(bomb) < 1 << 16
    problem = decode_body(bomb, coding, 1 << 20)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.http_status) == (Kind.PAYLOAD_TOO_LARGE, 413)


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_no_step_gives_out_much(coding: bytes, encode: Callable[[bytes], bytes]) -> None:
    machine = decoder(coding)
    assert machine is not None
    largest = max(len(piece) for piece in machine.feed(encode(b"\0" * (1 << 24))))
    assert largest <= 64 * PIECE  # zstd may give out several blocks of one step


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
@pytest.mark.parametrize("pieces", [1, 2, 4])
def test_bodies_of_about_whole_pieces(coding: bytes, encode: Callable[[bytes], bytes], pieces: int) -> None:
    """What stops at just a piece's end, with all input taken, may have output left, and its end."""
    mixed = random.Random(7).randbytes(1000) * 1200
    for content in (b"\0" * len(mixed), mixed):
        for size in range(pieces * PIECE - 3, pieces * PIECE + 4):
            assert decode_body(encode(content[:size]), coding, LIMIT) == content[:size], size


@pytest.mark.parametrize("wbits", [-15, 15, 31])
def test_output_that_zlib_keeps_back_is_fetched(wbits: int) -> None:
    """One match runs over a piece's end, whatever its offset, and is the last thing in the stream."""
    coding = b"gzip" if wbits == 31 else b"deflate"
    for over in range(1, 259):
        content = b"\0" * (PIECE + over)
        machine = zlib.compressobj(9, zlib.DEFLATED, wbits)
        assert decode_body(machine.compress(content) + machine.flush(), coding, LIMIT) == content, over


def test_every_byte_is_charged_and_encoded_ones_are_given_back() -> None:
    charged: list[int] = []

    def charge(extra: int) -> Problem | None:
        charged.append(extra)
        return None

    inner = gzip.compress(BODY * 20)
    body = zstandard.compress(inner)
    assert decode_body(body, b"gzip, zstd", LIMIT, charge) == BODY * 20
    assert sum(charged) == len(BODY) * 20 - len(body)
    assert max(charged) <= PIECE and -len(inner) in charged


@pytest.mark.parametrize(("coding", "encode"), CODINGS)
def test_decoding_stops_where_its_bytes_cannot_be_had(coding: bytes, encode: Callable[[bytes], bytes]) -> None:
    full = Problem(Kind.OVERLOADED, "full", retry_after_s=1.0)
    charged = [0]

    def charge(extra: int) -> Problem | None:
        if charged[-1] + extra > 1 << 20:
            return full
        charged.append(charged[-1] + extra)
        return None

    assert decode_body(encode(b"\0" * (1 << 24)), coding, LIMIT, charge) is full
    assert charged[-1] == 0, "all that was decoded is given back"


def test_codings_on_top_of_each_other() -> None:
    assert decode_body(zstandard.compress(gzip.compress(BODY)), b"gzip, zstd", LIMIT) == BODY
    assert decode_body(gzip.compress(BODY), b"identity , gzip", LIMIT) == BODY
    problem = decode_body(BODY, b"gzip, gzip, gzip, gzip", LIMIT)
    assert isinstance(problem, Problem)
    assert problem.kind is Kind.BAD_REQUEST


def test_several_members_and_frames() -> None:
    assert decode_body(gzip.compress(BODY[:100]) + gzip.compress(BODY[100:]), b"gzip", LIMIT) == BODY
    assert decode_body(zstandard.compress(BODY[:100]) + zstandard.compress(BODY[100:]), b"zstd", LIMIT) == BODY


def test_bytes_behind_a_deflate_body_are_refused() -> None:
    assert isinstance(decode_body(zlib.compress(BODY) + b"more", b"deflate", LIMIT), Problem)


def test_an_unknown_coding_is_415_and_names_the_known() -> None:
    problem = decode_body(BODY, b"compress", LIMIT)
    assert isinstance(problem, Problem)
    assert (problem.kind, problem.http_status) == (Kind.UNSUPPORTED_ENCODING, 415)
    assert "zstd" in problem.message
    with pytest.raises(CodingError, match="compress"):
        decoder(b"compress")


@pytest.mark.parametrize("coding", [None, b"", b"identity", b" Identity "])
def test_identity_needs_no_decoder(coding: bytes | None) -> None:
    assert decoder(coding) is None
    assert decode_body(BODY, coding or b"", LIMIT) == BODY
