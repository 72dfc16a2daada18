from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks
from haystack.components.agents import Agent
from haystack.components.generators.chat import OpenAIChatGenerator
from haystack.dataclasses import ChatMessage
from haystack.tools import create_tool_from_function


def generator(name: str = MODEL, **options: object) -> OpenAIChatGenerator:
    return OpenAIChatGenerator(model=name, api_base_url=URL, max_retries=0, **options)


@check("typed output")
def typed() -> None:
    made = generator(generation_kwargs={"response_format": Person}).run([ChatMessage.from_user(TEXT)])
    assert Person.model_validate_json(made["replies"][0].text) == ADA


@check("tools in a loop")
def tools() -> None:
    weather = Weather()

    def get_weather(city: str) -> str:
        """The weather in a city."""
        return weather.get_weather(city)

    agent = Agent(chat_generator=generator(generation_kwargs={"max_tokens": 100}), tools=[create_tool_from_function(get_weather)], max_agent_steps=6)
    agent.run(messages=[ChatMessage.from_user(QUESTION)])
    assert weather.cities[0] == "Paris"


@check("streaming")
def streaming() -> None:
    parts = []
    generator(streaming_callback=parts.append, generation_kwargs={"max_tokens": 8}).run([ChatMessage.from_user(TEXT)])
    assert len(parts) > 2


@check("error")
def error() -> None:
    raises(lambda: generator(UNKNOWN).run([ChatMessage.from_user("x")]))


run_checks()
