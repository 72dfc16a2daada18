from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks
from crewai import LLM


def model(name: str = MODEL, **options: object) -> LLM:
    return LLM(model=name, provider="openai", base_url=URL, api_key="none", max_tokens=100, **options)


@check("typed output")
def typed() -> None:
    made = model(response_format=Person).call(TEXT)
    assert (made if isinstance(made, Person) else Person.model_validate_json(made)).age == ADA.age


@check("tools in a loop")
def tools() -> None:
    weather = Weather()
    form = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    offered = [{"type": "function", "function": {"name": "get_weather", "description": "The weather in a city", "parameters": form}}]
    model().call([{"role": "user", "content": QUESTION}], tools=offered, available_functions={"get_weather": weather.get_weather})
    assert weather.cities[0] == "Paris"


@check("streaming")
def streaming() -> None:
    assert model(stream=True).call(TEXT)


@check("error")
def error() -> None:
    raises(lambda: model(UNKNOWN).call("x"))


run_checks()
