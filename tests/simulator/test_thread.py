import openai
import pytest

from headrace.simulator import SimulatorThread


def test_the_synchronous_sdk_can_use_it() -> None:
    with (
        SimulatorThread({"scenarios": {"default": {"text": "A北"}}}) as sim,
        openai.OpenAI(base_url=sim.url, api_key="sk-1", max_retries=0) as client,
    ):
        stream = client.chat.completions.create(model="m", messages=[{"role": "user", "content": "x"}], stream=True)
        assert "".join(chunk.choices[0].delta.content or "" for chunk in stream) == "A北"
        sim.scenario("bad", {"status": 500})
        with pytest.raises(openai.InternalServerError):
            client.chat.completions.create(model="bad", messages=[])
        sim.idle()
        assert [record.status for record in sim.requests] == [200, 500]
        assert sim.url == f"{sim.origin}/v1"
        sim.reset()
        assert sim.requests == []
