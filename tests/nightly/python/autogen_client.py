from autogen_agentchat.agents import AssistantAgent
from autogen_core.models import UserMessage
from autogen_ext.models.openai import OpenAIChatCompletionClient
from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, run_checks

INFO = {"vision": False, "function_calling": True, "json_output": True, "structured_output": True, "family": "unknown"}


def client(name: str = MODEL) -> OpenAIChatCompletionClient:
    return OpenAIChatCompletionClient(model=name, base_url=URL, api_key="none", model_info=INFO, max_retries=0, max_tokens=100)


@check("typed output")
async def typed() -> None:
    agent = AssistantAgent("reader", client(), output_content_type=Person)
    assert (await agent.run(task=TEXT)).messages[-1].content.age == ADA.age


@check("tools in a loop")
async def tools() -> None:
    weather = Weather()
    agent = AssistantAgent("reporter", client(), tools=[weather.get_weather], max_tool_iterations=4)
    await agent.run(task=QUESTION)
    assert weather.cities[0] == "Paris"


@check("streaming")
async def streaming() -> None:
    parts = [part async for part in client().create_stream([UserMessage(content=TEXT, source="user")])]
    assert len(parts) > 2 and parts[-1].content == "".join(parts[:-1])


@check("error")
async def error() -> None:
    try:
        await client(UNKNOWN).create([UserMessage(content="x", source="user")])
    except Exception as caught:
        assert UNKNOWN in str(caught), caught
    else:
        raise AssertionError("no error was raised")


run_checks()
