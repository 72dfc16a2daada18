"""A hundred prompts with four kinds of constraints in one call; they share one batch."""

import time
from typing import Any

from pydantic import BaseModel, Field

from maskwright import LLM
from maskwright.constraints import Choice, JsonSchema, Regex

NAMES = ["Ada Lovelace", "Grace Hopper", "Alan Turing", "Emmy Noether", "Ines Okoro"]
CITIES = ["London", "Oslo", "Porto", "Denver", "Leeds"]


class Person(BaseModel):
    name: str = Field(max_length=40)
    city: str = Field(max_length=40)


def tasks() -> list[tuple[str, Any]]:
    """(prompt, constraint) pairs, 100 of them."""
    pairs: list[tuple[str, Any]] = []
    for number in range(25):
        name, city = NAMES[number % 5], CITIES[number // 5]
        pairs += [
            (f"{name} lives in {city}.", JsonSchema(Person)),
            (f"My parcel from {city} never arrived.", Choice(["billing", "shipping", "account"])),
            (f"My order ORD-{77100 + number} never arrived.", Regex(r"ORD-\d{5}")),
            (f"{name} is {20 + number} years old.", JsonSchema({"type": "object", "properties": {"age": {"type": "integer"}}})),
        ]
    return pairs


def main() -> None:
    prompts, constraints = zip(*tasks(), strict=True)
    llm = LLM()
    start = time.perf_counter()
    outputs = llm.generate(prompts, constraint=list(constraints))
    seconds = time.perf_counter() - start
    for output in outputs[:8]:
        print(f"{output.prompt:45} {output.parsed!r}")
    num_tokens = sum(len(output.token_ids) for output in outputs)
    print(f"{len(outputs)} prompts, {num_tokens} tokens in {seconds:.1f} s")


if __name__ == "__main__":
    main()
