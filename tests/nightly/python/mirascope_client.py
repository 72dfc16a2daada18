from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks
from mirascope import llm

llm.register_provider("openai:completions", scope="maskwright/", base_url=URL, api_key="none")
NAME = f"maskwright/{MODEL}"


@check("typed output")
def typed() -> None:
    assert llm.Model(NAME).call(TEXT, format=Person).parse().age == ADA.age


@check("tools in a loop")
def tools() -> None:
    weather = Weather()

    @llm.tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return weather.get_weather(city)

    reply = llm.Model(NAME, max_tokens=100).call(QUESTION, tools=[get_weather])
    for _ in range(4):
        if not reply.tool_calls:
            break
        reply = reply.resume(reply.execute_tools())
    assert weather.cities[0] == "Paris" and not reply.tool_calls


@check("streaming")
def streaming() -> None:
    parts = list(llm.Model(NAME, max_tokens=8).stream(TEXT).text_stream())
    assert len(parts) > 2


@check("error")
def error() -> None:
    raises(lambda: llm.Model(f"maskwright/{UNKNOWN}").call("x"))


run_checks()
