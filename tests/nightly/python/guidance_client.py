import guidance
from checks import ADA, MODEL, TEXT, UNKNOWN, URL, Person, check, raises, run_checks


def model(name: str = MODEL) -> guidance.models.OpenAI:
    return guidance.models.OpenAI(name, api_key="none", base_url=URL, echo=False)


def asked(lm: object) -> object:
    with guidance.user():
        lm += TEXT
    return lm


@check("typed output")
def typed() -> None:
    lm = asked(model())
    with guidance.assistant():
        lm += guidance.json(name="person", schema=Person)
    assert Person.model_validate_json(lm["person"]) == ADA


@check("streaming")
def streaming() -> None:
    lm = asked(model())
    with guidance.assistant():
        lm += guidance.gen(name="text", max_tokens=8)
    assert lm["text"]


@check("error")
def error() -> None:
    def run() -> None:
        lm = asked(model(UNKNOWN))
        with guidance.assistant():
            lm += guidance.gen(name="text", max_tokens=8)

    raises(run)


run_checks()
