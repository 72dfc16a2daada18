"""A hundred prompts with four kinds of constraints in one call; they share one batch."""

import time
from typing import Any

from pydantic import BaseModel, Field

from maskwright import LLM

NAMES = ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Emmy Noether", "Ines Okoro"]
CITIES = ["London", "Oslo", "Porto", "Denver", "Leeds"]


class Person(BaseModel):
    name: str = Field(max_length=40)
    city: str = Field(max_length=40)


AGE = {"type": "object", "properties": {"age": {"type": "integer"}}, "required": ["age"], "additionalProperties": False}


def tasks() -> list[tuple[str, dict[str, Any]]]:
    """A hundred prompts, each with its constraint as a keyword."""
    pairs: list[tuple[str, dict[str, Any]]] = []
    for number in range(25):
        name, city = NAMES[number % 5], CITIES[number // 5]
        pairs += [
            (f"{name} lives in {city}.", {"schema": Person}),
            (f"My parcel from {city} never arrived.", {"choice": ["billing", "shipping", "account"]}),
            (f"My order ORD-{77100 + number} never arrived.", {"regex": r"ORD-\d{5}"}),
            (f"{name} is {20 + number} years old.", {"json_schema": AGE}),
        ]
    return pairs


def main() -> None:
    prompts = [prompt for prompt, _ in tasks()]
    columns = {
        keyword: [constraint.get(keyword) for _, constraint in tasks()]  # one value, or None, for each prompt
        for keyword in ("schema", "json_schema", "choice", "regex")
    }
    llm = LLM()
    start = time.perf_counter()
    outputs = llm.generate(prompts, **columns)
    seconds = time.perf_counter() - start
    for output in outputs[:8]:
        print(f"{output.prompt:45} {output.parsed!r}")
    num_tokens = sum(len(output.token_ids) for output in outputs)
    print(f"{len(outputs)} prompts, {num_tokens} tokens in {seconds:.1f} s")


if __name__ == "__main__":
    main()
