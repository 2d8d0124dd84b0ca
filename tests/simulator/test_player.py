import asyncio
import socket
import time
from collections.abc import Iterator
from typing import cast

import pytest

from headrace.simulator.player import TURN_BYTES, Player, reset, unsent_bytes
from headrace.simulator.recorder import Recorder, Recording
from headrace.simulator.reply import Reply
from headrace.simulator.scenario import How
from headrace.simulator.spelling import Event
from headrace.simulator.timeline import Step, Timeline

pytestmark = pytest.mark.anyio


class Transport:
    """Counts writes; each loop turn in which something was written is one entry of `turns`."""

    def __init__(self) -> None:
        self.turns: list[list[bytes]] = []
        self.full_after: int | None = None
        self.player: Player | None = None
        self._open = False

    def write(self, data: bytes) -> None:
        if not self._open:
            self.turns.append([])
            self._open = True
            asyncio.get_running_loop().call_soon(self._close)
        self.turns[-1].append(data)
        if self.full_after is not None and len(self.written) >= self.full_after and self.player is not None:
            self.full_after = None
            self.player.pause()

    def _close(self) -> None:
        self._open = False

    @property
    def written(self) -> bytes:
        return b"".join(data for turn in self.turns for data in turn)


def reply(steps: Iterator[Step], *, chunked: bool = False, head_delay_s: float = 0.0, how: How | None = None) -> Reply:
    timeline = Timeline([Event()], lambda event: event.raw)
    timeline.how = how
    return Reply(200, b"", b"HEAD", head_delay_s, steps, timeline, chunked, b"TAIL", True, None)


class Played:
    def __init__(self, made: Reply, recording: Recording | None = None) -> None:
        self.transport = Transport()
        self.ended: asyncio.Future[How | None] = asyncio.get_running_loop().create_future()
        self.player = Player(cast(asyncio.Transport, self.transport), made, recording, self.ended.set_result)
        self.transport.player = self.player

    async def end(self) -> How | None:
        return await asyncio.wait_for(self.ended, 5)


async def test_head_steps_and_tail_are_written_in_order() -> None:
    recording = Recorder(1).begin(1)
    played = Played(reply(iter([Step(0, b"a", 1), Step(0, b"", 0), Step(0, b"b", 1)])), recording)
    played.player.start()
    assert await played.end() is None
    assert played.transport.written == b"HEADabTAIL"
    assert (recording.record.status, recording.record.events_written, recording.record.bytes_written) == (200, 2, 2)


async def test_chunks_are_framed() -> None:
    played = Played(reply(iter([Step(0, b"x" * 26, 1)]), chunked=True))
    played.player.start()
    await played.end()
    assert played.transport.written == b"HEAD1a\r\n" + b"x" * 26 + b"\r\nTAIL"


async def test_pauses_are_kept_and_nothing_is_written_ahead() -> None:
    loop = asyncio.get_running_loop()
    played = Played(reply(iter([Step(0.02, b"a", 1), Step(0.02, b"b", 1)]), head_delay_s=0.02))
    start = loop.time()
    played.player.start()
    assert played.transport.written == b""
    await played.end()
    assert loop.time() - start >= 0.055  # a clock's granularity below 0.06
    assert played.transport.turns == [[b"HEAD"], [b"a"], [b"b", b"TAIL"]]


async def test_a_late_loop_catches_up_in_one_turn() -> None:
    taken: list[int] = []

    def steps() -> Iterator[Step]:
        for number in range(5):
            taken.append(number)
            yield Step(0.001, b"x", 1)

    played = Played(reply(steps()))
    played.player.start()
    assert taken == [0]
    late = time.monotonic() + 0.02  # not the loop's clock: uvloop's stands still within a turn
    while time.monotonic() < late:
        pass
    await played.end()
    # uvloop may run the late timer before the handle that closes the head's turn.
    assert played.transport.written == b"HEADxxxxxTAIL"
    assert len(played.transport.turns) <= 2


async def test_alone_steps_have_a_turn_each() -> None:
    played = Played(reply(iter([Step(0, b"a", alone=True), Step(0, b"b", alone=True), Step(0, b"c"), Step(0, b"d")])))
    played.player.start()
    await played.end()
    assert played.transport.turns == [[b"HEAD"], [b"a"], [b"b"], [b"c", b"d", b"TAIL"]]


async def test_a_turn_has_its_share() -> None:
    block = b"x" * (TURN_BYTES // 2)
    played = Played(reply(iter([Step(0, block) for _ in range(5)])))
    played.player.start()
    await played.end()
    assert [len(turn) for turn in played.transport.turns] == [1, 2, 2, 2]


async def test_a_full_transport_stops_the_play_until_it_drains() -> None:
    played = Played(reply(iter([Step(0, b"a"), Step(0, b"b"), Step(0.001, b"c"), Step(0, b"d")])))
    played.transport.full_after = 5
    played.player.start()
    await asyncio.sleep(0.01)
    assert played.transport.written == b"HEADa"
    played.player.resume()
    played.transport.full_after = 6
    await asyncio.sleep(0.01)
    assert played.transport.written == b"HEADab"
    played.player.resume()
    played.player.resume()
    await played.end()
    assert played.transport.written == b"HEADabcdTAIL"


async def test_a_stopped_play_writes_no_more() -> None:
    played = Played(reply(iter([Step(0.001, b"a")])))
    played.player.start()
    played.player.stop()
    played.player.resume()
    await asyncio.sleep(0.01)
    assert played.transport.written == b"HEAD"
    assert not played.ended.done()


@pytest.mark.parametrize(("how", "written"), [(How.RST, b"HEADa"), (How.STALL, b"HEADa"), (How.CLEAN, b"HEADaTAIL")])
async def test_only_a_clean_end_has_the_tail(how: How, written: bytes) -> None:
    played = Played(reply(iter([Step(0, b"a")]), how=how))
    played.player.start()
    assert await played.end() is how
    assert played.transport.written == written


async def test_a_reset_follows_what_was_written() -> None:
    size = 3 << 20
    got = bytearray()
    reset_seen = asyncio.Event()

    def serve(sock: socket.socket) -> None:
        async def run() -> None:
            loop = asyncio.get_running_loop()
            transport, _ = await loop.connect_accepted_socket(asyncio.Protocol, sock)
            transport.write(b"x" * size)
            assert transport.get_write_buffer_size() + unsent_bytes(transport) > 0
            reset(transport)

        tasks.append(asyncio.ensure_future(run()))

    tasks: list[asyncio.Task[None]] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        serve(listener.accept()[0])
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    try:
        while data := await asyncio.wait_for(loop.sock_recv(client, 1 << 20), 5):
            got += data
    except ConnectionResetError:
        reset_seen.set()
    client.close()
    await asyncio.gather(*tasks)
    assert reset_seen.is_set()
    assert len(got) == size
