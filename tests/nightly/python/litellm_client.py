import json

import litellm
from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks

WHERE = {"api_base": URL, "api_key": "none", "num_retries": 0}
WEATHER = {"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}}}


def complete(content: str = TEXT, name: str = MODEL, **options: object) -> object:
    messages = options.pop("messages", [{"role": "user", "content": content}])
    return litellm.completion(f"openai/{name}", messages, **WHERE, **options)


@check("typed output")
def typed() -> None:
    assert Person.model_validate_json(complete(response_format=Person).choices[0].message.content) == ADA


@check("tools in a loop")
def tools() -> None:
    weather, messages = Weather(), [{"role": "user", "content": QUESTION}]
    for _ in range(4):
        message = complete(messages=messages, tools=[WEATHER], max_tokens=100).choices[0].message
        messages.append(message)
        if not message.tool_calls:
            break
        for call in message.tool_calls:
            result = weather.get_weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": result})
    assert weather.cities[0] == "Paris" and not message.tool_calls


@check("streaming")
def streaming() -> None:
    chunks = list(complete(response_format=Person, stream=True))
    assert Person.model_validate_json("".join(chunk.choices[0].delta.content or "" for chunk in chunks)) == ADA


@check("error")
def error() -> None:
    raises(lambda: complete(name=UNKNOWN))


run_checks()
