from agno.agent import Agent
from agno.models.openai.like import OpenAILike
from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, run_checks


def agent(name: str = MODEL, **options: object) -> Agent:
    return Agent(model=OpenAILike(id=name, base_url=URL, api_key="none", max_retries=0, max_tokens=100), telemetry=False, **options)


@check("typed output")
def typed() -> None:
    assert agent(output_schema=Person).run(TEXT).content.age == ADA.age


@check("tools in a loop")
def tools() -> None:
    weather = Weather()
    reply = agent(tools=[weather.get_weather], tool_call_limit=4).run(QUESTION)
    assert weather.cities[0] == "Paris" and isinstance(reply.content, str)


@check("streaming")
def streaming() -> None:
    parts = [event for event in agent().run(TEXT, stream=True) if getattr(event, "content", None)]
    assert len(parts) > 2


@check("error")
def error() -> None:
    try:
        told = str(agent(UNKNOWN).run("x").content)  # Agno keeps an error as the content of a run that has failed
    except Exception as caught:
        told = str(caught)
    assert UNKNOWN in told, told


run_checks()
