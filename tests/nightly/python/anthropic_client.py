import anthropic
from checks import ADA, MODEL, QUESTION, SERVER, TEXT, UNKNOWN, Person, Weather, check, raises, run_checks

client = anthropic.Anthropic(base_url=SERVER, api_key="none", max_retries=0)
WEATHER = {"name": "get_weather", "input_schema": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}
ASKED = {"model": MODEL, "max_tokens": 100}


@check("typed output")
def typed() -> None:
    reply = client.messages.parse(**ASKED, messages=[{"role": "user", "content": TEXT}], output_format=Person)
    assert reply.parsed_output == ADA


@check("tools in a loop")
def tools() -> None:
    weather, messages = Weather(), [{"role": "user", "content": QUESTION}]
    for _ in range(4):
        reply = client.messages.create(**ASKED, messages=messages, tools=[WEATHER])
        messages.append({"role": "assistant", "content": reply.content})
        uses = [block for block in reply.content if block.type == "tool_use"]
        if not uses:
            break
        results = [{"type": "tool_result", "tool_use_id": use.id, "content": weather.get_weather(**use.input)} for use in uses]
        messages.append({"role": "user", "content": results})
    assert weather.cities[0] == "Paris" and reply.stop_reason != "tool_use"


@check("streaming")
def streaming() -> None:
    with client.messages.stream(**ASKED, messages=[{"role": "user", "content": TEXT}]) as stream:
        text = "".join(stream.text_stream)
        assert text and stream.get_final_message().content[0].text == text


@check("error")
def error() -> None:
    raises(lambda: client.messages.create(model=UNKNOWN, max_tokens=5, messages=[{"role": "user", "content": "x"}]))


run_checks()
