import asyncio
import os
import signal
from pathlib import Path

import pytest

from headrace.simulator import ScriptError, Simulator, serve
from headrace.simulator.serving import DEFAULT_PORT, address_from
from tests.simulator.wire import ask


@pytest.mark.parametrize(
    ("listen", "address"),
    [
        ("127.0.0.1:80", ("127.0.0.1", 80)),
        ("[::1]:0", ("::1", 0)),
        ("localhost", ("localhost", DEFAULT_PORT)),
        (":9000", ("127.0.0.1", 9000)),
        ("9000", ("127.0.0.1", 9000)),
    ],
)
def test_addresses(listen: str, address: tuple[str, int]) -> None:
    assert address_from(listen) == address


@pytest.mark.parametrize("listen", ["a:b", "a:70000", "a:"])
def test_bad_addresses(listen: str) -> None:
    with pytest.raises(ValueError, match="no address to listen on"):
        address_from(listen)


@pytest.mark.anyio
async def test_it_serves_a_script_until_a_signal(tmp_path: Path) -> None:
    script = tmp_path / "script.yaml"
    script.write_text("scenarios: {default: {body: hello}}", "utf-8")
    ready: asyncio.Future[Simulator] = asyncio.get_running_loop().create_future()
    serving = asyncio.ensure_future(serve("127.0.0.1:0", script, on_ready=ready.set_result))
    sim = await asyncio.wait_for(ready, 5)
    assert (await ask(sim)).body == b"hello"
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.wait_for(serving, 5)
    with pytest.raises(OSError):
        await asyncio.open_connection(sim.host, sim.port)


@pytest.mark.anyio
async def test_a_bad_script_is_told_before_it_listens(tmp_path: Path) -> None:
    with pytest.raises(ScriptError):
        await serve(":0", tmp_path / "absent.yaml")
