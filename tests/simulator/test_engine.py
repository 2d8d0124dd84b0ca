import asyncio
import json
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import openai
import pytest
import trustme
from openai.types.chat import ChatCompletionUserMessageParam

from headrace.simulator import ScriptError, Simulator
from tests.simulator.wire import Heard, ask, hear, request_bytes

pytestmark = pytest.mark.anyio

HELLO: list[ChatCompletionUserMessageParam] = [{"role": "user", "content": "hello 北京 🌊"}]


@asynccontextmanager
async def sdk(sim: Simulator, key: str = "sk-test") -> AsyncIterator[openai.AsyncOpenAI]:
    async with openai.AsyncOpenAI(base_url=sim.url, api_key=key, max_retries=0) as client:
        yield client


async def test_the_sdk_streams_text_and_usage() -> None:
    async with Simulator() as sim, sdk(sim) as client:
        stream = await client.chat.completions.create(
            model="sim-fast", messages=HELLO, stream=True, stream_options={"include_usage": True}
        )
        chunks = [chunk async for chunk in stream]
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == "hello 北京 🌊"
    assert chunks[-2].choices[0].finish_reason == "stop"
    usage = chunks[-1].usage
    assert usage is not None
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens
    assert sim.requests[0].credential == "sk-test"


async def test_the_sdk_reads_a_whole_reply() -> None:
    async with Simulator() as sim, sdk(sim) as client:
        reply = await client.chat.completions.create(model="sim-echo", messages=HELLO, n=2)
    assert [choice.message.content for choice in reply.choices] == ["hello 北京 🌊"] * 2
    assert reply.usage is not None
    assert reply._request_id is not None
    assert reply._request_id.startswith("req_")


async def test_the_sdks_own_accumulator_takes_the_tools_and_the_reasoning() -> None:
    async with Simulator() as sim, sdk(sim) as client:
        sim.scenario("tools", {"tool_calls": [{"name": "f", "arguments": {"city": "北京"}}], "reasoning": "hm"})
        async with client.chat.completions.stream(model="tools", messages=HELLO) as stream:
            final = await stream.get_final_completion()
    message = final.choices[0].message
    assert message.tool_calls is not None
    function = message.tool_calls[0].function
    assert (function.name, json.loads(function.arguments)) == ("f", {"city": "北京"})
    assert message.model_extra is not None
    assert message.model_extra["reasoning_content"] == "hm"


@pytest.mark.parametrize(
    ("model", "error"),
    [
        ("sim-429", openai.RateLimitError),
        ("sim-500", openai.InternalServerError),
        ("sim-401", openai.AuthenticationError),
        ("sim-refuse", openai.APIConnectionError),
    ],
)
async def test_the_sdk_raises_its_errors(model: str, error: type[openai.APIError]) -> None:
    async with Simulator() as sim, sdk(sim) as client:
        with pytest.raises(error):
            await client.chat.completions.create(model=model, messages=HELLO)


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"error_first": True}, openai.APIError),
        ({"error_at": 2}, openai.APIError),
        ({"cut": {"after_events": 2, "how": "rst"}}, openai.APIConnectionError),
        ({"cut": {"after_events": 2, "how": "fin"}}, openai.APIConnectionError),
    ],
)
async def test_the_sdk_raises_in_a_stream(fields: dict[str, object], error: type[openai.APIError]) -> None:
    async with Simulator() as sim, sdk(sim) as client:
        sim.scenario("bad", fields)
        stream = await client.chat.completions.create(model="bad", messages=HELLO, stream=True)
        with pytest.raises(error):
            _ = [chunk async for chunk in stream]


async def test_the_sdk_lists_models_and_embeds() -> None:
    async with Simulator({"listed": ["a/b", "c"]}) as sim, sdk(sim) as client:
        assert [model.id async for model in client.models.list()] == ["a/b", "c"]
        assert (await client.models.retrieve("c")).id == "c"
        with pytest.raises(openai.NotFoundError):
            await client.models.retrieve("d")
        reply = await client.embeddings.create(model="e", input=["x", "y"], dimensions=8)
    assert [len(item.embedding) for item in reply.data] == [8, 8]


async def test_the_sdk_retries_through_a_sequence() -> None:
    async with Simulator() as sim:
        sim.scenario("flaky", {"sequence": [{"status": 429, "headers": {"retry-after-ms": "1"}}, {"text": "ok"}]})
        async with openai.AsyncOpenAI(base_url=sim.url, api_key="k", max_retries=1) as client:
            reply = await client.chat.completions.create(model="flaky", messages=HELLO)
    assert reply.choices[0].message.content == "ok"
    assert [record.status for record in sim.requests] == [429, 200]


