"""Faults as a client sees them, on raw sockets."""

import asyncio
import gzip
import json

import pytest

from headrace.simulator import End, Recorded, Simulator
from tests.simulator.wire import CHAT, Heard, ask, hear, request_bytes

pytestmark = pytest.mark.anyio

TEXT = {"text": ["A", "北", "C"]}
SHORT_S = 0.1  # long enough to see that nothing comes


async def only(sim: Simulator) -> Recorded:
    await sim.idle()
    (record,) = sim.requests
    return record


async def test_a_whole_stream() -> None:
    async with Simulator() as sim:
        heard = await ask(sim, TEXT)
        record = await only(sim)
    assert (heard.status, heard.text, heard.payloads[-1], heard.rest) == (200, "A北C", "[DONE]", b"")
    assert (heard.end, record.end, record.closed_early) == ("eof", End.COMPLETE, False)
    assert (record.sent, record.events_written, record.bytes_written) == (heard.body, 6, len(heard.body))
    assert (record.truth.completion, record.truth.sent) == (2, 2)


@pytest.mark.parametrize(("how", "end"), [("rst", "rst"), ("fin", "eof")])
async def test_a_cut_between_events(how: str, end: str) -> None:
    async with Simulator() as sim:
        heard = await ask(sim, {**TEXT, "cut": {"after_events": 2, "how": how}})
        record = await only(sim)
    assert (heard.text, heard.end, heard.rest) == ("A", end, None)
    assert (record.end, record.events_written) == (End.CUT, 2)


@pytest.mark.parametrize("how", ["rst", "fin"])
async def test_a_cut_inside_an_event(how: str) -> None:
    async with Simulator() as sim:
        whole = await ask(sim, {**TEXT, "id": "x", "created": 1})
        heard = await ask(sim, {**TEXT, "id": "x", "created": 1, "cut": {"after_events": 2, "extra": -12, "how": how}})
        await sim.idle()
    third = whole.body.split(b"\n\n")[2] + b"\n\n"
    assert heard.body.endswith(third[:-12])
    assert whole.body.startswith(heard.body)


async def test_a_clean_early_end_is_well_framed() -> None:
    async with Simulator() as sim:
        heard = await ask(sim, {**TEXT, "cut": {"at_byte": 10, "how": "clean"}})
        record = await only(sim)
    assert (len(heard.body), heard.rest, heard.end) == (10, b"", "eof")
    assert record.end is End.CUT


async def test_a_stall_keeps_the_connection_open_until_the_client_leaves() -> None:
    async with Simulator() as sim:
        heard = await ask(sim, {**TEXT, "cut": {"after_events": 2, "how": "stall"}}, wait_s=SHORT_S)
        record = await only(sim)
    assert (heard.text, heard.end) == ("A", "open")
    assert (record.end, record.closed_early) == (End.CLIENT_CLOSED, True)


async def test_heartbeats_in_a_stall() -> None:
    fields = {**TEXT, "cut": {"after_events": 1, "how": "stall"}, "heartbeats": {"every": 0.01, "form": ": hi\n\n"}}
    async with Simulator() as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port)
        writer.write(request_bytes(fields))
        heard = await hear(reader, Heard(), 5, until=b": hi\n\n\r\n6\r\n: hi\n\n\r\n6\r\n: hi\n\n")
        writer.transport.abort()
        record = await only(sim)
    assert heard.end == "open"
    assert record.events_written == 1


@pytest.mark.parametrize(("how", "end"), [("rst", "rst"), ("fin", "eof")])
async def test_a_cut_head(how: str, end: str) -> None:
    async with Simulator() as sim:
        heard = await ask(sim, {"cut": {"head_bytes": 15, "how": how}})
    assert (heard.raw, heard.end) == (b"HTTP/1.1 200 OK", end)


@pytest.mark.parametrize("when", ["head", "body"])
@pytest.mark.parametrize(("how", "end"), [("rst", "rst"), ("fin", "eof")])
async def test_a_refused_request_has_no_answer(when: str, how: str, end: str) -> None:
    async with Simulator() as sim:
        heard = await ask(sim, {"refuse": {"when": when, "how": how}})
        record = await only(sim)
    assert (heard.raw, record.end) == (b"", End.REFUSED)
    # Closed with a body unread, the kernel may reset.
    assert heard.end == end or when == "head"
    if when == "body":
        assert record.body_length == int(record.header("content-length") or "")


async def test_a_request_refused_at_its_head_is_not_read() -> None:
    async with Simulator() as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port)
        writer.write(request_bytes({"refuse": "head"}, headers={"Content-Length": "1000"}, body=b"x"))
        heard = await hear(reader, Heard(), 5)
        writer.transport.abort()
    assert heard.end in ("eof", "rst")
    assert heard.raw == b""


async def test_an_answer_without_reading_the_body() -> None:
    async with Simulator() as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port)
        head = request_bytes(
            {"ignore_request_body": True, "status": 413}, headers={"Content-Length": "100000"}, body=b"", close=False
        )
        writer.write(head)
        heard = await hear(reader, Heard(), 5)
        writer.transport.abort()
        record = await only(sim)
    assert (heard.status, heard.header("connection"), heard.end) == (413, "close", "eof")
    assert (record.body_length, record.received_s) == (0, None)


