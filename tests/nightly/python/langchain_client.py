from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks
from langchain.agents import create_agent
from langchain.agents.structured_output import ProviderStrategy
from langchain_openai import ChatOpenAI


def chat(name: str = MODEL, **options: object) -> ChatOpenAI:
    return ChatOpenAI(model=name, base_url=URL, api_key="none", max_retries=0, **options)


@check("typed output")
def typed() -> None:
    for method in ("json_schema", "function_calling"):
        assert chat().with_structured_output(Person, method=method).invoke(TEXT).age == ADA.age


@check("tools in a loop")
def tools() -> None:
    weather = Weather()
    agent = create_agent(chat(max_tokens=100), [weather.get_weather])
    told = agent.invoke({"messages": [{"role": "user", "content": QUESTION}]}, {"recursion_limit": 10})
    assert weather.cities[0] == "Paris" and told["messages"][-1].type == "ai"


@check("tools beside typed output")
def both() -> None:
    agent = create_agent(chat(), [Weather().get_weather], response_format=ProviderStrategy(Person))
    told = agent.invoke({"messages": [{"role": "user", "content": TEXT}]}, {"recursion_limit": 10})
    assert isinstance(told["structured_response"], Person)


@check("streaming")
def streaming() -> None:
    chunks = list(chat(max_tokens=8).stream(TEXT))
    assert len(chunks) > 2 and "".join(chunk.content for chunk in chunks)


@check("error")
def error() -> None:
    raises(lambda: chat(UNKNOWN).invoke("x"))


run_checks()
