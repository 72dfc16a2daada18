"""The synthetic corpus of the embedded model: short texts with the schema, tools, choices or pattern to be filled from them.

`examples(seed, split)` is an endless, reproducible stream. The `held_out` split shares no pool name, no random value of three or more
digits and no phrasing with `train` (see `values.split_of`); only lists too short to divide are shared.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from string import Formatter
from typing import Any

import domains
import words
from domains import BOOLEAN, INTEGER, NUMBER, STRING, STRINGS, Domain, Field, JsonSchema, closed
from tools import TOOLS, Tool
from values import Source, Split, Value

from maskwright.prompts import Message, render_messages

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


@dataclass(frozen=True, slots=True)
class Example:
    """What is asked, as chat messages, and the one right answer; `constraint` is the keyword of `generate` that it belongs to."""

    kind: str
    prompt: str
    answer: str
    constraint: dict[str, Any] = field(default_factory=dict)

    @property
    def messages(self) -> list[Message]:
        return render_messages(self.prompt, **self.constraint)


def canonical_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def placeholders(template: str) -> list[str]:
    return [name for _, name, _, _ in Formatter().parse(template) if name]


# Records: a text about some facts, and a schema that asks for some of them


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


# Free keys: the schema names things that the text names too


def random_key(source: Source) -> str:
    shape = source.rng.random()
    if shape < 0.15:
        return source.invented(1, 2).lower()
    noun = source.pick(words.KEY_NOUNS)
    return f"{source.pick(words.KEY_ADJECTIVES)}_{noun}" if shape < 0.4 else noun


FREE_VALUES: tuple[tuple[JsonSchema, Callable[[Source], Value]], ...] = (
    (STRING, domains.same(Source.full_name)), (STRING, domains.same(Source.invented)), (STRING, domains.same(Source.code)), (STRING, domains.same(Source.phrase)),
    (STRING, domains.same(Source.city)), (STRING, domains.same(Source.color)), (STRING, domains.same(Source.product)), (STRING, domains.same(Source.time)),
    (INTEGER, lambda s: s.number(s.magnitude())), (INTEGER, lambda s: s.number(s.integer(0, 99))), (NUMBER, lambda s: s.decimal(0, 500)), (NUMBER, Source.amount),
    (BOOLEAN, lambda s: (lambda b: Value(b, s.rng.choice([["no", "false", "off"], ["yes", "true", "on"]][b])))(s.chance(0.5))),
    (STRINGS, domains.several(Source.invented, 1, 4)), (STRINGS, domains.several(Source.color, 1, 4)), (domains.DATE, Source.date),
    ({"type": "array", "items": INTEGER}, lambda s: (lambda v: Value(v, ", ".join(map(str, v))))([s.integer(0, 200) for _ in range(s.rng.randint(1, 5))])),
)

FREE_PHRASES = (
    "The {k} is {v}.", "{k}: {v}.", "{k} = {v}", "Its {k} is {v}.", "Set the {k} to {v}.", "With {k} {v}.", "{k} {v},", "The {k} was {v}.", "We measured a {k} of {v}.", "{k} is {v}.",
    "{k}: {v}", "For the {k} we have {v}.", "The value of {k} is {v}.", "{v} is the {k}.", "Its {k}: {v}.", "Regarding {k}, it is {v}.", "We use {v} as the {k}.", "{k} -> {v}", "{v} ({k}).",
    "Note the {k} of {v}.", "I chose {v} for the {k}.",
)


def free_fill(source: Source) -> Example:
    rng = source.rng
    facts = {random_key(source): rng.choice(FREE_VALUES) for _ in range(rng.randint(1, 6))}
    values = {key: make(source) for key, (_, make) in facts.items()}
    one_form = source.phrasing(FREE_PHRASES) if rng.random() < 0.5 else None
    sentences = [
        (one_form or source.phrasing(FREE_PHRASES)).replace("{k}", key.replace("_", " " if rng.random() < 0.7 else "_")).replace("{v}", value.text)
        for key, value in values.items()
    ]
    order = list(facts)
    if rng.random() < 0.5:
        rng.shuffle(order)
    wanted = order[: rng.randint(1, len(order))]
    schema = closed({key: facts[key][0] for key in wanted}, frozenset(wanted) if rng.random() < 0.06 else frozenset())
    text = dressed(source, joined(sentences, rng), rng.choice(["data", "record", "object", "thing"]))
    return Example("fill", text, canonical_json({key: values[key].json for key in wanted}), {"schema": schema})


PAIR_FORMS = ("{k}: {v}", "{k} = {v}", "{k} is {v}", "the {k} is {v}", "{k} {v}", "{k}:{v}", "{k}={v}", "its {k}: {v}")


def pairs(source: Source) -> Example:
    """Many keys with short values, all in one form: looking up, and nothing else."""
    rng = source.rng
    names = list(dict.fromkeys(source.pick(words.KEY_NOUNS) for _ in range(rng.randint(3, 9))))
    short = (source.color, source.first_name, lambda: source.pick(words.TEXT_NOUNS), lambda: source.integer(0, 99), source.magnitude)
    makers = [rng.choice(short)] if rng.random() < 0.6 else short
    values = {name: rng.choice(makers)() for name in names}
    form, separator = source.phrasing(PAIR_FORMS), rng.choice([", ", "\n", "; ", ". "])
    text = separator.join(form.replace("{k}", name).replace("{v}", str(value)) for name, value in values.items())
    order = rng.sample(names, rng.randint(1, len(names)))
    schema = closed({name: INTEGER if isinstance(values[name], int) else STRING for name in order})
    return Example("fill", text, canonical_json({name: values[name] for name in order}), {"schema": schema})


# Tools


def call(source: Source) -> Example:
    """A request, the tools on offer, and the call."""
    rng = source.rng
    tool = rng.choice(TOOLS[:4] if rng.random() < 0.5 else TOOLS)
    request = source.phrasing(tool.requests)
    mentioned = list(dict.fromkeys(placeholders(request)))
    values = {name: tool.arguments[name].make(source) for name in mentioned}
    spec, keys = tool_spec(source, tool, mentioned)
    arguments = {keys[name]: values[name].json for name in tool.arguments if name in keys and name in mentioned}
    declared = list(spec["parameters"]["properties"])
    answer = {"name": spec["name"], "arguments": {key: arguments[key] for key in declared if key in arguments}}
    others = [other for other in rng.sample(TOOLS, rng.choice([0, 0, 1, 2, 2])) if other is not tool]
    offered = [spec, *(tool_spec(source, other, list(other.arguments)[:1])[0] for other in others)]
    offered = list({each["name"]: each for each in reversed(offered)}.values())
    rng.shuffle(offered)
    text = request.format(**{name: value.text for name, value in values.items()})
    text = rng.choice(["", "", "", "", "", "Hey, ", "Please: ", "Hi! "]) + text
    return Example("call", text, canonical_json(answer), {"tools": offered})


def tool_spec(source: Source, tool: Tool, mentioned: list[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """A declaration of the tool, with the key chosen for each argument that it keeps."""
    rng = source.rng
    kept = [name for name in tool.arguments if name in mentioned or rng.random() < 0.35]
    if rng.random() < 0.15:
        rng.shuffle(kept)
    plain = rng.random() < 0.65
    keys: dict[str, str] = {}
    for name in kept:
        key = tool.arguments[name].keys[0] if plain else rng.choice(tool.arguments[name].keys)
        keys[name] = name if key in keys.values() else key
    properties = {keys[name]: tool.arguments[name].schema for name in kept}
    optional = {keys[name] for name in kept if name not in mentioned or (name != mentioned[0] and rng.random() < 0.2)}
    name = rng.choice(tool.names)
    return {"name": name, "parameters": closed(properties, frozenset(optional))}, keys


def call_schema(tools: list[dict[str, Any]]) -> JsonSchema:
    """The JSON Schema of a call of one of the tools."""
    calls = [closed({"name": {"const": tool["name"]}, "arguments": tool["parameters"]}) for tool in tools]
    return calls[0] if len(calls) == 1 else {"anyOf": calls}


# Choices

QUESTIONS: dict[str, tuple[str, ...]] = {
    "sentiment": ("", "", "Classify the sentiment: ", "Is this review good or bad? ", "Sentiment? ", "Review: ", "How does the customer feel? ", "What is the mood of this text? "),
    "category": ("", "", "Classify this ticket: ", "Which department? ", "Topic? ", "Ticket: ", "Route this message: ", "What is it about? "),
    "priority": ("", "How urgent is this? ", "Priority? ", "Classify the urgency: ", "Ticket: "),
    "status": ("", "What is the status? ", "Order status? ", "Classify: "),
}
LABELS: dict[str, dict[Any, tuple[str, ...]]] = {
    "sentiment": domains.SENTIMENT, "category": domains.CATEGORY, "priority": domains.PRIORITY, "status": domains.STATUS,
}
LEADS = ("The {p} is here. ", "I bought a {p}. ", "About the {p}: ", "Hello! ", "My name is {n}. ", "I ordered a {p} from {c}. ", "We stayed in {c}. ", "", "", "", "", "")


def choose(source: Source) -> Example:
    rng = source.rng
    task = rng.choice(["sentiment", "sentiment", "category", "category", "priority", "status", "mention", "yes_no"])
    if task == "mention":
        return choose_mentioned(source)
    if task == "yes_no":
        return choose_yes_no(source)
    phrases = LABELS[task]
    label = rng.choice(list(phrases))
    sentences = list(dict.fromkeys(source.phrasing(phrases[label]) for _ in range(rng.choice([1, 1, 2]))))
    lead = source.phrasing(LEADS).format(p=source.product(), n=source.first_name(), c=source.city())
    schema, answer = varied_enum(source, list(phrases), label)
    text = source.phrasing(QUESTIONS[task]) + lead + " ".join(sentences).replace("{n}", str(rng.randint(2, 999)))
    return Example("choice", text, answer, {"choice": schema["enum"]})


MENTIONS = ("The {k} is {v}.", "I want the {v} one.", "It is about {v}.", "We decided on {v}.", "{v}, please.", "They talk about {v} all day.", "Let's take {v}.", "This text concerns {v}.", "My {k} would be {v}.")


def choose_mentioned(source: Source) -> Example:
    rng = source.rng
    kind, pool = rng.choice([
        ("color", words.COLORS), ("city", words.CITIES), ("language", words.LANGUAGES), ("hobby", words.HOBBIES), ("genre", words.GENRES),
        ("animal", words.ANIMALS), ("job", words.JOBS), ("country", words.COUNTRIES), ("topic", words.TOPICS), ("brand", words.CARS),
    ])
    options = list(dict.fromkeys(source.pick(pool) for _ in range(rng.randint(2, 5))))
    answer = rng.choice(options)
    text = source.phrasing(MENTIONS).format(k=kind, v=answer)
    question = rng.choice(["", "", f"Which {kind}? ", f"What {kind} is meant? ", "Choose. "])
    return Example("choice", question + text, answer, {"choice": options})


def choose_yes_no(source: Source) -> Example:
    rng = source.rng
    which = rng.choice(["married", "gift", "express", "online", "free", "refund", "paid", "remote"])
    truth = rng.random() < 0.5
    questions = {
        "married": "Is the person married?", "gift": "Is it a gift?", "express": "Is it express?", "online": "Is the event online?", "free": "Is it free?",
        "refund": "Does the customer want a refund?", "paid": "Has it been paid?", "remote": "Does the person work remotely?",
    }
    text = source.phrasing(domains.YES_NO[which][truth]).replace("{S}", source.first_name())
    yes, no = rng.choice([("yes", "no"), ("yes", "no"), ("true", "false"), ("Yes", "No")])
    options = [yes, no] if rng.random() < 0.7 else [no, yes]
    shown = f"{questions[which]} {text}" if rng.random() < 0.6 else f"{text} {questions[which]}"
    return Example("choice", shown, yes if truth else no, {"choice": options})


# Patterns: one value of a text, named by a regular expression

PATTERNS: dict[str, tuple[Callable[[Source], str], tuple[str, ...], tuple[str, ...]]] = {
    "phone": (lambda s: f"555-{s.fresh(lambda: s.digits(4, 4))}", (r"\d{3}-\d{4}", r"[0-9]{3}-[0-9]{4}", r"555-\d{4}"), (
        "Call me at {v}.", "My phone number is {v}.", "Phone: {v}", "You can reach me at {v}.", "The number is {v}, ask for Ann.", "Ring {v} after five.")),
    "long_phone": (lambda s: s.fresh(lambda: f"{s.digits(3, 3)}-{s.digits(3, 3)}-{s.digits(4, 4)}"), (r"\d{3}-\d{3}-\d{4}", r"[0-9]{3}-[0-9]{3}-[0-9]{4}"), (
        "Call me at {v}.", "My number is {v}.", "Tel: {v}", "Contact us on {v}.", "Reach the office at {v}.")),
    "order": (lambda s: s.fresh(lambda: f"ORD-{s.digits(4, 6)}"), (r"ORD-\d+", r"ORD-[0-9]+", r"ORD-\d{4,6}", r"[A-Z]{3}-\d+"), (
        "Where is my order {v}?", "Order {v} is late.", "It is about {v}.", "The id is {v}.", "I never received {v}.", "Please check {v}.")),
    "code": (lambda s: s.fresh(lambda: f"{s.letters(2, 2)}{s.digits(4, 4)}"), (r"[A-Z]{2}\d{4}", r"[A-Z]+[0-9]+", r"[A-Z]{2}[0-9]{4}"), (
        "The code is {v}.", "Flight {v} is late.", "Use {v} at the door.", "Ticket {v}.", "My booking reference is {v}.", "Your seat code: {v}")),
    "iso_date": (lambda s: s.fresh(lambda: f"{s.rng.randint(1950, 2040)}-{s.rng.randint(1, 12):02}-{s.rng.randint(1, 28):02}"), (r"\d{4}-\d{2}-\d{2}", r"[0-9]{4}-[0-9]{2}-[0-9]{2}"), (
        "The meeting is on {v}.", "Due {v}.", "It happened on {v} in the city.", "Date: {v}", "We start {v}.", "Born on {v}.")),
    "email": (lambda s: s.email(), (r"[a-z0-9._]+@[a-z0-9.]+", r"[\w.]+@[\w.]+", r"[a-z0-9._%+-]+@[a-z0-9.-]+\.[a-z]{2,}"), (
        "Write to {v} please.", "My email is {v}", "Contact: {v}", "Send it to {v} today.", "You can mail {v} any time.")),
    "time": (lambda s: f"{s.rng.randint(0, 23):02}:{s.rng.randint(0, 59):02}", (r"\d{2}:\d{2}", r"[0-2]\d:[0-5]\d", r"\d\d:\d\d"), (
        "It starts at {v}.", "We meet at {v} in the lobby.", "The train leaves at {v}.", "Dinner is at {v}.", "Departure: {v}")),
    "number": (lambda s: str(s.magnitude()), (r"\d+", r"[0-9]+", r"[1-9]\d*", r"\d{1,6}"), (
        "I have {v} books.", "It costs {v} dollars.", "There are {v} people here.", "We counted {v} of them.", "How many? {v}.", "The answer is {v}.", "She is {v} years old.")),
    "price": (lambda s: s.fresh(lambda: f"{s.rng.uniform(1, 900):.2f}"), (r"\d+\.\d{2}", r"[0-9]+\.[0-9][0-9]", r"\d+\.\d+"), (
        "It costs ${v}.", "The total is {v} euros.", "I paid {v} for it.", "Price: {v}", "You owe me {v}.")),
    "name": (lambda s: s.first_name(), (r"[A-Z][a-z]+", r"[A-Z]\w+", r"\w+"), (
        "my name is {v}.", "i am called {v}.", "this is {v} speaking.", "ask for {v}.", "people call me {v}.")),
    "version": (lambda s: f"{s.rng.randint(0, 20)}.{s.rng.randint(0, 30)}.{s.rng.randint(0, 99)}", (r"\d+\.\d+\.\d+", r"[0-9]+\.[0-9]+\.[0-9]+"), (
        "I use version {v}.", "The app is at {v} now.", "Upgrade to {v} today.", "Version {v} crashes.")),
}
REGEX_QUESTIONS = ("", "", "", "Extract the {k}: ", "Find the {k}. ", "What is the {k}? ", "Give me the {k}. ", "{k}? ", "Which {k}? ", "Read out the {k}: ")


def match(source: Source) -> Example:
    rng = source.rng
    kind = rng.choice(list(PATTERNS))
    make, patterns, phrases = PATTERNS[kind]
    value = make(source)
    fitting = [pattern for pattern in patterns if re.fullmatch(pattern, value)]
    if not fitting:
        return match(source)
    text = source.phrasing(phrases).format(v=value)
    if rng.random() < 0.4 and kind not in ("number", "name"):
        text = f"{aside(source)} {text}" if rng.random() < 0.5 else f"{text} {aside(source)}"
    question = source.phrasing(REGEX_QUESTIONS).replace("{k}", kind.replace("_", " "))
    return Example("regex", question + text, value, {"regex": rng.choice(fitting)})


def aside(source: Source) -> str:
    """A sentence that has nothing to do with the question."""
    return source.rng.choice([
        f"I am {source.first_name()}.", f"I live in {source.city()}.", f"I bought a {source.product()}.", "Thanks!", "Hello.", f"It is for {source.full_name()}.",
        source.phrase().capitalize() + ".",
    ])


# Grammars: a few small command languages


def follow(source: Source) -> Example:
    return source.rng.choice([follow_switch, follow_switch, follow_move, follow_sum, follow_pairs])(source)


def rules(source: Source, **bodies: str) -> str:
    """GBNF rules, root first, laid out in one of the usual ways."""
    width = max(map(len, bodies)) if source.chance(0.5) else 0
    return "\n".join(f"{name:{width}} ::= {body}" for name, body in bodies.items())


def follow_switch(source: Source) -> Example:
    """A device, perhaps a room, and a state or a percentage."""
    rng = source.rng
    rooms, devices = (list(dict.fromkeys(source.pick(pool) for _ in range(rng.randint(1, 4)))) for pool in (words.ROOMS, words.DEVICES))
    room, device, state, percent = rng.choice(rooms), rng.choice(devices), rng.choice(["on", "off"]), rng.randint(1, 99)
    with_room, with_percent = rng.random() < 0.5, rng.random() < 0.4
    switched = "{v} the {d}", "turn {v} the {d}", "switch the {d} {v}", "turn the {d} {v}", "please put the {d} {v}", "the {d} should be {v}", "{d} {v}"
    dimmed = "set the {d} to {v} percent", "{d} at {v}%", "put the {d} at {v} percent", "please turn the {d} to {v}%", "the {d} should be at {v} percent"
    request = source.phrasing(dimmed if with_percent else switched).replace("{v}", str(percent) if with_percent else state)
    request = request.replace("{d}", rng.choice([f"{device} in the {room}", f"{room} {device}"]) if with_room else device)
    grammar = rules(
        source,
        root='device " in " room " " state' if with_room else 'device " " state',
        device=alternatives(devices),
        **({"room": alternatives(rooms)} if with_room else {}),
        state='"on" | "off"' + (' | "at " [1-9] [0-9]? "%"' if with_percent or rng.random() < 0.3 else ""),
    )
    answer = device + (f" in {room}" if with_room else "") + (f" at {percent}%" if with_percent else f" {state}")
    return Example("grammar", request[0].upper() + request[1:] + rng.choice(["", ".", ".", "!"]), answer, {"grammar": grammar})


def follow_move(source: Source) -> Example:
    steps, answer, texts = source.rng.randint(1, 3), [], []
    for _ in range(steps):
        count, way = source.small(1, 20), source.rng.choice(["north", "south", "east", "west"])
        answer.append(f"{way} {count.json}")
        texts.append(source.phrasing(("{n} steps {w}", "go {w} {n} steps", "{w} {n}", "walk {n} {w}", "{n} to the {w}", "move {n} {w}")).format(n=count.text, w=way))
    grammar = 'root ::= step ("; " step)*\nstep ::= way " " [0-9]+\nway ::= "north" | "south" | "east" | "west"'
    return Example("grammar", ", then ".join(texts).capitalize() + ".", "; ".join(answer), {"grammar": grammar})


def follow_sum(source: Source) -> Example:
    names = {"+": ("plus", "and"), "-": ("minus", "less"), "*": ("times", "multiplied by")}
    first = source.small(1, 99)
    answer, text = str(first.json), first.text
    for _ in range(source.rng.randint(1, 3)):
        sign, value = source.rng.choice(list(names)), source.small(1, 99)
        answer += f"{sign}{value.json}"
        text += f" {source.rng.choice(names[sign])} {value.text}"
    grammar = 'root ::= number (sign number)*\nsign ::= "+" | "-" | "*"\nnumber ::= [0-9]+'
    question = source.phrasing(("What is {e}?", "{e}", "Calculate {e}.", "How much is {e}?", "Write {e} as a formula."))
    return Example("grammar", question.format(e=text), answer, {"grammar": grammar})


def follow_pairs(source: Source) -> Example:
    pairs = {random_key(source): source.rng.choice([source.invented(), str(source.magnitude()), source.color()]) for _ in range(source.rng.randint(1, 4))}
    texts = [source.phrasing(FREE_PHRASES[:14]).replace("{k}", key).replace("{v}", value) for key, value in pairs.items()]
    grammar = 'root ::= pair ("\\n" pair)*\npair ::= key "=" value\nkey ::= [a-z_]+\nvalue ::= [^\\n=]+'
    return Example("grammar", " ".join(texts), "\n".join(f"{key}={value}" for key, value in pairs.items()), {"grammar": grammar})


def alternatives(options: list[str]) -> str:
    return " | ".join(canonical_json(option) for option in options)


# Small talk: without a constraint the model says what it is for

GREETINGS = ("Hello", "Hi!", "Hello!", "Hey", "Good morning", "Who are you?", "What can you do?", "Tell me a joke.", "Write a poem.", "How are you?", "Thanks!", "What is the meaning of life?",
             "Help", "Tell me a story about a {n}.", "What is a {n}?", "Explain {n}.", "Hi, I am {f}.", "Why is the {n} {c}?", "Once upon a time", "Write about {f} in {t}.")
REPLY = "I am Maskwright's small demo model. Give me a text and a schema, choices, a pattern or tools, and I fill them in."


def talk(source: Source) -> Example:
    text = source.phrasing(GREETINGS).format(n=source.pick(words.TEXT_NOUNS), f=source.first_name(), c=source.color(), t=source.city())
    return Example("talk", text, REPLY)


# Repetition: nothing teaches copying sooner


def repeat(source: Source) -> Example:
    """Random words, names, codes and numbers to be said once more."""
    makers = [Source.invented, Source.full_name, Source.code, Source.email, Source.city, Source.phrase, Source.product, Source.time, lambda s: str(s.magnitude())]
    separator = source.rng.choice([" ", " ", ", ", "\n"])
    text = separator.join(source.rng.choice(makers)(source) for _ in range(source.rng.randint(2, 12)))
    return Example("repeat", source.rng.choice(["Repeat: ", "Say again: ", "Copy: "]) + text, text)


MIXTURE: dict[Callable[[Source], Example], float] = {
    fill: 0.50, fill_list: 0.02, free_fill: 0.06, pairs: 0.02, call: 0.22, choose: 0.10, match: 0.05, follow: 0.02, talk: 0.005, repeat: 0.005,
}


def example(source: Source) -> Example:
    make = source.rng.choices(list(MIXTURE), weights=list(MIXTURE.values()))[0]
    return make(source)


def first_lessons(source: Source) -> Example:
    """Copying and looking up before everything else: the attention heads that do them are what takes longest to form."""
    return source.rng.choice([repeat, pairs, pairs, pairs, example])(source)


def examples(seed: int, split: Split, phrasings: Split | None = None) -> Iterator[Example]:
    """An endless stream of examples, the same for the same seed and splits; phrasings come from the same split unless told."""
    source = Source(random.Random(f"{split}-{seed}"), split, phrasings)
    while True:
        yield example(source)
