"""Records: a text about some facts, and a schema that asks for some of them."""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any

import domains
from domains import INTEGER, NUMBER, STRING, Domain, Field, JsonSchema, closed
from example import Example, canonical_json, placeholders
from values import Source, Value

PREFIXES = (
    "", "", "", "", "", "Extract: ", "Extract the {d}: ", "Extract the {d} from this text: ", "Fill in the form: ", "Read this and fill in the fields.\n",
    "Text: ", "Please extract the data: ", "Here is a {d}: ", "Get the {d} out of this: ", "Parse this {d}: ", "What are the details? ", "Convert to JSON: ",
    "Input: ", "Note: ", "Find the {d}. ", "Turn this into a {d}:\n", "Extract the fields.\n\n", "Who or what is this? ", "Describe the {d}: ", "Read: ",
)
SUFFIXES = ("", "", "", "", "", "", "\nExtract the {d}.", " Extract the details.", "\n\nFill the form.", " Please fill in the {d}.", "\nReturn JSON.", "\nGive me the fields.")

ALTERNATIVE_LABELS = {
    "low": ("low", "minor"), "medium": ("medium", "normal"), "high": ("high", "urgent", "critical"),
    "positive": ("positive", "good", "happy"), "negative": ("negative", "bad", "unhappy"), "neutral": ("neutral", "mixed"),
    "billing": ("billing", "payment"), "technical": ("technical", "bug"), "shipping": ("shipping", "delivery"), "account": ("account", "login"),
    "new": ("new", "open", "created"), "cancelled": ("cancelled", "canceled"), "shipped": ("shipped", "sent"),
}


@dataclass(slots=True)
class Record:
    """Facts of one text: values by field, the text that states them, and the key that it uses for each, if it does."""

    domain: Domain
    values: dict[str, Value]
    text: str
    labels: dict[str, str] = field(default_factory=dict)


def make_record(source: Source, domain: Domain) -> Record:
    shape = source.rng.random()
    names = list(domain.fields)
    if shape < 0.17:
        chosen = source.rng.sample(names, source.rng.randint(2, min(6, len(names))))
        values = {name: domain.fields[name].make(source) for name in chosen}
        labels = {name: source.rng.choice(domain.fields[name].keys) for name in chosen}
        return Record(domain, values, labelled_text(source, values, labels), labels)
    if shape < 0.22:
        return bare_record(source, domain)
    return prose_record(source, domain)


def prose_record(source: Source, domain: Domain) -> Record:
    """An opener that mentions some fields, then a sentence for each of a few others."""
    rng = source.rng
    if domain is domains.PERSON and rng.random() < 0.3:
        return named_record(source, domain)
    opener = source.phrasing(domain.openers)
    mentioned = list(dict.fromkeys(placeholders(opener)))
    others = [name for name in domain.fields if name not in mentioned]
    extra = rng.sample(others, min(len(others), rng.choice([0, 1, 1, 2, 2, 3, 4])))
    values = {name: domain.fields[name].make(source) for name in mentioned + extra}
    subject = rng.choice(domain.subjects)
    clauses = [source.phrasing(domain.fields[name].clauses).replace("{v}", values[name].text) for name in extra]
    opening = opener.format(**{name: values[name].text for name in mentioned})
    sentences = [opening, *clauses]
    if rng.random() < 0.08:
        sentences.insert(rng.randint(0, len(sentences)), aside(source))
    if rng.random() < 0.1:
        rng.shuffle(sentences)
    return Record(domain, values, joined(sentences, rng).replace("{S}", subject).replace("{n}", str(rng.randint(2, 999))))


def named_record(source: Source, domain: Domain) -> Record:
    """Sentences whose subject is the name, without an opener; the first two may be one: `Ada is 36 and lives in London.`"""
    rng = source.rng
    others = rng.sample([name for name in domain.fields if name != "name"], rng.randint(1, 4))
    values = {name: domain.fields[name].make(source) for name in ["name", *others]}
    stated = [each for each in others if any(clause.startswith("{S}") for clause in domain.fields[each].clauses)]
    clauses = {each: source.phrasing(domain.fields[each].clauses) for each in others}
    clauses |= {each: source.phrasing([c for c in domain.fields[each].clauses if c.startswith("{S}")]) for each in stated[:2]}
    sentences = [clauses[each].replace("{v}", values[each].text) for each in sorted(others, key=lambda each: each not in stated[:2])]
    if not sentences[0].startswith("{S}"):
        sentences.insert(0, "This is {S}.")
    elif len(stated) > 1 and sentences[1].startswith("{S} "):
        sentences[:2] = [sentences[0].removesuffix(".") + rng.choice([" and ", ", ", " and "]) + sentences[1].removeprefix("{S} ")]
    pronoun = rng.choice([*domain.subjects, values["name"].text.split(" ")[0]])
    text = joined([sentences[0].replace("{S}", values["name"].text), *sentences[1:]], rng).replace("{S}", pronoun)
    return Record(domain, values, text)


