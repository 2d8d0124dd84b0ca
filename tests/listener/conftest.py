"""Runs each async test here on both loops, with a time limit, and fails it for what a callback raised."""

import asyncio
import inspect
from collections.abc import Callable
from typing import Any, cast

import pytest
import uvloop

LOOPS = {"uvloop": uvloop.new_event_loop, "asyncio": asyncio.new_event_loop}
LIMIT_S = 10.0


@pytest.fixture(autouse=True, params=list(LOOPS))
def loop_factory(request: pytest.FixtureRequest) -> Callable[[], asyncio.AbstractEventLoop]:
    """What makes the test's loop."""
    factory: Callable[[], asyncio.AbstractEventLoop] = LOOPS[request.param]
    return factory


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Await a test that is a coroutine function."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    wanted = inspect.signature(test).parameters
    arguments = {name: value for name, value in pyfuncitem.funcargs.items() if name in wanted}
    raised: list[dict[str, Any]] = []

    async def limited() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, context: raised.append(context))
        async with asyncio.timeout(LIMIT_S):
            await test(**arguments)

    factory = cast(Callable[[], asyncio.AbstractEventLoop], pyfuncitem.funcargs["loop_factory"])
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(limited())
    assert not raised, raised
    return True
