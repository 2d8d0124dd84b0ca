"""The ways in which openai-python asks for a chat, as functions of one shape, and what the caller is told."""

import asyncio
from collections.abc import AsyncIterable, Callable, Iterable
from dataclasses import dataclass, field

import openai
from openai.types import CompletionUsage
from openai.types.chat import ChatCompletionChunk, ChatCompletionMessageParam

from tests.stand.stand import Stand
from tests.stand.wire import KEY

MESSAGES: list[ChatCompletionMessageParam] = [{"role": "user", "content": "hi"}]
USAGE = {"stream_options": {"include_usage": True}}


@dataclass
class Told:
    """What a caller saw of one stream: the chunks up to the error that was raised, if any."""

    chunks: list[ChatCompletionChunk] = field(default_factory=list)
    error: openai.OpenAIError | None = None

    @property
    def text(self) -> str:
        return "".join(choice.delta.content or "" for chunk in self.chunks for choice in chunk.choices)

    @property
    def finish(self) -> str | None:
        reasons = [choice.finish_reason for chunk in self.chunks for choice in chunk.choices if choice.finish_reason]
        return reasons[-1] if reasons else None

    @property
    def usage(self) -> CompletionUsage | None:
        found = [chunk.usage for chunk in self.chunks if chunk.usage is not None]
        return found[-1] if found else None


Call = Callable[..., Told]


def client(stand: Stand, **options: object) -> openai.OpenAI:
    """A synchronous client that tries once."""
    given = _given(stand) | {"http_client": openai.DefaultHttpxClient(verify=False)} | options
    return openai.OpenAI(**given)  # type: ignore[arg-type]


def async_client(stand: Stand, **options: object) -> openai.AsyncOpenAI:
    """An asynchronous client that tries once."""
    given = _given(stand) | {"http_client": openai.DefaultAsyncHttpxClient(verify=False)} | options
    return openai.AsyncOpenAI(**given)  # type: ignore[arg-type]


def _given(stand: Stand) -> dict[str, object]:
    """Options of both; a client that need not read the certificate authorities is made in a tenth of the time."""
    return {"api_key": KEY, "base_url": stand.url, "max_retries": 0, "timeout": 10.0}


def create(stand: Stand, model: str, *, key: str = KEY, **options: object) -> Told:
    """`create(stream=True)`."""
    told = Told()
    with client(stand, api_key=key) as sdk:
        try:
            with sdk.chat.completions.create(model=model, messages=MESSAGES, stream=True, **options) as stream:  # type: ignore[call-overload]
                _collect(stream, told)
        except openai.OpenAIError as error:
            told.error = error
    return told


def helper(stand: Stand, model: str, *, key: str = KEY, **options: object) -> Told:
    """`chat.completions.stream`."""
    told = Told()
    with client(stand, api_key=key) as sdk:
        try:
            with sdk.chat.completions.stream(model=model, messages=MESSAGES, **options) as stream:  # type: ignore[arg-type]
                _collect((event.chunk for event in stream if event.type == "chunk"), told)
                stream.get_final_completion()
        except openai.OpenAIError as error:
            told.error = error
    return told


def async_create(stand: Stand, model: str, *, key: str = KEY, **options: object) -> Told:
    """`create(stream=True)`, asynchronously."""
    return asyncio.run(_create(stand, model, key, options))


def async_helper(stand: Stand, model: str, *, key: str = KEY, **options: object) -> Told:
    """`chat.completions.stream`, asynchronously."""
    return asyncio.run(_helper(stand, model, key, options))


CALLS: dict[str, Call] = {
    "create": create,
    "async create": async_create,
    "stream": helper,
    "async stream": async_helper,
}


def _collect(chunks: Iterable[ChatCompletionChunk], told: Told) -> None:
    for chunk in chunks:
        told.chunks.append(chunk)


async def _collect_async(chunks: AsyncIterable[ChatCompletionChunk], told: Told) -> None:
    async for chunk in chunks:
        told.chunks.append(chunk)


async def _create(stand: Stand, model: str, key: str, options: dict[str, object]) -> Told:
    told = Told()
    async with async_client(stand, api_key=key) as sdk:
        try:
            stream = await sdk.chat.completions.create(model=model, messages=MESSAGES, stream=True, **options)  # type: ignore[call-overload]
            async with stream:
                await _collect_async(stream, told)
        except openai.OpenAIError as error:
            told.error = error
    return told


async def _helper(stand: Stand, model: str, key: str, options: dict[str, object]) -> Told:
    told = Told()
    async with async_client(stand, api_key=key) as sdk:
        try:
            async with sdk.chat.completions.stream(model=model, messages=MESSAGES, **options) as stream:  # type: ignore[arg-type]
                await _collect_async((event.chunk async for event in stream if event.type == "chunk"), told)
                await stream.get_final_completion()
        except openai.OpenAIError as error:
            told.error = error
    return told
