"""The official SDKs for Python before one simulator that plays replies of the gateway, and what the caller is told."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import count
from types import TracebackType
from typing import Any, Self

import anthropic
import openai
from google import genai
from google.genai import errors, types

from headrace.http.rules import id_headers
from headrace.model.headers import Headers
from headrace.model.request import Reply
from headrace.model.wire import WireProtocol
from tests.stand.upstreams import Upstream
from tests.stand.wire import KEY

ID = "hr_01k9zq3v7m8x2d4f6h0j5n1prs"
MADE_AT = 1763074764
"""The seconds since the epoch that the id holds."""
ERRORS = (openai.OpenAIError, anthropic.AnthropicError, errors.APIError, RuntimeError)


@dataclass
class Told:
    """What a caller saw: the events up to the error that was raised, if any, and how often the server was asked."""

    events: list[Any] = field(default_factory=list)
    error: Exception | None = None
    attempts: int = 0


class Sdks:
    """One client of each SDK, with its retries as they come: OpenAI's and Anthropic's try three times."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._numbers = count()
        self.openai = openai.OpenAI(
            api_key=KEY, base_url=upstream.url, timeout=10.0, http_client=openai.DefaultHttpxClient(verify=False)
        )
        self.anthropic = anthropic.Anthropic(
            api_key=KEY, base_url=upstream.origin, timeout=10.0, http_client=anthropic.DefaultHttpxClient(verify=False)
        )
        options = types.HttpOptions(base_url=upstream.origin, client_args={"verify": False, "trust_env": False})
        self.genai = genai.Client(api_key=KEY, http_options=options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.openai.close()
        self.anthropic.close()
        self.genai.close()

    def whole(self, protocol: WireProtocol, reply: Reply, *, retries: bool = False) -> Told:
        """Ask for a whole answer, and be sent `reply` as the gateway sends it."""
        body = {"status": reply.status, "headers": _pairs(reply.headers), "body": reply.body.decode()}
        asks: dict[WireProtocol, Callable[[str, int], Iterable[Any]]] = {
            WireProtocol.CHAT: self._chat,
            WireProtocol.RESPONSES: self._responses,
            WireProtocol.MESSAGES: self._messages,
            WireProtocol.GEMINI: self._gemini,
        }
        return self._ask(body, lambda model: asks[protocol](model, 2 if retries else 0))

    def stream(self, protocol: WireProtocol, events: Iterable[bytes], *, helper: bool = False) -> Told:
        """Ask for a stream and be sent `events`; `helper`: by the SDK's own way of collecting the answer."""
        headers: Headers = [(b"content-type", b"text/event-stream; charset=utf-8")]
        played = {"headers": _pairs(headers), "events": [event.decode() for event in events]}
        asks: dict[tuple[WireProtocol, bool], Callable[[str], Iterable[Any]]] = {
            (WireProtocol.CHAT, False): self._chat_stream,
            (WireProtocol.CHAT, True): self._chat_helper,
            (WireProtocol.RESPONSES, False): self._responses_stream,
            (WireProtocol.RESPONSES, True): self._responses_helper,
            (WireProtocol.MESSAGES, False): self._messages_stream,
            (WireProtocol.MESSAGES, True): self._messages_helper,
            (WireProtocol.GEMINI, False): self._gemini_stream,
        }
        return self._ask(played, asks[protocol, helper])

    def _ask(self, played: Mapping[str, object], ask: Callable[[str], Iterable[Any]]) -> Told:
        model = f"error-{next(self._numbers)}"
        self._upstream.scenario(model, played)
        told = Told()
        try:
            for event in ask(model):
                told.events.append(event)
        except ERRORS as error:
            told.error = error
        told.attempts = len(self._upstream.calls(model))
        return told

    def _chat(self, model: str, retries: int) -> Iterable[Any]:
        sdk = self.openai.with_options(max_retries=retries)
        yield sdk.chat.completions.create(model=model, messages=[{"role": "user", "content": "hi"}])

    def _responses(self, model: str, retries: int) -> Iterable[Any]:
        yield self.openai.with_options(max_retries=retries).responses.create(model=model, input="hi")

    def _messages(self, model: str, retries: int) -> Iterable[Any]:
        sdk = self.anthropic.with_options(max_retries=retries)
        yield sdk.messages.create(model=model, max_tokens=9, messages=[{"role": "user", "content": "hi"}])

    def _gemini(self, model: str, retries: int) -> Iterable[Any]:
        yield self.genai.models.generate_content(model=model, contents="hi")

    def _chat_stream(self, model: str) -> Iterable[Any]:
        messages: Any = [{"role": "user", "content": "hi"}]
        with self.openai.chat.completions.create(model=model, messages=messages, stream=True) as stream:
            yield from stream

    def _chat_helper(self, model: str) -> Iterable[Any]:
        with self.openai.chat.completions.stream(model=model, messages=[{"role": "user", "content": "hi"}]) as stream:
            for event in stream:
                if event.type == "chunk":
                    yield event.chunk
            stream.get_final_completion()

    def _responses_stream(self, model: str) -> Iterable[Any]:
        with self.openai.responses.create(model=model, input="hi", stream=True) as stream:
            yield from stream

    def _responses_helper(self, model: str) -> Iterable[Any]:
        with self.openai.responses.stream(model=model, input="hi") as stream:
            yield from stream
            stream.get_final_response()

    def _messages_stream(self, model: str) -> Iterable[Any]:
        messages: Any = [{"role": "user", "content": "hi"}]
        with self.anthropic.messages.create(model=model, max_tokens=9, messages=messages, stream=True) as stream:
            yield from stream

    def _messages_helper(self, model: str) -> Iterable[Any]:
        messages: Any = [{"role": "user", "content": "hi"}]
        with self.anthropic.messages.stream(model=model, max_tokens=9, messages=messages) as stream:
            yield from stream
            stream.get_final_message()

    def _gemini_stream(self, model: str) -> Iterable[Any]:
        yield from self.genai.models.generate_content_stream(model=model, contents="hi")


def _pairs(headers: Headers) -> list[list[str]]:
    """For the simulator, with the gateway's id, as the front adds it to every reply."""
    return [[name.decode(), value.decode()] for name, value in headers + id_headers(ID)]
