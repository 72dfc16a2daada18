import instructor
import openai
from checks import ADA, MODEL, TEXT, UNKNOWN, URL, Person, check, raises, run_checks

MESSAGES = [{"role": "user", "content": TEXT}]


def client(mode: str = "JSON_SCHEMA") -> instructor.Instructor:
    return instructor.from_openai(openai.OpenAI(base_url=URL, api_key="none", max_retries=0), mode=instructor.Mode[mode])


@check("typed output")
def typed() -> None:
    for mode in ("JSON_SCHEMA", "TOOLS"):
        found = client(mode).chat.completions.create(model=MODEL, response_model=Person, messages=MESSAGES, max_retries=0)
        assert found.age == ADA.age


@check("streaming")
def streaming() -> None:
    parts = list(client().chat.completions.create_partial(model=MODEL, response_model=Person, messages=MESSAGES))
    assert parts[-1].age == ADA.age and len(parts) > 2


@check("error")
def error() -> None:
    raises(lambda: client().chat.completions.create(model=UNKNOWN, response_model=Person, messages=MESSAGES, max_retries=0))


run_checks()
