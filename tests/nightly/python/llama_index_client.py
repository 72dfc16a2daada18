from checks import ADA, MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike


def model(name: str = MODEL, **options: object) -> OpenAILike:
    return OpenAILike(model=name, api_base=URL, api_key="none", is_chat_model=True, is_function_calling_model=True, max_retries=0, context_window=2048, max_tokens=100, **options)


@check("typed output")
def typed() -> None:
    assert model().as_structured_llm(Person).complete(TEXT).raw.age == ADA.age
    assert model(should_use_structured_outputs=True).as_structured_llm(Person).complete(TEXT).raw == ADA


@check("tools in a loop")
async def tools() -> None:
    weather = Weather()
    agent = FunctionAgent(tools=[weather.get_weather], llm=model(), streaming=False)
    await agent.run(user_msg=QUESTION, max_iterations=6)
    assert weather.cities[0] == "Paris"


@check("streaming")
def streaming() -> None:
    parts = list(model().stream_chat([ChatMessage(role="user", content=TEXT)]))
    assert len(parts) > 2 and parts[-1].message.content


@check("error")
def error() -> None:
    raises(lambda: model(UNKNOWN).complete("x"))


run_checks()
