import json

from headrace.simulator import responses_input_tokens
from headrace.simulator.answer import Asked, answer_from
from headrace.simulator.fields import Place
from headrace.simulator.reading import scenario_from_fields


def test_the_input_is_counted_and_never_streamed() -> None:
    asked = responses_input_tokens.read_request(b'{"model":"m","input":"12345","stream":true}')
    assert asked == Asked("m", input="12345", prompt_tokens=2)
    scenario = scenario_from_fields({}, Place(), "s")
    answer = answer_from(scenario.content, asked, "resp_1", 5)
    assert json.loads(responses_input_tokens.whole(answer, scenario)) == {
        "object": "response.input_tokens",
        "input_tokens": 2,
    }
    assert list(responses_input_tokens.events(answer, scenario)) == []
