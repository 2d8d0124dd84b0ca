"""Malformed and hostile requests as tables: the exact bytes, and the documented answer to each.

`NONE` is a good body for a model that does not exist: 404 `model_not_found` proves that head, framing and body were read
as they were meant, without an upstream. `SMUGGLED` stands behind a request whose framing two readers could see
differently; no case may have an answer to it.
"""

# ruff: noqa: E501  a case a line
import gzip
import json
import zlib
from dataclasses import dataclass

import brotli
import zstandard

from tests.stand.wire import CHAT_PATH, KEY

NONE = b'{"model": "gpt-none"}'
SMUGGLED = b"GET /readyz HTTP/1.1\r\nhost: smuggled\r\n\r\n"
CHUNKED = b"15\r\n" + NONE + b"\r\n0\r\n\r\n"
BEARER = f"authorization: Bearer {KEY}".encode()


@dataclass(frozen=True)
class Hostile:
    """One connection: what is sent, the statuses of all that is answered, and the last answer's code and words.

    Without a status the connection is closed silently. `code` None: the last answer is no error. `closes`: nothing can
    follow; else a good request is served on the same connection.
    """

    sent: bytes
    statuses: tuple[int, ...]
    code: str | None = "bad_request"
    says: str = ""
    closes: bool = True
    param: str | None = None


def raw(start: bytes, *lines: bytes, body: bytes = b"") -> bytes:
    """A head of exactly these lines, and what follows it."""
    return b"\r\n".join([start, *lines, b"", b""]) + body


def post(*lines: bytes, body: bytes = b"", path: str = CHAT_PATH) -> bytes:
    """A chat request with a Host, a key and these lines."""
    return raw(f"POST {path} HTTP/1.1".encode(), b"host: g", BEARER, *lines, body=body)


def get(*lines: bytes, start: bytes = b"GET /healthz HTTP/1.1", body: bytes = b"") -> bytes:
    """A request for a page that needs no key."""
    return raw(start, b"host: g", *lines, body=body)


def sized(body: bytes, *lines: bytes) -> bytes:
    """A chat request with this body."""
    return post(b"content-length: %d" % len(body), *lines, body=body)


def none(sent: bytes) -> Hostile:
    """It was understood: the model does not exist."""
    return Hostile(sent, (404,), "model_not_found", "/v1/models", closes=False, param="model")


def fine(sent: bytes, *, closes: bool = False) -> Hostile:
    """It was understood, and served."""
    return Hostile(sent, (200,), None, closes=closes)


def bad(sent: bytes, says: str = "", status: int = 400, code: str = "bad_request") -> Hostile:
    """It is refused, and the connection closes."""
    return Hostile(sent, (status,), code, says)


def framed(*lines: bytes) -> bytes:
    """A POST whose framing is in doubt, with a chunked body and another request behind it."""
    return post(*lines, body=CHUNKED + SMUGGLED)


TE = b"transfer-encoding: chunked"
CL = b"content-length: 21"
MESSY = "not both"
CODING = "only Transfer-Encoding"
FIELD = "header"

