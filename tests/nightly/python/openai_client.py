import json

import openai
from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks

client = openai.OpenAI(base_url=URL, api_key="none", max_retries=0)
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


@check("typed output")
def typed() -> None:
    reply = client.chat.completions.parse(model=MODEL, messages=[{"role": "user", "content": TEXT}], response_format=Person)
    assert reply.choices[0].message.parsed == ADA
    assert client.responses.parse(model=MODEL, input=TEXT, text_format=Person).output_parsed == ADA


@check("tools in a loop")
def tools() -> None:
    weather, messages = Weather(), [{"role": "user", "content": QUESTION}]
    for _ in range(4):
        message = client.chat.completions.create(model=MODEL, messages=messages, tools=[WEATHER], max_tokens=100).choices[0].message
        messages.append(message.model_dump(exclude_none=True))
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            result = weather.get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    assert weather.cities[0] == "Paris" and not message.tool_calls


@check("streaming")
def streaming() -> None:
    with client.chat.completions.stream(model=MODEL, messages=[{"role": "user", "content": TEXT}], response_format=Person) as stream:
        kinds = [event.type for event in stream]
        assert stream.get_final_completion().choices[0].message.parsed == ADA
    assert kinds.count("content.delta") > 2
    with client.responses.stream(model=MODEL, input=TEXT, text_format=Person) as stream:
        assert [event.type for event in stream][-1] == "response.completed"
        assert stream.get_final_response().output_parsed == ADA


@check("error")
def error() -> None:
    raises(lambda: client.chat.completions.create(model=UNKNOWN, messages=[{"role": "user", "content": "x"}]))


run_checks()
