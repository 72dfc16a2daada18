from typing import Annotated, TypedDict

from checks import MODEL, QUESTION, TEXT, UNKNOWN, URL, Person, Weather, check, raises, run_checks
from langchain_openai import ChatOpenAI
from langgraph.graph import START, StateGraph
from langgraph.graph.message import add_messages
from langgraph.prebuilt import ToolNode, tools_condition


class State(TypedDict):
    messages: Annotated[list, add_messages]


def chat(name: str = MODEL) -> ChatOpenAI:
    return ChatOpenAI(model=name, base_url=URL, api_key="none", max_retries=0, max_tokens=100)


def graph(model: object, tools: list) -> object:
    made = StateGraph(State)
    made.add_node("model", lambda state: {"messages": [model.invoke(state["messages"])]})
    made.add_node("tools", ToolNode(tools))
    made.add_edge(START, "model")
    made.add_conditional_edges("model", tools_condition)
    made.add_edge("tools", "model")
    return made.compile()


@check("typed output")
def typed() -> None:
    made = StateGraph(dict)
    made.add_node("read", lambda _: {"person": chat().with_structured_output(Person).invoke(TEXT)})
    made.add_edge(START, "read")
    assert made.compile().invoke({})["person"].age == 36


@check("tools in a loop")
def tools() -> None:
    weather = Weather()
    made = graph(chat().bind_tools([weather.get_weather]), [weather.get_weather])
    told = made.invoke({"messages": [("user", QUESTION)]}, {"recursion_limit": 10})
    assert weather.cities[0] == "Paris" and not told["messages"][-1].tool_calls


@check("streaming")
def streaming() -> None:
    parts = list(graph(chat(), []).stream({"messages": [("user", TEXT)]}, stream_mode="messages"))
    assert len(parts) > 2


@check("error")
def error() -> None:
    raises(lambda: graph(chat(UNKNOWN), []).invoke({"messages": [("user", "x")]}))


run_checks()
