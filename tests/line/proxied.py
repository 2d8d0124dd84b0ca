"""A CONNECT proxy in a thread of its own, beside synchronous tests."""

import asyncio
import threading
from contextlib import AsyncExitStack
from types import TracebackType
from typing import Self

from tests.upstream.proxy import Answer, Connections, established, proxying


class ProxyThread:
    """Runs `tests.upstream.proxy`. `seen.heads` are the CONNECT requests that it got."""

    def __init__(self, answer: Answer = established) -> None:
        self._answer = answer
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True)
        self._stack = AsyncExitStack()
        self.seen = Connections()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.seen.port}"

    def with_credentials(self, user: str) -> str:
        return f"http://{user}@127.0.0.1:{self.seen.port}"

    def __enter__(self) -> Self:
        self._thread.start()
        entering = self._stack.enter_async_context(proxying(self._answer))
        self.seen = asyncio.run_coroutine_threadsafe(entering, self._loop).result(10)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        asyncio.run_coroutine_threadsafe(self._stack.aclose(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()