def joined(sentences: list[str], rng: random.Random) -> str:
    separator = rng.choice([" ", " ", " ", " ", "\n"])
    return separator.join(sentences)


def labelled_text(source: Source, values: dict[str, Value], labels: dict[str, str]) -> str:
    """`Name: Ada` lines, as in a form."""
    rng = source.rng
    colon = rng.choice([": ", ": ", " = ", " - ", ":"])
    separator = rng.choice(["\n", "\n", ", ", "; ", " | "])
    capital = rng.random() < 0.6
    lines = []
    for name, value in values.items():
        label = labels[name].replace("_", " ")
        written = form_text(value)
        lines.append(f"{label.capitalize() if capital else label}{colon}{written}")
    return separator.join(lines)


def form_text(value: Value) -> str:
    if isinstance(value.json, bool):
        return "yes" if value.json else "no"
    sentence = isinstance(value.json, str) and value.text != value.json and value.text[-1] in ".!?"
    return value.json if sentence else value.text


def bare_record(source: Source, domain: Domain) -> Record:
    """`Ada Lovelace, 36, London`: values that speak for themselves."""
    names = [name for name, each in domain.fields.items() if each.bare]
    if len(names) < 3:
        return prose_record(source, domain)
    chosen = [names[0], *source.rng.sample(names[1:], source.rng.randint(1, 3))]
    values = {name: domain.fields[name].make(source) for name in chosen}
    separator = source.rng.choice([", ", ", ", ", ", " / ", "; ", " "]) if len(chosen) < 4 else ", "
    return Record(domain, values, separator.join(value.text for value in values.values()) + source.rng.choice(["", "."]))


def ask(source: Source, record: Record) -> tuple[JsonSchema, Any]:
    """A schema for some of the record's facts, with its answer; now and then it asks for one that the text does not state."""
    rng = source.rng
    present = list(record.values)
    chosen = rng.sample(present, rng.randint(min(len(present), 2), len(present))) if rng.random() < 0.5 else present
    if rng.random() < 0.3:
        rng.shuffle(chosen)
    absent = [name for name in record.domain.fields if name not in record.values]
    if absent and rng.random() < 0.12:
        chosen = chosen + rng.sample(absent, 1)
        rng.shuffle(chosen)
    return object_schema(source, record, chosen)


def object_schema(source: Source, record: Record, chosen: list[str]) -> tuple[JsonSchema, Any]:
    rng = source.rng
    properties: dict[str, JsonSchema] = {}
    optional, answer = set(), {}
    plain_keys, all_optional = rng.random() < 0.65, rng.random() < 0.06
    for name in chosen:
        each = record.domain.fields[name]
        key = each.keys[0] if plain_keys else rng.choice(each.keys)
        if name in record.labels and rng.random() < 0.7:
            key = record.labels[name]
        if key in properties:
            key = name
        if key in properties:
            continue
        value = record.values.get(name)
        schema, stated = field_schema(source, each, value)
        if all_optional or rng.random() < (0.5 if value is None else 0.06):
            optional.add(key)
        elif value is None or rng.random() < 0.08:
            schema = nullable(schema)
        properties[key] = schema
        if value is not None:
            answer[key] = stated
        elif key not in optional:
            answer[key] = None
    return nested(source, closed(properties, frozenset(optional)), answer)


def nullable(schema: JsonSchema) -> JsonSchema:
    return {"anyOf": [schema, {"type": "null"}]}


def field_schema(source: Source, each: Field, value: Value | None) -> tuple[JsonSchema, Any]:
    """The type to ask for, varied where the text allows, and what the answer is then."""
    rng = source.rng
    if value is None:
        items = {"type": "array", "items": STRING}
        return (items if each.schema == {"type": "array"} else each.schema), None
    if "enum" in each.schema:
        return varied_enum(source, each.schema["enum"], value.json)
    if each.schema == {"type": "array"}:
        return domains.schema_of_items(value.json), value.json
    if each.schema == domains.DATE and rng.random() < 0.35:
        return STRING, value.text
    if each.schema == domains.EMAIL and rng.random() < 0.6:
        return STRING, value.json
    if each.schema == INTEGER and rng.random() < 0.05:
        return NUMBER, value.json
    if each.schema == STRING and rng.random() < 0.04:
        options = list(dict.fromkeys([value.json, *(each.make(source).json for _ in range(rng.randint(1, 3)))]))
        rng.shuffle(options)
        return {"enum": options}, value.json
    return each.schema, value.json