SMUGGLING = {
    # CL.TE and TE.CL: both, in every order and case
    "length, then chunked": bad(framed(CL, TE), MESSY),
    "chunked, then length": bad(framed(TE, CL), MESSY),
    "a length of 0 and chunked": bad(framed(b"content-length: 0", TE), MESSY),
    "the chunks' length and chunked": bad(framed(b"Content-Length: %d" % len(CHUNKED), b"Transfer-Encoding: Chunked"), MESSY),
    "length, chunked and length": bad(framed(CL, TE, CL), MESSY),
    "length and a coding that is none": bad(framed(CL, b"transfer-encoding: xchunked")),
    "length and identity": bad(framed(CL, b"transfer-encoding: identity")),
    "length and an empty coding": bad(framed(CL, b"transfer-encoding:"), MESSY),
    # TE.TE: one reader takes it for chunked, another does not
    "xchunked": bad(framed(b"transfer-encoding: xchunked"), CODING, 501),
    "chunkedx": bad(framed(b"transfer-encoding: chunkedx"), CODING, 501),
    "chunked, identity": bad(framed(b"transfer-encoding: chunked, identity"), CODING, 501),
    "identity, chunked": bad(framed(b"transfer-encoding: identity, chunked"), CODING, 501),
    "identity": bad(framed(b"transfer-encoding: identity"), CODING, 501),
    "cow": bad(framed(b"transfer-encoding: cow"), CODING, 501),
    "in quotes": bad(framed(b'transfer-encoding: "chunked"'), CODING, 501),
    "with a parameter": bad(framed(b"transfer-encoding: chunked;q=1"), CODING, 501),
    "with a blank inside": bad(framed(b"transfer-encoding: chu nked"), CODING, 501),
    "with a comma behind": bad(framed(b"transfer-encoding: chunked,"), CODING, 501),
    "with a comma before": bad(framed(b"transfer-encoding: ,chunked"), CODING, 501),
    "empty": bad(framed(b"transfer-encoding:"), CODING, 501),
    "two that are the same": bad(framed(TE, TE), CODING, 501),
    "chunked, then identity": bad(framed(TE, b"transfer-encoding: identity"), CODING, 501),
    "cow, then chunked": bad(framed(b"transfer-encoding: cow", TE), CODING, 501),
    "with a vertical tab": bad(framed(b"transfer-encoding: \x0bchunked")),
    "with a NUL": bad(framed(b"transfer-encoding: chunked\0"), FIELD),
    "with a byte of Latin-1": bad(framed(b"transfer-encoding: chunked\xa0"), CODING, 501),
    "a fold before the value": bad(framed(b"transfer-encoding:\r\n chunked"), FIELD),
    "a fold behind the value": bad(framed(b"transfer-encoding: chunked\r\n "), FIELD),
    "a blank before the colon": bad(framed(b"transfer-encoding : chunked"), FIELD),
    "a tab before the colon": bad(framed(b"transfer-encoding\t: chunked"), FIELD),
    "a line feed before the colon": bad(framed(b"transfer-encoding\n: chunked"), FIELD),
    "a NUL before the name": bad(framed(b"\0transfer-encoding: chunked"), FIELD),
    "a blank before the name": bad(framed(b" transfer-encoding: chunked"), FIELD),
    "behind a bare LF": bad(framed(b"x: y\ntransfer-encoding: chunked"), FIELD),
    "behind a bare CR": bad(framed(b"x: y\rtransfer-encoding: chunked"), FIELD),
    "with a semicolon for a colon": bad(framed(b"transfer-encoding; chunked"), FIELD),
    # the same name, one way or another: chunked without doubt
    "in capitals": none(post(b"TRANSFER-ENCODING: CHUNKED", body=CHUNKED)),
    "blanks before the value": none(post(b"transfer-encoding: \t chunked", body=CHUNKED)),
    "a blank behind the value": none(post(b"transfer-encoding: chunked ", body=CHUNKED)),
    "a tab behind the value": bad(framed(b"transfer-encoding: chunked\t"), "chunked"),
    "no blank before the value": none(post(b"transfer-encoding:chunked", body=CHUNKED)),
    # another name: no framing at all
    "with an underscore": none(post(b"transfer_encoding: chunked", CL, body=NONE)),
    "in the Connection header": none(post(b"connection: transfer-encoding", CL, body=NONE)),
    "as TE": none(post(b"te: chunked", CL, body=NONE)),
    # HTTP/1.0 has none
    "HTTP/1.0 with both": bad(raw(b"POST /v1/chat/completions HTTP/1.0", b"host: g", BEARER, CL, TE, body=CHUNKED + SMUGGLED)),
    # lengths
    **{f"a length of {text!r}": bad(framed(b"content-length: " + text.encode("utf-8")), "Content-Length") for text in (
        "", "+21", "-21", "-0", "0x15", "2 1", "21,21", "21, 21", "21;", "2e1", "21.0", '"21"', "2_1", "٢١", "２１", "21\t1",
        "18446744073709551616", "9" * 400,
    )},
    "two lengths that are the same": bad(framed(CL, CL), "Content-Length"),
    "a length and a longer one": bad(framed(CL, b"content-length: 200"), "Content-Length"),
    "a length and an empty one": bad(framed(CL, b"content-length:"), "Content-Length"),
    "a length with a NUL": bad(framed(b"content-length: 21\0")),
    "a length with a fold": bad(framed(b"content-length: 2\r\n 1")),
    "a length with zeros before it": none(post(b"content-length: 00021", body=NONE)),
    "a length with blanks": none(post(b"content-length: \t21 \t", body=NONE)),
    # a request behind one without a body is one of its own, and behind one with a body too
    "a GET with a body": Hostile(get(b"content-length: 5", body=b"12345" + SMUGGLED), (200, 200), None, closes=False),
    "a GET with chunks": Hostile(get(TE, body=CHUNKED + SMUGGLED), (200, 200), None, closes=False),
    "no framing at all": Hostile(post(body=NONE), (400, 400), "bad_request", "HTTP"),
}  # fmt: skip


def chunks(data: bytes) -> bytes:
    """A chunked request with this body, framing included."""
    return post(TE, body=data)


def sizes(*texts: bytes) -> dict[str, Hostile]:
    """A chunk whose size line is odd, each with a good body and another request behind."""
    return {
        f"a size of {text!r}": bad(chunks(text + b"\r\n" + NONE + b"\r\n0\r\n\r\n" + SMUGGLED), "chunked")
        for text in texts
    }


