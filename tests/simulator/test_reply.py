from headrace.simulator.reply import Body, Reply, head_bytes, reply_from
from headrace.simulator.scenario import Cut, Encoding, Faults, Framing, How, Scenario
from headrace.simulator.spelling import Event
from headrace.simulator.timeline import Timeline


def made(
    faults: Faults | None = None, framing: Framing = Framing.CHUNKED, version: str = "1.1", keep: bool = True
) -> Reply:
    body = Body("text/x", Timeline([Event(raw=b"abc")], lambda event: event.raw), framing, 3)
    return reply_from(Scenario(faults=faults or Faults()), body, (("x-own", "1"),), version, keep_alive=keep)


def headers(reply: Reply) -> dict[str, str]:
    lines = reply.head.decode().split("\r\n")[1:-2]
    return {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}


def test_a_chunked_head() -> None:
    reply = made()
    assert reply.head.startswith(b"HTTP/1.1 200 OK\r\n")
    assert reply.head.endswith(b"\r\n\r\n")
    found = headers(reply)
    assert found.pop("date").endswith("GMT")
    assert found == {
        "content-type": "text/x",
        "transfer-encoding": "chunked",
        "connection": "keep-alive",
        "x-own": "1",
    }
    assert (reply.chunked, reply.tail, reply.keep_alive) == (True, b"0\r\n\r\n", True)


def test_other_framings() -> None:
    length = made(framing=Framing.LENGTH)
    assert (headers(length)["content-length"], length.tail) == ("3", b"")
    close = made(framing=Framing.CLOSE)
    assert (headers(close)["connection"], close.keep_alive, close.tail) == ("close", False, b"")


def test_http_1_0_knows_no_chunks() -> None:
    reply = made(version="1.0")
    assert (reply.chunked, reply.keep_alive) == (False, False)
    assert "transfer-encoding" not in headers(reply)
    assert made(framing=Framing.LENGTH, version="1.0").keep_alive


def test_keep_alive_is_off_if_either_side_says_so() -> None:
    assert headers(made(keep=False))["connection"] == "close"
    assert not made(Faults(keep_alive=False)).keep_alive


def test_headers_replace_add_repeat_and_vanish() -> None:
    own = (("X-Own", ("2",)), ("set-cookie", ("a", "b")), ("Date", ()))
    text = made(Faults(headers=own)).head.decode()
    assert "x-own: 1" not in text
    assert "X-Own: 2\r\nset-cookie: a\r\nset-cookie: b\r\n" in text
    assert "Date" not in text


def test_encoding_interim_trailers_and_surplus() -> None:
    faults = Faults(content_encoding=Encoding.GZIP, interim=(103,), trailers=(("x-t", ("1",)),), surplus=b"more")
    reply = made(faults)
    assert headers(reply)["content-encoding"] == "gzip"
    assert reply.interim == b"HTTP/1.1 103 Early Hints\r\n\r\n"
    assert reply.tail == b"0\r\nx-t: 1\r\n\r\nmore"


def test_a_cut_head() -> None:
    reply = made(Faults(cut=Cut(How.FIN, head_bytes=12)))
    assert (reply.head, reply.head_cut) == (b"HTTP/1.1 200", How.FIN)


def test_an_unknown_status_has_no_reason() -> None:
    assert head_bytes(529, ()) == b"HTTP/1.1 529 \r\n\r\n"
