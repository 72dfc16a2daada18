"""Records and calls in more ways of putting them, for training alone: more phrasings, sentences woven together, and words that say nothing."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import domains
import tools
from calls import call_of
from choices import LEADS
from domains import Domain
from example import Example, canonical_json, placeholders
from records import Record, ask, dressed, joined, make_record
from values import Source, Value
from wordings import LABEL_SENTENCES, MORE_CLAUSES, MORE_OPENERS, MORE_REQUESTS, label_sentence

LABEL_TASKS = tuple(LABEL_SENTENCES)
COMPOSED_SHARE = 0.6  # of the sentences that mean a label

HEDGES = (
    "by the way", "as you know", "as far as I know", "as everybody says", "I think", "I believe", "if I remember well", "it seems", "of course", "to be honest", "in fact", "as always",
    "luckily", "believe it or not", "I am told", "says my aunt", "according to our list", "as agreed", "after all", "at the moment", "I suppose", "one hears",
)
LEAD_INS = (
    "By the way: ", "As you know, ", "FYI: ", "Just so you know: ", "News: ", "Update: ", "Good news! ", "Hi all, ", "Dear all, ", "Quick note: ", "For the record: ", "From my notes: ", "Listen: ", "Well, ", "So, ", "Oh, and ", "OK, ",
    "Hello there. ", "Good morning! ", "Hi! ", "Dear Sir or Madam, ", "To do: ", "P.S. ", "Found in the files: ", "He said: ", "She wrote: ", "Minutes: ", "From the newspaper: ", "Memo: ", "Once more: ", "- ", "* ", "1. ", "> ",
)
TAILS = (
    " Thanks!", " Thank you.", " That is all.", " Have a nice day.", " See you.", " More soon.", " Any questions?", " Nothing else is known.", " What a story!", " Please note it down.", " I hope that helps.", " So much for that.", " Please keep it to yourself.", " Let me know.", " Over.",
    " (copied from a letter)", " [end]", " Best wishes to all.", " It is a nice day today.", " We had a good laugh.", " Please forward this.", " I wrote it down for you.", " Sorry for the short note.",
)
ROLES = (
    "The speaker", "The new tenant", "Our neighbour", "The owner", "The patient", "The witness", "My boss", "My cousin", "The champion", "Our trainer", "A colleague of mine", "The author", "The man in the photo", "The woman on the phone", "The student", "The guest of honour", "My friend",
    "The founder", "The driver", "Our host", "The second passenger", "The artist", "The player", "The person you want",
)


def widened(domain: Domain) -> Domain:
    """The domain with all phrasings of its own and those of `wordings.py`; labels are told by composed sentences, too."""
    fields = {}
    for name, each in domain.fields.items():
        more = MORE_CLAUSES.get(domain.name, {}).get(name, ())
        make = composed(name, each.make) if name in LABEL_TASKS else each.make
        fields[name] = dataclasses.replace(each, clauses=each.clauses + more, make=make)
    return dataclasses.replace(domain, fields=fields, openers=domain.openers + MORE_OPENERS.get(domain.name, ()))


def composed(which: str, make: Callable[[Source], Value]) -> Callable[[Source], Value]:
    def value(source: Source) -> Value:
        told = make(source)
        return Value(told.json, label_sentence(source, which, told.json)) if source.chance(COMPOSED_SHARE) else told

    return value


WIDENED = {widened(domain): weight for domain, weight in domains.DOMAINS.items()}
PERSON = next(domain for domain in WIDENED if domain.name == domains.PERSON.name)


def fill_varied(source: Source) -> Example:
    """As `records.fill`, in more ways."""
    domain = source.rng.choices(list(WIDENED), weights=list(WIDENED.values()))[0]
    record = woven_record(source) if domain is PERSON and source.chance(0.3) else make_record(source, domain)
    schema, answer = ask(source, record)
    text = dressed(source, loosened(source, record.text), domain.name)
    return Example("fill", text, canonical_json(answer), {"schema": schema})


def woven_record(source: Source) -> Record:
    """One to three facts about a person in one sentence or two: relative clauses, brackets, a role in front."""
    rng = source.rng
    stated = {name: phrases for name, each in PERSON.fields.items() if (phrases := predicates(each.clauses))}
    chosen = rng.sample(list(stated), rng.randint(1, 3))
    values = {name: PERSON.fields[name].make(source) for name in ("name", *chosen)}
    first, *others = [source.phrasing(stated[each]).replace("{v}", values[each].text) for each in chosen]
    name, role = values["name"].text, rng.choice(ROLES)
    ways = [f"{role} is {name}, who {first}", f"{role}, {name}, {first}", f"{role} is called {name} and {first}", f"{name} {first}", f"It is {name} who {first}", f"I heard that {name} {first}", f"Did you know that {name} {first}?", f"{name} is the one who {first}"]
    text = rng.choice(ways)
    for other in others:
        subject = rng.choice([*PERSON.subjects, "This person"])
        links = [f" and {other}", f", and {other}", f". {subject} {other}", f"; {subject.lower()} {other}", f". {subject} also {other}", f". And {subject.lower()} {other}"]
        text = f"{text} {subject} {other}" if text.endswith("?") else text + rng.choice(links)
    return Record(PERSON, values, text if text.endswith("?") else text + rng.choice([".", ".", "!", ""]))


def predicates(clauses: tuple[str, ...]) -> list[str]:
    """What clauses say of a subject at their beginning."""
    return [clause[4:-1].rstrip() for clause in clauses if clause.startswith("{S} ") and clause.endswith(".") and clause.count("{S}") == 1]


def loosened(source: Source, text: str) -> str:
    """The same facts in looser words: something in front, something behind, a hedge where a sentence pauses, other marks."""
    rng = source.rng
    if rng.random() < 0.12 and " is " in text:
        text = text.replace(" is ", f" is, {rng.choice(HEDGES)}, ", 1)
    if rng.random() < 0.1:
        text = re.sub(r"\.( |\n|$)", rng.choice([r"!\1", r" ...\1", r" -\1", r";\1"]), text, count=1)
    if rng.random() < 0.22:
        text = rng.choice(LEAD_INS) + text
    if rng.random() < 0.2:
        text += rng.choice(TAILS)
    return text.rstrip(".") if rng.random() < 0.08 else text


# Calls and choices

MORE_TOOLS = tuple(dataclasses.replace(tool, requests=tool.requests + MORE_REQUESTS.get(tool.names[0], ())) for tool in tools.TOOLS)
REQUEST_LEADS = ("Hey, ", "Please: ", "Hi! ", "Hello, ", "Hello! ", "Excuse me: ", "OK. ", "Now this: ", "A question: ", "Quick: ", "Good morning. ", "Thanks. ", "One more thing: ")


def call_varied(source: Source) -> Example:
    """As `calls.call`, in more ways."""
    rng = source.rng
    tool = rng.choice(MORE_TOOLS[:5] if rng.random() < 0.5 else MORE_TOOLS)
    request = source.phrasing(tool.requests)
    values = {name: tool.arguments[name].make(source) for name in dict.fromkeys(placeholders(request))}
    text = request.format(**{name: value.text for name, value in values.items()})
    text = rng.choice(REQUEST_LEADS) + text if rng.random() < 0.2 else text
    return call_of(source, tool, values, text + (rng.choice([" Thanks!", " Thank you.", " Please.", " Quickly!"]) if rng.random() < 0.08 else ""))


def choose_varied(source: Source) -> Example:
    """One of a few labels, by one or two composed sentences."""
    rng = source.rng
    task = rng.choice(("sentiment", "sentiment", "category", "category", "priority"))
    label = rng.choice(list(LABEL_SENTENCES[task]))
    others = [each for each in LABEL_SENTENCES[task] if each != label]
    options = [label, *rng.sample(others, rng.randint(1, len(others)))]
    rng.shuffle(options)
    sentences = [label_sentence(source, task, label) for _ in range(rng.choice([1, 1, 2]))]
    lead = source.phrasing(LEADS).format(p=source.product(), n=source.full_name(), c=source.city())
    text = (lead + joined(sentences, rng)).replace("{n}", str(rng.randint(2, 999)))
    return Example("choice", loosened(source, text), label, {"choice": options})