CHUNKS = {
    **sizes(b"0x15", b"+15", b"-15", b"-1", b" 15", b"\t15", b"G", b"1G", b"", b" ", b"1 5", b"15\0", b"\xff", b"15,", b"fffffffffffffffff", b"15\x0b", b"$15", b"1.5"),
    "a size of 16 digits": bad(chunks(b"ffffffffffffffff\r\n" + b"x" * 1_100_000), "1048576 bytes", 413, "payload_too_large"),
    "a size that no body may have": bad(chunks(b"7fffffff\r\n" + b"x" * 1_100_000), "1048576 bytes", 413, "payload_too_large"),
    "a size that ends in LF": bad(chunks(b"15\n" + NONE + b"\r\n0\r\n\r\n"), "chunked"),
    "a size that ends in CR": bad(chunks(b"15\r" + NONE + b"\r\n0\r\n\r\n"), "chunked"),
    "data without its CRLF": bad(chunks(b"15\r\n" + NONE + b"0\r\n\r\n" + SMUGGLED), "chunked"),
    "data with LF alone": bad(chunks(b"15\r\n" + NONE + b"\n0\r\n\r\n" + SMUGGLED), "chunked"),
    "data with a byte too many": bad(chunks(b"15\r\n" + NONE + b"x\r\n0\r\n\r\n" + SMUGGLED), "chunked"),
    "data with CR CR": bad(chunks(b"15\r\n" + NONE + b"\r\r\n0\r\n\r\n"), "chunked"),
    "an end with LF alone": bad(chunks(b"15\r\n" + NONE + b"\r\n0\n\n"), "chunked"),
    "a NUL in an extension": bad(chunks(b"15;a=\0\r\n" + NONE + b"\r\n0\r\n\r\n"), "chunked"),
    "a bare LF in an extension": bad(chunks(b"15;a\n\r\n" + NONE + b"\r\n0\r\n\r\n"), "chunked"),
    "an open quote in an extension": bad(chunks(b'15;a="b\r\n' + NONE + b"\r\n0\r\n\r\n"), "chunked"),
    "an extension of 1 MB": bad(chunks(b"15;a=" + b"b" * 1_000_000 + b"\r\n" + NONE + b"\r\n0\r\n\r\n"), "chunk extensions", 431),
    "trailers of 1 MB": bad(chunks(b"15\r\n" + NONE + b"\r\n0\r\n" + b"x: y\r\n" * 170_000 + b"\r\n"), "trailers", 431),
    "a length in the trailers": bad(chunks(b"15\r\n" + NONE + b"\r\n0\r\ncontent-length: 5\r\n\r\n"), "chunked"),
    "a coding in the trailers": bad(chunks(b"15\r\n" + NONE + b"\r\n0\r\ntransfer-encoding: chunked\r\n\r\n"), "chunked"),
    "a NUL in a trailer": bad(chunks(b"15\r\n" + NONE + b"\r\n0\r\nx: \0\r\n\r\n"), "chunked"),
    "a fold in a trailer": bad(chunks(b"15\r\n" + NONE + b"\r\n0\r\nx: y\r\n z\r\n\r\n"), "chunked"),
    # what is good
    "an extension": none(chunks(b"15;a=b\r\n" + NONE + b"\r\n0;c\r\n\r\n")),
    "an extension in quotes": none(chunks(b'15;a="b;c"\r\n' + NONE + b"\r\n0\r\n\r\n")),
    "an extension without a name": none(chunks(b"15;=b\r\n" + NONE + b"\r\n0\r\n\r\n")),
    "zeros before a size": none(chunks(b"00000015\r\n" + NONE + b"\r\n000\r\n\r\n")),
    "a size in either case": none(chunks(b"A\r\n" + NONE[:10] + b"\r\nb\r\n" + NONE[10:] + b"\r\n0\r\n\r\n")),
    "a chunk for each byte": none(chunks(b"".join(b"1\r\n%c\r\n" % byte for byte in NONE) + b"0\r\n\r\n")),
    "trailers that would matter": none(chunks(b"15\r\n" + NONE + b"\r\n0\r\nauthorization: Bearer x\r\nhost: evil\r\nx: y\r\n\r\n")),
}  # fmt: skip


def line(start: bytes) -> bytes:
    """A request with this first line."""
    return get(start=start)


VERSION = "HTTP/1.1"
TARGET = "target cannot be used"
HOST = "Host"

