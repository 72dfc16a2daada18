from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks
from smolagents import OpenAIServerModel, ToolCallingAgent, tool


def model(name: str = MODEL) -> OpenAIServerModel:
    return OpenAIServerModel(name, api_base=URL, api_key="none", max_tokens=100, client_kwargs={"max_retries": 0})


def messages(content: str = TEXT) -> list:
    return [{"role": "user", "content": [{"type": "text", "text": content}]}]


@check("typed output")
def typed() -> None:
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": Person.model_json_schema()}}
    assert Person.model_validate_json(model().generate(messages(), response_format=form).content) == ADA


@check("tools in a loop")
def tools() -> None:
    weather = Weather()

    @tool
    def get_weather(city: str) -> str:
        """The weather in a city.

        Args:
            city: Its name.
        """
        return weather.get_weather(city)

    reply = model().generate(messages(QUESTION), tools_to_call_from=[get_weather], stop_sequences=["Observation:"])
    assert reply.tool_calls[0].function.name == "get_weather"
    # The agent's own system prompt is longer than the demonstration model reads, so that is a short one here.
    agent = ToolCallingAgent(tools=[get_weather], model=model(), instructions=None, max_steps=2, verbosity_level=0)
    agent.prompt_templates["system_prompt"] = "Use the functions."
    agent.run(QUESTION)
    assert weather.cities, "no call was made"


@check("streaming")
def streaming() -> None:
    parts = [part.content for part in model().generate_stream(messages()) if part.content]
    assert len(parts) > 2


@check("error")
def error() -> None:
    raises(lambda: model(UNKNOWN).generate(messages("x")))


run_checks()
