from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks
from strands import Agent, tool
from strands.models.openai import OpenAIModel


def agent(name: str = MODEL, **options: object) -> Agent:
    model = OpenAIModel(client_args={"base_url": URL, "api_key": "none", "max_retries": 0}, model_id=name, params={"max_tokens": 100})
    return Agent(model=model, callback_handler=None, **options)


@check("typed output")
def typed() -> None:
    assert agent()(TEXT, structured_output_model=Person).structured_output.age == ADA.age


@check("tools in a loop")
def tools() -> None:
    weather = Weather()

    @tool
    def get_weather(city: str) -> str:
        """The weather in a city."""
        return weather.get_weather(city)

    reply = agent(tools=[get_weather])(QUESTION)
    assert weather.cities[0] == "Paris" and reply.stop_reason != "tool_use"


@check("streaming")
async def streaming() -> None:
    parts = [event async for event in agent().stream_async(TEXT) if event.get("data")]
    assert len(parts) > 2


@check("error")
def error() -> None:
    raises(lambda: agent(UNKNOWN)("x"))


run_checks()