async def test_keys_are_checked() -> None:
    async with Simulator({"keys": ["sk-good"]}) as sim:
        async with sdk(sim, "sk-good") as client:
            await client.models.list()
        async with sdk(sim, "sk-bad") as client:
            with pytest.raises(openai.AuthenticationError, match="Incorrect API key"):
                await client.models.list()


async def test_records_can_be_read_and_reset_over_http() -> None:
    async with Simulator() as sim:
        await ask(sim, {"text": "hé"}, headers={"X-Own": "1"})
        heard = await ask(sim, method="GET", path="/_simulator/requests")
        (record,) = json.loads(heard.body)
        assert (record["number"], record["target"], record["end"]) == (1, "/v1/chat/completions", "complete")
        assert ["X-Own", "1"] in record["headers"]
        assert record["truth"]["completion"] == 1
        assert len(sim.requests) == 1
        assert (await ask(sim, method="DELETE", path="/_simulator/requests", body=b"")).status == 200
        assert sim.requests == []
        assert (await ask(sim, method="POST", path="/_simulator/requests")).status == 405
        assert (await ask(sim, method="GET", path="/_simulator/else")).status == 404


async def test_scenarios_can_be_replaced_at_run_time() -> None:
    async with Simulator() as sim:
        sim.scenario("s", {"sequence": [{"body": "<1>"}, {"body": "<2>"}]})
        assert [(await ask(sim, "s")).body for _ in range(2)] == [b"<1>", b"<2>"]
        sim.scenario("s", {"body": "<3>"})
        assert (await ask(sim, "s")).body == b"<3>"
        with pytest.raises(ScriptError, match=r"scenarios\.s\.gap"):
            sim.scenario("s", {"gap": "x"})
        sim.reset()
        assert sim.requests == []


async def test_records_are_bounded() -> None:
    async with Simulator({"record": 2}) as sim:
        for _ in range(3):
            await ask(sim, {"body": "x"})
        assert [record.number for record in sim.requests] == [2, 3]


async def test_connections_can_be_refused_at_accept() -> None:
    async with Simulator({"refuse_connections": 1}) as sim:
        assert (await ask(sim, {"body": "x"})).raw == b""
        assert (await ask(sim, {"body": "x"})).status == 200
        sim.refuse_connections = 1
        assert (await ask(sim, {"body": "x"})).raw == b""
        assert (sim.connections_made, len(sim.requests)) == (3, 1)


def contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's, and that of a client who trusts it."""
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    return server, client


async def test_tls() -> None:
    server, client = contexts()
    async with Simulator(tls=server) as sim:
        assert sim.url == f"https://127.0.0.1:{sim.port}/v1"
        whole = await ask(sim, {"text": ["A", "北"]}, tls=client)
        cut = await ask(sim, {"text": ["A", "北"], "cut": {"after_events": 2, "how": "rst"}}, tls=client)
    assert (whole.text, whole.end) == ("A北", "eof")
    assert (cut.text, cut.rest, cut.end) == ("A", None, "rst")


async def test_many_paced_streams_at_once() -> None:
    fields = {"text": ["x", "x"], "repeat": 5, "gap": 0.02}
    async with Simulator() as sim:

        async def one() -> Heard:
            reader, writer = await asyncio.open_connection(sim.host, sim.port)
            writer.write(request_bytes(fields))
            heard = await hear(reader, Heard(), 5)
            writer.close()
            return heard

        before = asyncio.all_tasks()
        waiting = [asyncio.ensure_future(one()) for _ in range(100)]
        while sim.connections_made < 100:  # noqa: ASYNC110  (there is no event for it)
            await asyncio.sleep(0)
        # The simulator itself uses no task: those open are this test's.
        assert len(asyncio.all_tasks() - before) <= 200
        heard = await asyncio.gather(*waiting)
    assert {one.text for one in heard} == {"x" * 10}


async def test_stopping_twice_and_before_starting_is_fine() -> None:
    sim = Simulator()
    await sim.stop()
    await sim.start()
    await sim.stop()
    await sim.stop()


async def test_stopping_waits_for_no_handshake_and_answers_nobody_after_it() -> None:
    server, client = contexts()
    sim = Simulator(tls=server)
    await sim.start()
    sock = socket.create_connection((sim.host, sim.port))
    await asyncio.sleep(0.05)  # it is accepted, and no protocol knows of it yet
    await asyncio.wait_for(sim.stop(), 5)
    reader, writer = await asyncio.open_connection(sock=sock, ssl=client, server_hostname=sim.host)
    writer.write(request_bytes({"text": "A"}))
    with suppress(ConnectionResetError):
        assert await asyncio.wait_for(reader.read(), 5) == b""
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()
    assert sim.requests == []
