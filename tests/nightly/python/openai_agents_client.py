import agents
import openai
from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks

agents.set_tracing_disabled(True)


def model(kind: type = agents.OpenAIChatCompletionsModel, name: str = MODEL) -> agents.Model:
    return kind(model=name, openai_client=openai.AsyncOpenAI(base_url=URL, api_key="none", max_retries=0))


@check("typed output")
async def typed() -> None:
    for kind in (agents.OpenAIChatCompletionsModel, agents.OpenAIResponsesModel):
        agent = agents.Agent(name="reader", model=model(kind), output_type=Person)
        assert (await agents.Runner.run(agent, TEXT)).final_output == ADA


@check("tools in a loop")
async def tools() -> None:
    weather = Weather()
    agent = agents.Agent(name="reporter", model=model(), tools=[agents.function_tool(weather.get_weather)])
    result = await agents.Runner.run(agent, QUESTION, max_turns=4)
    assert weather.cities[0] == "Paris" and isinstance(result.final_output, str)


@check("streaming")
async def streaming() -> None:
    agent = agents.Agent(name="reader", model=model(), output_type=Person)
    result = agents.Runner.run_streamed(agent, TEXT)
    kinds = [event.type async for event in result.stream_events()]
    assert result.final_output == ADA and kinds.count("raw_response_event") > 2


@check("error")
async def error() -> None:
    try:
        await agents.Runner.run(agents.Agent(name="nobody", model=model(name=UNKNOWN)), "x")
    except openai.NotFoundError as caught:
        assert UNKNOWN in str(caught)
    else:
        raises(lambda: None)


run_checks()