async def test_a_stream_without_reading_the_body() -> None:
    async with Simulator() as sim:
        heard = await ask(sim, {**TEXT, "ignore_request_body": True, "stream": True}, body=b"")
    assert (heard.status, heard.text) == (200, "A北C")


async def test_expect_is_answered() -> None:
    async with Simulator() as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port)
        whole = request_bytes(TEXT, headers={"Expect": "100-continue"})
        head, _, body = whole.partition(b"\r\n\r\n")
        writer.write(head + b"\r\n\r\n")
        assert await reader.readuntil(b"\r\n\r\n") == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        heard = await hear(reader, Heard(), 5)
        writer.close()
    assert heard.text == "A北C"


async def test_chunked_request_bodies() -> None:
    body = json.dumps({"model": "sim-fast", "messages": [{"role": "user", "content": "hé"}]}).encode()
    async with Simulator() as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port)
        writer.write(b"POST /chat/completions HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n")
        for byte in range(0, len(body), 9):
            part = body[byte : byte + 9]
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        writer.write(b"0\r\n\r\n")
        heard = await hear(reader, Heard(), 5, until=b"hatcmpl")
        writer.close()
        assert heard.status == 200
        assert sim.requests[0].body == body


async def test_interim_replies_come_first() -> None:
    async with Simulator() as sim:
        heard = await ask(sim, {**TEXT, "interim": [103]})
    assert heard.raw.startswith(b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\n")


async def test_keep_alive_and_requests_that_do_not_wait() -> None:
    async with Simulator() as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port)
        requests = [request_bytes({"body": f"<{n}>", "head_delay": 0.01}, close=False) for n in range(3)]
        writer.write(requests[0] + requests[1])
        heard = await hear(reader, Heard(), 5, until=b"<1>")
        writer.write(requests[2])
        await hear(reader, heard, 5, until=b"<2>")
        writer.transport.abort()
        await sim.idle()
        assert [record.connection for record in sim.requests] == [1, 1, 1]
    order = [heard.raw.index(b"<%d>" % n) for n in range(3)]
    assert order == sorted(order)


async def test_too_many_waiting_requests_end_the_connection() -> None:
    async with Simulator() as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port)
        writer.write(request_bytes({"head_delay": 60}, close=False) + request_bytes(TEXT, close=False) * 20)
        assert (await hear(reader, Heard(), 5)).end in ("eof", "rst")
        writer.transport.abort()


async def test_keep_alive_can_be_off_or_end_when_idle() -> None:
    async with Simulator() as sim:
        off = await ask(sim, {**TEXT, "keep_alive": False}, close=False)
        idle = await ask(sim, {**TEXT, "close_idle_after": 0.01}, close=False)
        kept = await ask(sim, TEXT, close=False, wait_s=SHORT_S)
    assert (off.header("connection"), off.end) == ("close", "eof")
    assert (idle.header("connection"), idle.end) == ("keep-alive", "eof")
    assert (kept.header("connection"), kept.end) == ("keep-alive", "open")


async def test_a_request_in_time_stops_the_idle_close() -> None:
    async with Simulator() as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port)
        writer.write(request_bytes({"body": "<1>", "close_idle_after": 0.05}, close=False))
        heard = await hear(reader, Heard(), 5, until=b"<1>")
        writer.write(request_bytes({"body": "<2>", "first_delay": 0.1}, close=False))
        await hear(reader, heard, 5, until=b"<2>")
        writer.transport.abort()
    assert b"<2>" in heard.raw


async def test_framings() -> None:
    async with Simulator() as sim:
        length = await ask(sim, {**TEXT, "framing": "length"}, close=False, wait_s=SHORT_S)
        close = await ask(sim, {**TEXT, "framing": "close"}, close=False)
        old = await ask(sim, TEXT, version="1.0")
    assert (length.header("content-length"), length.end) == (str(len(length.body)), "open")
    for heard in (close, old):
        assert (heard.header("connection"), heard.chunked, heard.end) == ("close", False, "eof")
        assert heard.payloads[-1] == "[DONE]"


async def test_surplus_and_trailers() -> None:
    async with Simulator() as sim:
        heard = await ask(sim, {**TEXT, "surplus": "left over", "trailers": {"x-t": "1"}})
    assert heard.after_head.endswith(b"0\r\nx-t: 1\r\n\r\nleft over")


async def test_a_told_length_shows_the_cut() -> None:
    async with Simulator() as sim:
        heard = await ask(sim, {"cut": {"at_byte": 10, "how": "fin"}}, body={"model": "m"})
    assert (len(heard.body), int(heard.header("content-length") or "") > 10) == (10, True)


