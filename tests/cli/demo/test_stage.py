"""Upstreams and gateway of the demo."""

import asyncio
from dataclasses import replace

import pytest

from headrace.cli.demo.client import ask
from headrace.cli.demo.shows import PROMPT, SHOWS
from headrace.cli.demo.stage import configuration, stage


def test_it_stands_within_and_is_gone_afterwards() -> None:
    quick = replace(SHOWS[0], scenario={"text": "hi"})

    async def play() -> None:
        async with stage([quick], pytest.fail) as playing:
            assert playing.base_url == f"http://{playing.address}/v1"
            assert playing.sent == b""
            reading = quick.reading
            for model in (quick.model, "sim-fast"):
                body, headers = reading.body(model, PROMPT), reading.headers(playing.key)
                answer = await ask(playing.address, reading.path(model), headers, body, lambda arrival: None)
                assert answer.status == 200
                assert playing.sent == answer.body
            assert playing.directory.is_dir()
        assert not playing.directory.exists()
        with pytest.raises(OSError, match=r"refused|failed"):
            await asyncio.open_connection(playing.address.host, playing.address.port)

    asyncio.run(play())


def test_it_ends_in_good_order_when_a_show_fails() -> None:
    async def play() -> None:
        async with stage(SHOWS, pytest.fail):
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(play())


def test_only_a_failover_asks_the_overloaded_upstream() -> None:
    models = configuration(SHOWS, "http://a/v1", "http://b/v1", "sk")["models"]
    assert isinstance(models, dict)
    assert {name: [route["channel"] for route in model["routes"]] for name, model in models.items()} == {
        show.model: ["overloaded", "healthy"] if show.failover else ["healthy"] for show in SHOWS
    } | {"sim-*": ["healthy"]}
