"""Signals within this process; `test_serve` sends them from outside."""

import asyncio
import signal

import pytest

from headrace.cli.signals import SIGNALS, stop_signals


@pytest.mark.parametrize("number", SIGNALS)
def test_the_first_signal_asks_and_the_second_ends(number: signal.Signals, monkeypatch: pytest.MonkeyPatch) -> None:
    codes: list[int] = []
    ended = asyncio.Event()

    def end(code: int) -> None:
        codes.append(code)
        ended.set()

    monkeypatch.setattr("os._exit", end)

    async def main() -> None:
        with stop_signals() as stop:
            assert not stop.is_set()
            signal.raise_signal(number)
            await asyncio.wait_for(stop.wait(), 1.0)
            assert codes == []
            signal.raise_signal(signal.SIGTERM)
            await asyncio.wait_for(ended.wait(), 1.0)

    asyncio.run(main())
    assert codes == [1]


def test_afterwards_signals_are_what_they_were() -> None:
    before = [signal.getsignal(number) for number in SIGNALS]

    async def main() -> None:
        with stop_signals():
            pass

    asyncio.run(main())
    assert [signal.getsignal(number) for number in SIGNALS] == before
