import openai
import outlines
from checks import ADA, MODEL, TEXT, UNKNOWN, URL, Person, check, raises, run_checks


def model(name: str = MODEL) -> outlines.models.OpenAI:
    return outlines.from_openai(openai.OpenAI(base_url=URL, api_key="none", max_retries=0), name)


@check("typed output")
def typed() -> None:
    assert Person.model_validate_json(model()(TEXT, Person)) == ADA


@check("typed output, as vLLM is asked")
def typed_like_vllm() -> None:
    vllm = outlines.from_vllm(openai.OpenAI(base_url=URL, api_key="none", max_retries=0), MODEL)
    assert Person.model_validate_json(vllm(TEXT, Person)) == ADA
    assert vllm("555-0142", outlines.types.Regex("[0-9]{3}-[0-9]{4}"))[3] == "-"


@check("streaming")
def streaming() -> None:
    assert Person.model_validate_json("".join(model().stream(TEXT, Person))) == ADA


@check("error")
def error() -> None:
    raises(lambda: model(UNKNOWN)("x", Person))


run_checks()
