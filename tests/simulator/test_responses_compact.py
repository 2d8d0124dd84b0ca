import json

from openai.types.responses import CompactedResponse

from headrace.simulator import responses_compact
from headrace.simulator.answer import answer_from
from headrace.simulator.fields import Place
from headrace.simulator.reading import scenario_from_fields


def test_a_compaction_is_what_the_official_type_says() -> None:
    scenario = scenario_from_fields({"text": "abc", "usage": {"prompt": 9, "completion": 3}}, Place(), "s")
    answer = answer_from(scenario.content, responses_compact.read_request(b'{"model":"m"}'), "resp_1", 5)
    body = json.loads(responses_compact.whole(answer, scenario))
    read = CompactedResponse.model_validate(body)
    assert (read.id, read.object, read.usage.total_tokens) == ("resp_1", "response.compaction", 12)
    assert body["output"] == [{"id": "cmp_1", "type": "compaction", "encrypted_content": "YWJj"}]