def varied_enum(source: Source, labels: list[str], label: str) -> tuple[JsonSchema, str]:
    """Some of the labels in any order, under other names or in other letter case."""
    rng = source.rng
    others = [each for each in labels if each != label]
    kept = [label, *rng.sample(others, rng.randint(min(1, len(others)), len(others)))]
    rng.shuffle(kept)
    renamed = {each: rng.choice(ALTERNATIVE_LABELS.get(each, (each,))) if rng.random() < 0.15 else each for each in kept}
    case = rng.choice([*[str] * 12, str.title, str.upper])
    return {"enum": [case(renamed[each]) for each in kept]}, case(renamed[label])


def nested(source: Source, schema: JsonSchema, answer: dict[str, Any]) -> tuple[JsonSchema, Any]:
    """Now and then some keys are moved into an inner object."""
    names = list(schema["properties"])
    if len(names) < 3 or source.rng.random() > 0.07:
        return schema, answer
    first = source.rng.randrange(len(names) - 1)
    inner_names = names[first : first + source.rng.randint(2, 3)]
    key = source.rng.choice(["details", "info", "contact", "profile", "data", "meta", "record", "extra"])
    optional = set(names) - set(schema["required"])
    inner = closed({name: schema["properties"][name] for name in inner_names}, frozenset(optional & set(inner_names)))
    properties: dict[str, JsonSchema] = {}
    result: dict[str, Any] = {}
    for name in names:
        if name not in inner_names:
            properties[name] = schema["properties"][name]
            result |= {name: answer[name]} if name in answer else {}
        elif key not in properties:
            properties[key] = inner
            result[key] = {each: answer[each] for each in inner_names if each in answer}
    return closed(properties, frozenset(optional - set(inner_names))), result


def dressed(source: Source, text: str, noun: str) -> str:
    """The text with an instruction before or after it."""
    prefix = source.phrasing(PREFIXES) if source.rng.random() < 0.6 else ""
    suffix = source.phrasing(SUFFIXES) if not prefix and source.rng.random() < 0.3 else ""
    return (prefix + text + suffix).replace("{d}", noun)


def fill(source: Source) -> Example:
    record = make_record(source, domains.random_domain(source.rng))
    schema, answer = ask(source, record)
    return Example("fill", dressed(source, record.text, record.domain.name), canonical_json(answer), {"schema": schema})


def fill_list(source: Source) -> Example:
    """Several records of one shape as an array of objects."""
    rng = source.rng
    domain = rng.choice([domains.PERSON, domains.PRODUCT, domains.BOOK, domains.ANIMAL])
    plain = [name for name, each in domain.fields.items() if each.schema in (STRING, INTEGER, NUMBER)]
    template = source.phrasing([each for each in domain.openers if set(placeholders(each)) <= set(plain)])
    names = list(dict.fromkeys(placeholders(template)))
    rows, texts = [], []
    keys = {name: rng.choice(domain.fields[name].keys) for name in names}
    for _ in range(rng.randint(1, 3)):
        values = {name: domain.fields[name].make(source) for name in names}
        rows.append({keys[name]: values[name].json for name in names})
        texts.append(template.format(**{name: value.text for name, value in values.items()}))
    item = closed({keys[name]: domain.fields[name].schema for name in names})
    schema: JsonSchema = {"type": "array", "items": item}
    text = dressed(source, joined(texts, rng), domain.name)
    if rng.random() < 0.4:
        outer = rng.choice([domain.name + "s", "items", "results", "entries", "list"])
        return Example("fill", text, canonical_json({outer: rows}), {"schema": closed({outer: schema})})
    return Example("fill", text, canonical_json(rows), {"schema": schema})


def aside(source: Source) -> str:
    """A sentence that has nothing to do with the question."""
    return source.rng.choice([
        f"I am {source.first_name()}.", f"I live in {source.city()}.", f"I bought a {source.product()}.", "Thanks!", "Hello.", f"It is for {source.full_name()}.",
        source.phrase().capitalize() + ".",
    ])
