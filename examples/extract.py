"""Read a sentence into a Pydantic model."""

from pydantic import BaseModel, Field

from maskwright import generate


class Person(BaseModel):
    name: str = Field(max_length=40)
    age: int = Field(ge=0, le=150)
    city: str = Field(max_length=40)


def main() -> None:
    for text in ("Ada Lovelace, 36, lives in London.", "Grace Hopper is 85 years old and lives in Arlington."):
        person = generate(text, schema=Person)
        print(repr(person))


if __name__ == "__main__":
    main()