async def test_an_encoded_reply() -> None:
    async with Simulator() as sim:
        whole = await ask(sim, {**TEXT, "content_encoding": "gzip"}, body={"model": "m"})
        stream = await ask(sim, {**TEXT, "content_encoding": "gzip"})
    assert json.loads(gzip.decompress(whole.body))["object"] == "chat.completion"
    assert (whole.header("content-encoding"), whole.header("content-length")) == ("gzip", str(len(whole.body)))
    assert gzip.decompress(stream.body).endswith(b"data: [DONE]\n\n")


async def test_every_event_is_its_own_write_and_a_byte_too() -> None:
    async with Simulator() as sim:
        events = await ask(sim, {"events": ["data: 1\n\n", "data: 2\n\n"], "gap": 0.02, "first_delay": 0.02})
        single = await ask(sim, {"events": ["data: 北\n\n"], "writes": "byte"})
    assert [b"data" in read for read in events.reads].count(True) == 2
    assert single.after_head.count(b"1\r\n") == len("data: 北\n\n".encode())


async def test_a_split_is_paused_inside_a_character() -> None:
    fields = {"events": ["data: 北\n\n"], "writes": {"at": [7], "gap": 0.05}}
    async with Simulator() as sim:
        heard = await ask(sim, fields)
    bodies = [read for read in heard.reads if "北".encode()[1:] in read]
    assert len(bodies) == 1
    assert "北".encode()[:1] not in bodies[0]


async def test_the_tail_is_held() -> None:
    async with Simulator() as sim:
        held = await ask(sim, {**TEXT, "tail_hold": 60}, wait_s=SHORT_S)
        short = await ask(sim, {**TEXT, "tail_hold": 0.02})
    assert (held.payloads[-1], held.rest, held.end) == ("[DONE]", None, "open")
    assert short.rest == b""


async def test_a_client_that_leaves_is_seen_at_once() -> None:
    async with Simulator() as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port)
        writer.write(request_bytes({"repeat": 1000, "gap": 0.01}))
        await hear(reader, Heard(), 5, until=b" headrace")
        writer.close()
        record = await only(sim)
    assert (record.end, record.closed_early) == (End.CLIENT_CLOSED, True)
    assert 0 < record.events_written < 500
    assert 0 < record.truth.sent < record.truth.completion


async def test_a_client_that_does_not_read_stops_the_stream() -> None:
    async with Simulator({"scenarios": {"long": {"text": ["x" * 100_000, "y"], "repeat": 1000}}}) as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port, limit=1024)
        writer.write(request_bytes("long"))
        await reader.read(10)
        before = -1
        while before != sim.requests[0].bytes_written:
            before = sim.requests[0].bytes_written
            await asyncio.sleep(0.05)
        assert 0 < before < 50_000_000
        heard = await hear(reader, Heard(), 5)
        record = await only(sim)
        writer.transport.abort()
    assert (record.end, heard.end) == (End.COMPLETE, "eof")
    assert 100_000_000 < record.bytes_written < len(heard.raw)


async def test_a_reply_behind_one_that_is_not_read_waits() -> None:
    scenarios = {"big": {"body": {"text": "x", "repeat": 20_000_000}}, "long": {"text": ["x" * 99_999], "repeat": 1000}}
    async with Simulator({"scenarios": scenarios}) as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port, limit=1024)
        writer.write(request_bytes("big", close=False) + request_bytes("long", close=False))
        await reader.read(10)
        while len(sim.requests) < 2 or sim.requests[1].head_sent_s is None:  # noqa: ASYNC110  (there is no event)
            await asyncio.sleep(0)
        await asyncio.sleep(0.05)
        assert sim.requests[1].bytes_written == 0
        writer.transport.abort()


async def test_what_is_not_http_is_answered_and_closed() -> None:
    async with Simulator() as sim:
        reader, writer = await asyncio.open_connection(sim.host, sim.port)
        writer.write(b"hello\r\n\r\n")
        heard = await hear(reader, Heard(), 5)
        writer.close()
    assert (heard.status, heard.end) == (400, "eof")


async def test_an_upgrade_is_answered_as_a_plain_request() -> None:
    async with Simulator() as sim:
        headers = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
        heard = await ask(sim, method="GET", path="/v1/responses", headers=headers)
    assert (heard.status, heard.end) == (405, "eof")


async def test_a_bad_scenario_in_a_request_is_named() -> None:
    async with Simulator() as sim:
        heard = await ask(sim, {"cut": {"how": "bang"}})
    error = json.loads(heard.body)["error"]
    assert (heard.status, error["code"], error["param"]) == (400, "bad_scenario", "x-simulate")
    assert error["message"] == "x-simulate.cut.how: 'bang' is not one of rst, fin, clean, stall"


async def test_stopping_ends_open_streams() -> None:
    sim = Simulator()
    await sim.start()
    reader, writer = await asyncio.open_connection(sim.host, sim.port)
    writer.write(request_bytes("sim-stall", path=CHAT))
    await hear(reader, Heard(), 5, until=b"content")
    await sim.stop()
    assert (await hear(reader, Heard(), 5)).end in ("eof", "rst")
    assert sim.requests[0].end is End.STOPPED
    writer.transport.abort()
