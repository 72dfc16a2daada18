import pydantic_ai
from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider


def agent(name: str = MODEL, **options: object) -> pydantic_ai.Agent:
    return pydantic_ai.Agent(OpenAIChatModel(name, provider=OpenAIProvider(base_url=URL, api_key="none")), **options)


@check("typed output")
def typed() -> None:
    assert agent(output_type=pydantic_ai.NativeOutput(Person)).run_sync(TEXT).output == ADA
    assert agent(output_type=Person).run_sync(TEXT).output.age == ADA.age


@check("tools in a loop")
def tools() -> None:
    weather = Weather()
    result = agent(tools=[weather.get_weather]).run_sync(QUESTION, usage_limits=pydantic_ai.UsageLimits(request_limit=4))
    assert weather.cities[0] == "Paris" and isinstance(result.output, str)


@check("streaming")
async def streaming() -> None:
    async with agent(output_type=pydantic_ai.NativeOutput(Person)).run_stream(TEXT) as stream:
        parts = [part async for part in stream.stream_output(debounce_by=None)]
    assert parts[-1] == ADA


@check("error")
def error() -> None:
    raises(lambda: agent(UNKNOWN).run_sync("x"))


run_checks()