LINES = {
    **{f"version {text!r}": bad(line(b"GET /healthz " + text), VERSION, 505) for text in (b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"HTTP/9.9", b"HTTP/2.1")},
    **{f"version {text!r}": bad(line(b"GET /healthz " + text), "HTTP") for text in (b"HTTP/1", b"HTTP/1.", b"HTTP/1.10", b"HTTP/11.1", b"HTTP/01.1", b"HTTP/1,1", b"HTTP/ 1.1", b"http/1.1", b"HTTPS/1.1", b"HTTP/a.b", b"HTTP/1.1 x", b"HTTP/1.1\0", b"SIP/2.0", b"1.1")},
    "HTTP/0.9": bad(b"GET /healthz\r\n\r\n", HOST),
    "HTTP/0.9 without CR": bad(b"GET /healthz\n\n"),
    "a method alone": bad(b"GET\r\n\r\n", "HTTP"),
    "two blanks": fine(line(b"GET  /healthz HTTP/1.1")),
    "two blanks before the version": fine(line(b"GET /healthz  HTTP/1.1")),
    "a tab for a blank": bad(line(b"GET\t/healthz HTTP/1.1")),
    "a tab before the version": bad(line(b"GET /healthz\tHTTP/1.1")),
    "a blank before the method": bad(line(b" GET /healthz HTTP/1.1")),
    "a NUL before the method": bad(line(b"\0GET /healthz HTTP/1.1")),
    "a blank in the target": bad(line(b"GET /health z HTTP/1.1")),
    "a NUL in the target": bad(line(b"GET /health\0z HTTP/1.1")),
    "a CR in the target": bad(line(b"GET /health\rz HTTP/1.1")),
    "an LF in the target": bad(line(b"GET /health\nz HTTP/1.1")),
    "a DEL in the target": bad(line(b"GET /health\x7fz HTTP/1.1")),
    "UTF-8 in the query": bad(line("GET /healthz?ä HTTP/1.1".encode())),
    "a byte order mark": bad(b"\xef\xbb\xbf" + line(b"GET /healthz HTTP/1.1")),
    "a small method": bad(line(b"get /healthz HTTP/1.1"), "method"),
    "an unknown method": bad(line(b"FOO /healthz HTTP/1.1"), "method"),
    "a method of 60 KB": bad(line(b"A" * 60_000 + b" /healthz HTTP/1.1"), "method"),
    "a method of WebDAV": Hostile(line(b"PROPFIND /healthz HTTP/1.1"), (405,), "method_not_allowed", "GET, HEAD", closes=False),
    "a response": bad(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"),
    "SSH": bad(b"SSH-2.0-OpenSSH_9.6\r\n"),
    "SMTP": bad(b"EHLO me\r\n"),
    "Redis": bad(b"*1\r\n$4\r\nPING\r\n"),
    "a ClientHello": bad(b"\x16\x03\x01\x00\xf8\x01\x00\x00\xf4\x03\x03" + bytes(240), "https://"),
    "the preface of HTTP/2 and its frames": bad(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00", VERSION, 505),
    "CR alone": bad(b"GET /healthz HTTP/1.1\rhost: g\r\r"),
    "LF alone, then good lines": bad(b"GET /healthz HTTP/1.1\nhost: g\r\n\r\n"),
    "CR CR LF": bad(b"GET /healthz HTTP/1.1\r\r\nhost: g\r\n\r\n"),
    "no line at all": Hostile(b"\r\n" * 50 + line(b"GET /healthz HTTP/1.1"), (200,), None, closes=False),
    # forms of the target
    "absolute": fine(line(b"GET http://elsewhere/healthz HTTP/1.1")),
    "absolute, https, capitals": fine(line(b"GET HTTPS://ELSEWHERE:1/healthz HTTP/1.1")),
    "absolute without a path": fine(line(b"GET http://elsewhere HTTP/1.1")),
    "absolute with a query alone": fine(line(b"GET http://elsewhere?x=y HTTP/1.1")),
    "absolute with a user": bad(line(b"GET http://a:b@elsewhere/healthz HTTP/1.1"), "user information"),
    "absolute without a host": bad(line(b"GET http:///healthz HTTP/1.1"), TARGET),
    "absolute with two slashes": bad(line(b"GET http://elsewhere//healthz HTTP/1.1"), "slash"),
    "absolute, metadata": Hostile(line(b"GET http://169.254.169.254/latest/meta-data HTTP/1.1"), (404,), "not_found", closes=False),
    "absolute, file": bad(line(b"GET file:///etc/passwd HTTP/1.1")),
    "authority": bad(line(b"GET elsewhere:80 HTTP/1.1")),
    "CONNECT with an authority": bad(line(b"CONNECT 169.254.169.254:80 HTTP/1.1"), "GET or POST", 405, "method_not_allowed"),
    "CONNECT with a path": bad(line(b"CONNECT /healthz HTTP/1.1"), "GET or POST", 405, "method_not_allowed"),
    "CONNECT with bytes behind": bad(get(start=b"CONNECT a:1 HTTP/1.1", body=SMUGGLED), "GET or POST", 405, "method_not_allowed"),
    "TRACE with a body": bad(get(b"content-length: 3", start=b"TRACE / HTTP/1.1", body=b"abc"), "GET or POST", 405, "method_not_allowed"),
    "an asterisk for POST": bad(line(b"POST * HTTP/1.1"), "OPTIONS"),
    "an asterisk for OPTIONS": Hostile(line(b"OPTIONS * HTTP/1.1"), (404,), "not_found", closes=False),
    "a relative target": bad(line(b"GET healthz HTTP/1.1")),
    "a query alone": bad(line(b"GET ?x HTTP/1.1")),
    "dots behind a semicolon": Hostile(line(b"GET /v1/..;/admin HTTP/1.1"), (404,), "not_found", closes=False),
    "dots encoded twice": Hostile(line(b"GET /v1/%252e%252e/admin HTTP/1.1"), (404,), "not_found", closes=False),
    "dots in UTF-8 that is too long": bad(line(b"GET /v1/\xc0\xae\xc0\xae/admin HTTP/1.1")),
    "an encoded CR LF": bad(line(b"GET /v1/models/x%0d%0aset-cookie:%20a HTTP/1.1"), "control"),
    "an encoded backslash": bad(line(b"GET /v1/%5cadmin HTTP/1.1"), "backslash"),
    "a target of 60 KB": Hostile(line(b"GET /" + b"a" * 60_000 + b" HTTP/1.1"), (404,), "not_found", closes=False),
    "a query of 60 KB": fine(line(b"GET /healthz?" + b"a" * 60_000 + b" HTTP/1.1")),
    "HTTP/1.0": fine(line(b"GET /healthz HTTP/1.0"), closes=True),
    "HTTP/1.0 that would be kept": fine(get(b"connection: keep-alive", start=b"GET /healthz HTTP/1.0"), closes=True),
    "HTTP/1.0 without a Host": bad(raw(b"GET /healthz HTTP/1.0"), "Host"),
}  # fmt: skip

FIELDS = {
    **{f"a name with {byte!r}": bad(get(b"x" + byte + b"y: z"), FIELD) for byte in (b" ", b"\t", b"\0", b"\x01", b"\x7f", b"\xe4", b'"', b"(", b")", b",", b"/", b";", b"<", b"=", b"@", b"[", b"\\", b"]", b"{", b"}")},
    **{f"a value with {byte!r}": bad(get(b"x: y" + byte + b"z"), FIELD) for byte in (b"\0", b"\x01", b"\x08", b"\x0b", b"\x1b", b"\x7f", b"\n", b"\r")},
    "an empty name": bad(get(b": z"), FIELD),
    "no colon": bad(get(b"xyz"), FIELD),
    "a folded line": bad(get(b"x: y", b"\tz"), FIELD),
    "a blank line that is none": bad(get(b" "), FIELD),
    "a folded first line": bad(raw(b"GET /healthz HTTP/1.1", b" host: g")),
    "a value that injects a line": bad(get(b"x: y\r\n\0: z"), FIELD),
    "a value of bytes": fine(get(b"x: " + bytes(range(0x80, 0x100)))),
    "a value of UTF-8": fine(get("x: 北京 ä".encode())),
    "an empty value": fine(get(b"x:", b"y: ")),
    "100 fields": fine(get(*[b"x%d: y" % n for n in range(99)])),
    "100 fields of one name": fine(get(*[b"x: y"] * 99)),
    "101 fields of one name": bad(get(*[b"x: y"] * 100), "fewer", 431),
    "10,000 fields": bad(get(*[b"x: y"] * 10_000), "fewer", 431),
    "a head of just less than 64 KiB": fine(get(b"x: " + b"y" * 65_400)),
    "a name of 60 KB": fine(get(b"x" * 60_000 + b": y")),
    "a head of 1 MB": bad(get(b"x: " + b"y" * 1_000_000), "65536 bytes", 431),
    "fields of 8 KB": bad(get(*[b"x: " + b"y" * 8000] * 9), "65536 bytes", 431),
    # Host
    **{f"Host {text!r}": bad(raw(b"GET /healthz HTTP/1.1", b"host: " + text), HOST) for text in (b"a b", b"a/b", b"a?b", b"a#b", b"a@b", b"user:pass@a", b"a\\b", b'"a"', b"a<b>", b"a|b", b"a^b", b"a`b", b"\xe4", "ä".encode(), b"a\tb", b"a{b}")},
    **{f"Host {text!r}": fine(raw(b"GET /healthz HTTP/1.1", b"host: " + text)) for text in (b"", b"a", b"a:80", b"[::1]:80", b"127.0.0.1", b"xn--4ca.example", b"169.254.169.254", b"a" * 5000)},
    "Host twice, alike": bad(raw(b"GET /healthz HTTP/1.1", b"host: g", b"host: g"), HOST),
    "Host twice, apart": bad(raw(b"GET /healthz HTTP/1.1", b"host: g", b"x: y", b"HOST: h"), HOST),
    "Host and an absolute target that differ": fine(raw(b"GET http://a/healthz HTTP/1.1", b"host: b")),
    "an absolute target without Host": bad(raw(b"GET http://a/healthz HTTP/1.1"), HOST),
    # connections and upgrades
    "Connection names Host": fine(get(b"connection: host")),
    "Connection names everything": none(post(b"connection: content-length, authorization, host", CL, body=NONE)),
    "Connection: close": fine(get(b"connection: close"), closes=True),
    "Connection: keep-alive, close": fine(get(b"connection: keep-alive, close"), closes=True),
    "Connection twice": fine(get(b"connection: keep-alive", b"connection: close"), closes=True),
    "Proxy-Connection": fine(get(b"proxy-connection: close"), closes=True),
    "Keep-Alive": fine(get(b"keep-alive: timeout=0, max=0")),
    "h2c with a body": none(post(b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AAMAAABkAAQAAP__", CL, body=NONE)),
    "h2c with chunks": none(post(b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AAMAAABkAAQAAP__", TE, body=CHUNKED)),
    "h2c without a body": fine(get(b"connection: upgrade, http2-settings", b"upgrade: h2c", b"http2-settings: AAMAAABkAAQAAP__")),
    "h2c with a request behind": Hostile(get(b"connection: upgrade", b"upgrade: h2c", body=SMUGGLED), (200, 200), None, closes=False),
    "TLS": fine(get(b"connection: upgrade", b"upgrade: TLS/1.3")),
    "a WebSocket on a page": fine(get(b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-version: 13", b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==")),
    "a WebSocket on a POST": none(post(b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-version: 13", b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", CL, body=NONE)),
    "a WebSocket on a path for POST": Hostile(get(BEARER, b"connection: upgrade", b"upgrade: websocket", b"sec-websocket-version: 13", b"sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==", start=b"GET /v1/chat/completions HTTP/1.1"), (405,), "method_not_allowed", "POST", closes=False),
    # Expect
    "Expect in capitals": Hostile(post(b"expect: 100-CONTINUE", CL, body=NONE), (404,), "model_not_found", closes=False, param="model"),
    "Expect on a GET": fine(get(b"expect: 100-continue")),
    "Expect with a list": bad(post(b"expect: 100-continue, 100-continue", CL, body=NONE), "100-continue", 417),
    "Expect with a parameter": bad(post(b"expect: 100-continue;x", CL, body=NONE), "100-continue", 417),
    "Expect, empty": bad(post(b"expect:", CL, body=NONE), "100-continue", 417),
    "Expect: 200-ok": bad(get(b"expect: 200-ok"), "100-continue", 417),
    "Expect in HTTP/1.0": Hostile(raw(b"POST /v1/chat/completions HTTP/1.0", b"host: g", BEARER, b"expect: 100-continue", CL, body=NONE), (404,), "model_not_found", param="model"),
    "Expect without a key": bad(raw(b"POST /v1/chat/completions HTTP/1.1", b"host: g", b"expect: 100-continue", CL), "Bearer", 401, "missing_api_key"),
    # injection by what is told back
    "a client's id that injects": fine(get(b"x-client-request-id: a\xffb; path=/ \xc4\x8d")),
    "an Origin that injects": fine(get(b"origin: https://evil\xff")),
}  # fmt: skip


def keyed(*lines: bytes, path: bytes = b"/v1/models") -> bytes:
    """A request for the models, with these credentials alone."""
    return raw(b"GET " + path + b" HTTP/1.1", b"host: g", *lines)


def unknown(sent: bytes) -> Hostile:
    """A key that is none: 401, whatever it looks like."""
    return Hostile(sent, (401,), "invalid_api_key", "Check", closes=False)


def missing(sent: bytes) -> Hostile:
    """No key at all."""
    return Hostile(sent, (401,), "missing_api_key", "Bearer", closes=False)


KEY_BYTES = KEY.encode()
KEYS = {
    **{f"key {text[:20]!r}": unknown(keyed(b"authorization: Bearer " + text)) for text in (
        b"'", b'"', b"' OR '1'='1", b"sk-x'; DROP TABLE keys;--", b"%00", b"%27", b"../../etc/passwd", b"${jndi:ldap://a}", b"{{7*7}}", b"\\", b"null", b"undefined", b"None", b"[object Object]",
        b"\xed\xa0\x80", b"\xff\xfe", "ключ".encode(), b"k" * 64_000, KEY_BYTES + b"%00", KEY_BYTES + b" x", KEY_BYTES[:-1], KEY_BYTES + b"0", KEY_BYTES.swapcase(),
        b"Bearer " + KEY_BYTES, b'"' + KEY_BYTES + b'"', KEY_BYTES + b", Bearer " + KEY_BYTES, KEY_BYTES.hex().encode(),
    )},
    "key with a NUL": bad(keyed(b"authorization: Bearer " + KEY_BYTES + b"\0"), FIELD),
    "key of 1 MB": bad(keyed(b"authorization: Bearer " + b"k" * 1_000_000), "65536 bytes", 431),
    "key with a line behind": bad(keyed(b"authorization: Bearer x\nx-api-key: " + KEY_BYTES), FIELD),
    **{f"scheme {text!r}": missing(keyed(b"authorization: " + text)) for text in (b"", b"Bearer", b"Bearer ", b"Basic " + KEY_BYTES, b"Digest username=x", b"Token " + KEY_BYTES, KEY_BYTES, b"Bearer\xa0" + KEY_BYTES)},
    "x-api-key, empty": missing(keyed(b"x-api-key:")),
    "x-api-key of UTF-8": unknown(keyed("x-api-key: ключ".encode())),
    "two x-api-keys": Hostile(keyed(b"x-api-key: " + KEY_BYTES, b"x-api-key: other"), (401,), "invalid_api_key", "two different", closes=False),
    "x-api-key and another bearer": Hostile(keyed(b"x-api-key: other", BEARER), (401,), "invalid_api_key", "two different", closes=False),
    "the key twice is one key": fine(keyed(BEARER, BEARER)),
    "the key in two headers is one key": fine(keyed(b"x-api-key: " + KEY_BYTES, BEARER)),
    "a scheme in small letters": fine(keyed(b"authorization: bearer " + KEY_BYTES)),
    "blanks around the key": fine(keyed(b"authorization: Bearer   " + KEY_BYTES + b"  ")),
    "the key in a cookie": missing(keyed(b"cookie: authorization=" + KEY_BYTES, b"proxy-authorization: Bearer " + KEY_BYTES)),
}  # fmt: skip


def json_case(body: bytes | str, says: str = "JSON", param: str | None = None) -> Hostile:
    """A body that is refused with 400; the connection goes on."""
    data = body if isinstance(body, bytes) else body.encode()
    return Hostile(sized(data), (400,), "bad_request", says, closes=False, param=param)


DEEP = 100_000
JSON = {
    "true": json_case("true", "JSON object"),
    "an empty list": json_case("[]", "JSON object"),
    "white space": json_case(" \r\n\t"),
    "a NUL": json_case(b"\0"),
    "a NUL behind": json_case(NONE + b"\0"),
    "two objects": json_case(NONE + NONE),
    "a comment": json_case(b'{"model": "gpt-none" /* x */}'),
    "a comma too many": json_case(b'{"model": "gpt-none",}'),
    "a name without quotes": json_case(b'{model: "gpt-none"}'),
    "a bad escape": json_case(b'{"model": "gpt\\x20none"}'),
    "half an escape": json_case(b'{"model": "gpt\\u12"}'),
    "a control character": json_case(b'{"model": "gpt\x01none"}'),
    "a line in a string": json_case(b'{"model": "gpt\nnone"}'),
    "a number with zeros": json_case(b'{"model": "gpt-none", "n": 007}'),
    "a number with a plus": json_case(b'{"model": "gpt-none", "n": +1}'),
    "a number in hexadecimal": json_case(b'{"model": "gpt-none", "n": 0x1}'),
    "UTF-16, big end": json_case('{"model": "gpt-none"}'.encode("utf-16-be"), ""),
    "UTF-32": json_case('{"model": "gpt-none"}'.encode("utf-32"), ""),
    "UTF-7": json_case(b'+AHsAIg-model+ACI: "gpt-none"}'),
    "UTF-8 that is too long": json_case(b'{"model": "gpt\xc0\xaf"}', "UTF-8"),
    "a surrogate in UTF-8": json_case(b'{"model": "gpt\xed\xa0\x80"}', "UTF-8"),
    "a form": json_case(b"model=gpt-none&stream=true"),
    "a multipart body": json_case(b'--x\r\ncontent-disposition: form-data; name="model"\r\n\r\ngpt-none\r\n--x--\r\n'),
    "XML": json_case(b'<?xml version="1.0"?><!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]><a>&b;</a>'),
    "lists that are deep": json_case(b"[" * DEEP + b"]" * DEEP, ""),
    "lists that do not end": json_case(b"[" * DEEP, ""),
    "objects that are deep": json_case(b'{"a":' * DEEP + b"1" + b"}" * DEEP, "nested"),
    "a deep member": json_case(b'{"model": "gpt-none", "messages": ' + b'[{"a":' * DEEP + b"1" + b"}]" * DEEP + b"}", "nested"),
    "a model that is a list": json_case('{"model": ["gpt-none"]}', "model", "model"),
    "a model that is an object": json_case('{"model": {"a": 1}}', "model", "model"),
    "a model that is true": json_case('{"model": true}', "model", "model"),
    "a model in another case": json_case('{"Model": "gpt-none"}', "model", "model"),
    "stream that is a list": json_case('{"model": "gpt-none", "stream": []}', "stream", "stream"),
    "stream twice, the last odd": json_case('{"model": "gpt-none", "stream": true, "stream": "yes"}', "stream", "stream"),
    "stream twice, the first odd": json_case('{"model": "gpt-none", "stream": "yes", "stream": true}', "stream", "stream"),
    "a choice count that is no float": json_case('{"model": "gpt-none", "n": 1e400}', "`n`", "n"),
    "half a surrogate pair as model": json_case('{"model": "\\ud83d"}', "surrogate", "model"),
    "model twice, the last odd": json_case('{"model": "gpt-none", "model": 5}', "model", "model"),
    "a name spelled with escapes": none(sized(b'{"\\u006dodel": "gpt-none"}')),
    "a number that is no float": none(sized(b'{"model": "gpt-none", "x": 1e400}')),
    "a number of 100 KB": none(sized(b'{"model": "gpt-none", "x": ' + b"9" * 100_000 + b"}")),
    "100,000 members": none(sized(b'{"model": "gpt-none"' + b"".join(b',"a%d":0' % n for n in range(70_000)) + b"}")),
    "names that collide": none(sized(b'{"model": "gpt-none"' + b',"a":0' * 100_000 + b"}")),
    "a prototype": none(sized(b'{"model": "gpt-none", "__proto__": {"model": "one-x"}, "constructor": {}}')),
    **{f"model {text[:24]!r}": none(sized(json.dumps({"model": text}).encode())) for text in (
        "x\r\nset-cookie: a=b", "x\0", "\x1b[31m", "x@evil", "http://evil/", "//evil", "x-\nx: y", "%0d%0a", "'; DROP TABLE models;--", "<script>alert(1)</script>", "\u202e", "ﾓ" * 1000, "*", "pair*", "m" * 300_000, " ", "\u2028",
    )},
    "model '../../v1/files'": json_case('{"model": "../../v1/files"}', "`.` or `..`", "model"),
}  # fmt: skip


def encoded(data: bytes, coding: bytes, *lines: bytes) -> bytes:
    """A body under a Content-Encoding."""
    return sized(data, b"content-encoding: " + coding, *lines)


def coded(data: bytes, coding: bytes, says: str = "Content-Encoding", status: int = 400) -> Hostile:
    """An encoded body that is refused."""
    code = {400: "bad_request", 413: "payload_too_large", 415: "unsupported_encoding"}[status]
    return Hostile(encoded(data, coding), (status,), code, says, closes=False)


def zstd(data: bytes, **parameters: int) -> bytes:
    """A zstd frame of streaming form."""
    settings = zstandard.ZstdCompressionParameters.from_level(3, **parameters)
    machine = zstandard.ZstdCompressor(compression_params=settings).compressobj()
    return machine.compress(data) + machine.flush()


MB_100 = bytes(100_000_000)
BOMB = gzip.compress(MB_100, 9)
ZSTD_BOMB = zstd(MB_100)
BR_BOMB = brotli.compress(MB_100, quality=5)
# A zstd frame of 250 RLE blocks, 128 KiB each: 1 KB that are 32 MB.
RLE_BOMB = b"\x28\xb5\x2f\xfd\x00\x58" + (b"\x02\x00\x10" + b"x") * 249 + b"\x03\x00\x10" + b"x"
TOO_MUCH = "1048576"

BOMBS = {
    "gzip": coded(BOMB, b"gzip", TOO_MUCH, 413),
    "x-gzip": coded(BOMB, b"x-gzip", TOO_MUCH, 413),
    "deflate": coded(zlib.compress(MB_100, 9), b"deflate", TOO_MUCH, 413),
    "deflate without a wrapper": coded(zlib.compress(MB_100, 9)[2:-4], b"deflate", TOO_MUCH, 413),
    "br": coded(BR_BOMB, b"br", TOO_MUCH, 413),
    "zstd": coded(ZSTD_BOMB, b"zstd", TOO_MUCH, 413),
    "zstd of one-byte blocks": coded(RLE_BOMB, b"zstd", TOO_MUCH, 413),
    "zstd with a window of 128 MiB": coded(zstd(MB_100, window_log=27), b"zstd", TOO_MUCH, 413),
    "gzip in gzip": coded(gzip.compress(BOMB, 9), b"gzip, gzip", TOO_MUCH, 413),
    "gzip in gzip in gzip": coded(gzip.compress(gzip.compress(BOMB, 9)), b"gzip, gzip, gzip", TOO_MUCH, 413),
    "gzip in br in zstd": coded(zstd(brotli.compress(BOMB)), b"gzip, br, zstd", TOO_MUCH, 413),
    "many members": coded(gzip.compress(bytes(400_000), 9) * 30, b"gzip", TOO_MUCH, 413),
    "many frames": coded(zstd(bytes(400_000)) * 30, b"zstd", TOO_MUCH, 413),
    "in chunks": Hostile(post(b"content-encoding: gzip", TE, body=b"%x\r\n%b\r\n0\r\n\r\n" % (len(BOMB), BOMB)), (413,), "payload_too_large", TOO_MUCH, closes=False),
}  # fmt: skip

CODINGS = {
    "four codings": coded(b"x", b"gzip, gzip, gzip, gzip", "more than 3 encodings"),
    "a list that does not end": coded(b"x", b"gzip," * 1000, "more than 3 encodings"),
    "compress": coded(NONE, b"compress", "gzip, deflate, br or zstd", 415),
    "a coding in quotes": coded(NONE, b'"gzip"', "gzip", 415),
    "a coding with a parameter": coded(NONE, b"gzip;q=1", "gzip", 415),
    "a coding of bytes": coded(NONE, b"\xff\xfe", "gzip", 415),
    "aes128gcm": coded(NONE, b"aes128gcm", "gzip", 415),
    "br that is none": coded(b"\xff" * 100, b"br"),
    "zstd that is none": coded(NONE, b"zstd"),
    "deflate that is none": coded(b"\x08\xff" + NONE, b"deflate"),
    "gzip that is plain": coded(NONE, b"gzip"),
    "br that is cut": coded(brotli.compress(NONE * 100)[:-3], b"br", "cut short"),
    "zstd that is cut": coded(zstd(NONE * 100)[:-3], b"zstd", "cut short"),
    "deflate that is cut": coded(zlib.compress(NONE * 100)[:-3], b"deflate", "cut short"),
    "gzip of nothing": coded(b"", b"gzip", ""),
    "gzip with a bad sum": coded(gzip.compress(NONE)[:-8] + bytes(8), b"gzip"),
    "gzip with something behind": coded(gzip.compress(NONE) + b"more", b"gzip"),
    "deflate with something behind": coded(zlib.compress(NONE) + b"more", b"deflate"),
    "zstd with a window that is too large": coded(b"\x28\xb5\x2f\xfd\x00\xa8" + b"\x01\x00\x00", b"zstd"),
    "zstd with a dictionary": coded(b"\x28\xb5\x2f\xfd\x23\x01\x00\x00\x00\x15" + NONE, b"zstd"),
    "gzip, in capitals": none(encoded(gzip.compress(NONE), b"GZIP")),
    "identity": none(encoded(NONE, b"identity")),
    "gzip, identity": none(encoded(gzip.compress(NONE), b"gzip, identity")),
    "br": none(encoded(brotli.compress(NONE), b"br")),
    "zstd": none(encoded(zstd(NONE), b"zstd")),
    "deflate, gzip": none(encoded(gzip.compress(zlib.compress(NONE)), b"deflate, gzip")),
}  # fmt: skip

ONE = get()
PIPELINES = {
    "two": Hostile(ONE * 2, (200, 200), None, closes=False),
    "three": Hostile(sized(NONE) * 3, (404, 404), "model_not_found", param="model"),
    "fifty": Hostile(sized(NONE) * 50, (404, 404), "model_not_found", param="model"),
    "three pages, which are answered as they come": Hostile(ONE * 3, (200, 200, 200), None, closes=False),
    "a body behind": Hostile(ONE + sized(NONE), (200, 404), "model_not_found", closes=False, param="model"),
    "two bodies": Hostile(sized(NONE) * 2, (404, 404), "model_not_found", closes=False, param="model"),
    "a chunked body, then a page": Hostile(chunks(CHUNKED) + ONE, (404, 200), None, closes=False),
    "a bad one behind": Hostile(ONE + raw(b"GET /healthz HTTP/1.1"), (200, 400), "bad_request", HOST),
    "noise behind": Hostile(ONE + b"\0\0\0\0", (200, 400), "bad_request"),
    "a good one behind a bad one": bad(raw(b"GET /healthz HTTP/1.1", body=ONE), HOST),
    "a good one behind the last one": fine(get(b"connection: close", body=ONE), closes=True),
    "a good one behind HTTP/1.0": fine(get(start=b"GET /healthz HTTP/1.0", body=ONE), closes=True),
    "a good one behind too large a body": bad(post(b"content-length: 9999999", body=ONE), TOO_MUCH, 413, "payload_too_large"),
}  # fmt: skip

TABLES = {
    f"{table}: {name}": case
    for table, cases in {
        "framing": SMUGGLING, "chunk": CHUNKS, "line": LINES, "field": FIELDS, "key": KEYS, "JSON": JSON,
        "bomb": BOMBS, "coding": CODINGS, "pipeline": PIPELINES,
    }.items()
    for name, case in cases.items()
}  # fmt: skip
