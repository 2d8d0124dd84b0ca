"""The ways in which anthropic-python asks for a message, as functions of one shape, and what the caller is told."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2
from anthropic.types import Message, MessageParam

from tests.stand.stand import Stand
from tests.stand.wire import KEY

MESSAGES: list[MessageParam] = [{"role": "user", "content": "hi"}]


@dataclass
class Told:
    """What a caller saw of one stream: the events up to the error that was raised, if any; a helper's whole message."""

    events: list[Any] = field(default_factory=list)
    error: Exception | None = None
    message: Message | None = None

    @property
    def text(self) -> str:
        deltas = [event.delta for event in self.events if event.type == "content_block_delta"]
        return "".join(delta.text for delta in deltas if delta.type == "text_delta")

    @property
    def stop_reason(self) -> str | None:
        reasons = [event.delta.stop_reason for event in self.events if event.type == "message_delta"]
        return reasons[-1] if reasons else None


Call = Callable[..., Told]


def client(stand: Stand, **options: Any) -> anthropic.Anthropic:
    """A synchronous client that tries once."""
    return anthropic.Anthropic(**_given(stand, anthropic.DefaultHttpxClient(verify=False)) | options)


def async_client(stand: Stand, **options: Any) -> anthropic.AsyncAnthropic:
    """An asynchronous client that tries once."""
    return anthropic.AsyncAnthropic(**_given(stand, anthropic.DefaultAsyncHttpxClient(verify=False)) | options)


def _given(stand: Stand, transport: httpx2.Client | httpx2.AsyncClient) -> dict[str, Any]:
    """Options of both; a client that need not read the certificate authorities is made in a tenth of the time."""
    base_url = stand.url.removesuffix("/v1")
    return {"api_key": KEY, "base_url": base_url, "max_retries": 0, "timeout": 10.0, "http_client": transport}


def create(stand: Stand, model: str, *, key: str = KEY, **options: Any) -> Told:
    """`create(stream=True)`."""
    told = Told()
    with client(stand, api_key=key) as sdk:
        try:
            with sdk.messages.create(model=model, max_tokens=99, messages=MESSAGES, stream=True, **options) as stream:
                for event in stream:
                    told.events.append(event)
        except anthropic.AnthropicError as error:
            told.error = error
    return told


def helper(stand: Stand, model: str, *, key: str = KEY, **options: Any) -> Told:
    """`messages.stream`."""
    told = Told()
    with client(stand, api_key=key) as sdk:
        try:
            with sdk.messages.stream(model=model, max_tokens=99, messages=MESSAGES, **options) as stream:
                for event in stream:
                    told.events.append(event)
                told.message = stream.get_final_message()
        except anthropic.AnthropicError as error:
            told.error = error
    return told


def async_create(stand: Stand, model: str, *, key: str = KEY, **options: Any) -> Told:
    """`create(stream=True)`, asynchronously."""

    async def main() -> Told:
        told = Told()
        async with async_client(stand, api_key=key) as sdk:
            try:
                stream = await sdk.messages.create(
                    model=model, max_tokens=99, messages=MESSAGES, stream=True, **options
                )
                async with stream:
                    async for event in stream:
                        told.events.append(event)
            except anthropic.AnthropicError as error:
                told.error = error
        return told

    return asyncio.run(main())


def async_helper(stand: Stand, model: str, *, key: str = KEY, **options: Any) -> Told:
    """`messages.stream`, asynchronously."""

    async def main() -> Told:
        told = Told()
        async with async_client(stand, api_key=key) as sdk:
            try:
                async with sdk.messages.stream(model=model, max_tokens=99, messages=MESSAGES, **options) as stream:
                    async for event in stream:
                        told.events.append(event)
                    told.message = await stream.get_final_message()
            except anthropic.AnthropicError as error:
                told.error = error
        return told

    return asyncio.run(main())


CALLS: dict[str, Call] = {
    "create": create,
    "async create": async_create,
    "stream": helper,
    "async stream": async_helper,
}
