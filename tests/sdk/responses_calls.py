"""The ways in which openai-python asks for a response, as functions of one shape, and what the caller is told."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import openai
from openai.types.responses import Response

from tests.sdk.calls import async_client, client
from tests.stand.stand import Stand
from tests.stand.wire import KEY


@dataclass
class Told:
    """What a caller saw of one stream: the events up to the error that was raised, if any.

    `final` is the response of the terminal event, or what the helper's `get_final_response` gives.
    """

    events: list[Any] = field(default_factory=list)
    error: Exception | None = None
    final: Response | None = None

    @property
    def text(self) -> str:
        return "".join(event.delta for event in self.events if event.type == "response.output_text.delta")

    @property
    def last(self) -> Any:
        """The last event."""
        return self.events[-1]

    @property
    def types(self) -> list[str]:
        return [event.type for event in self.events]


Call = Callable[..., Told]
ERRORS = (openai.OpenAIError, RuntimeError)
"""What the helper raises by itself is a RuntimeError."""


def create(stand: Stand, model: str, key: str = KEY, **options: Any) -> Told:
    """`create(stream=True)`."""
    told = Told()
    with client(stand, api_key=key) as sdk:
        try:
            with sdk.responses.create(model=model, input="hi", stream=True, **options) as stream:
                for event in stream:
                    _keep(told, event)
        except ERRORS as error:
            told.error = error
    return told


def helper(stand: Stand, model: str, key: str = KEY, **options: Any) -> Told:
    """`responses.stream`."""
    told = Told()
    with client(stand, api_key=key) as sdk:
        try:
            with sdk.responses.stream(model=model, input="hi", **options) as stream:
                for event in stream:
                    told.events.append(event)
                told.final = stream.get_final_response()
        except ERRORS as error:
            told.error = error
    return told


def async_create(stand: Stand, model: str, key: str = KEY, **options: Any) -> Told:
    """`create(stream=True)`, asynchronously."""
    told = Told()

    async def run() -> None:
        async with async_client(stand, api_key=key) as sdk:
            try:
                stream = await sdk.responses.create(model=model, input="hi", stream=True, **options)
                async with stream:
                    async for event in stream:
                        _keep(told, event)
            except ERRORS as error:
                told.error = error

    asyncio.run(run())
    return told


def async_helper(stand: Stand, model: str, key: str = KEY, **options: Any) -> Told:
    """`responses.stream`, asynchronously."""
    told = Told()

    async def run() -> None:
        async with async_client(stand, api_key=key) as sdk:
            try:
                async with sdk.responses.stream(model=model, input="hi", **options) as stream:
                    async for event in stream:
                        told.events.append(event)
                    told.final = await stream.get_final_response()
            except ERRORS as error:
                told.error = error

    asyncio.run(run())
    return told


CALLS: dict[str, Call] = {
    "create": create,
    "async create": async_create,
    "stream": helper,
    "async stream": async_helper,
}


def is_helper(call: Call) -> bool:
    """Whether the caller asks for a final response, so that a missing one raises."""
    return call in (helper, async_helper)


def _keep(told: Told, event: Any) -> None:
    told.events.append(event)
    if event.type in ("response.completed", "response.incomplete", "response.failed"):
        told.final = event.response
