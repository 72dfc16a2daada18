"""Texts written by hand: how the model does on what nobody wrote a template for.

`HANDWRITTEN` guided the work, and some of its turns of phrase found their way into the generator. `UNSEEN` was written after the generator's last
change and guided nothing; it stays as it is.
"""

from __future__ import annotations

from typing import Any

from domains import BOOLEAN, DATE, INTEGER, NUMBER, STRING, STRINGS, closed
from example import Example, canonical_json

PERSON = closed({"name": STRING, "age": INTEGER, "city": STRING})
CONTACT = closed({"name": STRING, "email": STRING, "phone": STRING})
ITEM = closed({"product": STRING, "quantity": INTEGER})
ORDER = closed({"customer": STRING, "items": {"type": "array", "items": ITEM}, "express": BOOLEAN})
EVENT = closed({"title": STRING, "date": DATE, "location": STRING})
TICKET = closed({"customer": STRING, "category": {"enum": ["billing", "technical", "shipping", "account"]}, "priority": {"enum": ["low", "medium", "high"]}})

WEATHER = {"name": "get_weather", "parameters": closed({"city": STRING, "unit": {"enum": ["celsius", "fahrenheit"]}}, frozenset({"unit"}))}
CALENDAR = {"name": "create_event", "parameters": closed({"title": STRING, "date": STRING, "time": STRING}, frozenset({"time"}))}
TIMER = {"name": "set_timer", "parameters": closed({"minutes": INTEGER})}
ASSISTANT = [WEATHER, CALENDAR, TIMER]


def _fill(prompt: str, schema: Any, answer: Any) -> Example:
    return Example("fill", prompt, canonical_json(answer), {"schema": schema})


def _call(prompt: str, name: str, **arguments: Any) -> Example:
    return Example("call", prompt, canonical_json({"name": name, "arguments": arguments}), {"tools": ASSISTANT})


def _choice(prompt: str, options: list[str], answer: str) -> Example:
    return Example("choice", prompt, answer, {"choice": options})


def _regex(prompt: str, pattern: str, answer: str) -> Example:
    return Example("regex", prompt, answer, {"regex": pattern})


HANDWRITTEN = (
    _fill("Extract: Ada Lovelace, 36, London.", PERSON, {"name": "Ada Lovelace", "age": 36, "city": "London"}),
    _fill("Grace Hopper is 85 years old and lives in Arlington.", PERSON, {"name": "Grace Hopper", "age": 85, "city": "Arlington"}),
    _fill("I'm Tomasz Zieliński, a 29-year-old from Gdańsk.", PERSON, {"name": "Tomasz Zieliński", "age": 29, "city": "Gdańsk"}),
    _fill("At the age of 52, Miriam Feld still rows every morning in Hamburg.", PERSON, {"name": "Miriam Feld", "age": 52, "city": "Hamburg"}),
    _fill("Name: Bo Ek\nCity: Uppsala\nAge: 7", PERSON, {"name": "Bo Ek", "age": 7, "city": "Uppsala"}),
    _fill("Reach Dana Whitfield on 555-0199 or dana@whitfield.io.", CONTACT, {"name": "Dana Whitfield", "email": "dana@whitfield.io", "phone": "555-0199"}),
    _fill("Kofi Annor, kofi.annor@mail.gh, +233 201 555 812", CONTACT, {"name": "Kofi Annor", "email": "kofi.annor@mail.gh", "phone": "+233 201 555 812"}),
    _fill("Hi, this is Paula Brandt. Please send me 3 coffee mugs and 12 pencils. Express delivery please!", ORDER, {
        "customer": "Paula Brandt", "items": [{"product": "coffee mugs", "quantity": 3}, {"product": "pencils", "quantity": 12}], "express": True}),
    _fill("Rashid Qureshi ordered two wooden chairs. No hurry, standard shipping is fine.", ORDER, {
        "customer": "Rashid Qureshi", "items": [{"product": "wooden chairs", "quantity": 2}], "express": False}),
    _fill("The jazz night takes place on May 14, 2027 at the Blue Lagoon.", EVENT, {"title": "jazz night", "date": "2027-05-14", "location": "the Blue Lagoon"}),
    _fill("Join us for the Robotics Fair on 3 October 2026 at Science Park.", EVENT, {"title": "Robotics Fair", "date": "2026-10-03", "location": "Science Park"}),
    _fill("Hello, my name is Ines Okoro. I was charged twice this month. Please fix it as soon as possible.", TICKET, {
        "customer": "Ines Okoro", "category": "billing", "priority": "high"}),
    _fill("The app crashes every time I open the camera. It can wait. Regards, Leo Marsh", TICKET, {"customer": "Leo Marsh", "category": "technical", "priority": "low"}),
    _fill("Where is my parcel? It should have arrived on Monday, this is urgent! Yours, Nina Patel", TICKET, {"customer": "Nina Patel", "category": "shipping", "priority": "high"}),
    _fill("The wireless headset costs $79.99 and weighs 0.3 kg.", closed({"name": STRING, "price": NUMBER, "weight": NUMBER}), {"name": "wireless headset", "price": 79.99, "weight": 0.3}),
    _fill("Dune was written by Frank Herbert and published in 1965.", closed({"title": STRING, "author": STRING, "year": INTEGER}), {"title": "Dune", "author": "Frank Herbert", "year": 1965}),
    _fill("Set the volume to 11 and the channel to Radio Nova.", closed({"volume": INTEGER, "channel": STRING}), {"volume": 11, "channel": "Radio Nova"}),
    _fill("Olga likes chess, sailing and jazz.", closed({"name": STRING, "hobbies": STRINGS}), {"name": "Olga", "hobbies": ["chess", "sailing", "jazz"]}),
    _call("What's the weather like in Reykjavik?", "get_weather", city="Reykjavik"),
    _call("Will it rain in Porto tomorrow?", "get_weather", city="Porto"),
    _call("Tell me the temperature in Denver in fahrenheit.", "get_weather", city="Denver", unit="fahrenheit"),
    _call("Schedule a budget review for Friday at 3 pm.", "create_event", title="budget review", date="Friday", time="3 pm"),
    _call("Put dentist appointment in my calendar on March 9.", "create_event", title="dentist appointment", date="March 9"),
    _call("Start a timer for 25 minutes.", "set_timer", minutes=25),
    _call("Give me ten minutes on the clock.", "set_timer", minutes=10),
    _choice("The food was cold and the waiter was rude.", ["positive", "negative"], "negative"),
    _choice("What a wonderful evening, thank you!", ["positive", "negative", "neutral"], "positive"),
    _choice("I forgot my password and cannot log in.", ["billing", "technical", "account"], "account"),
    _choice("My card was charged two times for the same order.", ["billing", "shipping", "account"], "billing"),
    _choice("Is this urgent? The server is down and we lose money every minute!", ["low", "high"], "high"),
    _regex("You can call me at 555-0142 after lunch.", r"\d{3}-\d{4}", "555-0142"),
    _regex("My order ORD-77123 never arrived.", r"ORD-\d+", "ORD-77123"),
    _regex("The conference starts on 2026-11-21 in Oslo.", r"\d{4}-\d{2}-\d{2}", "2026-11-21"),
    _regex("Write to support@maskwright.dev for help.", r"[\w.]+@[\w.]+", "support@maskwright.dev"),
)

UNSEEN = (
    _fill("Yusuf Demirel turned 44 last week; he still lives in Izmir.", PERSON, {"name": "Yusuf Demirel", "age": 44, "city": "Izmir"}),
    _fill("Our guide in Cusco was Rosa Quispe, 31 years old.", PERSON, {"name": "Rosa Quispe", "age": 31, "city": "Cusco"}),
    _fill("Henrik Lund (age 67) retired to Bergen.", PERSON, {"name": "Henrik Lund", "age": 67, "city": "Bergen"}),
    _fill("The winner is Chloe Baptiste from Lyon, aged 19!", PERSON, {"name": "Chloe Baptiste", "age": 19, "city": "Lyon"}),
    _fill("For questions ask Imani Okeke: imani@okeke.ng, phone 0803 555 019.", CONTACT, {"name": "Imani Okeke", "email": "imani@okeke.ng", "phone": "0803 555 019"}),
    _fill("Viktor Sandoval, tel. 555-7731, mail viktor.s@sandoval.mx", CONTACT, {"name": "Viktor Sandoval", "email": "viktor.s@sandoval.mx", "phone": "555-7731"}),
    _fill("Elif Kaya wants to buy 4 desk lamps and 1 office chair, and she needs express delivery.", ORDER, {
        "customer": "Elif Kaya", "items": [{"product": "desk lamps", "quantity": 4}, {"product": "office chair", "quantity": 1}], "express": True}),
    _fill("Two garden hoses for Stefan Wolf, normal shipping.", ORDER, {"customer": "Stefan Wolf", "items": [{"product": "garden hoses", "quantity": 2}], "express": False}),
    _fill("We celebrate the Harvest Festival at Willow Farm on September 21, 2028.", EVENT, {"title": "Harvest Festival", "date": "2028-09-21", "location": "Willow Farm"}),
    _fill("Save the date! Alumni Dinner, 7 June 2029, Hotel Astoria.", EVENT, {"title": "Alumni Dinner", "date": "2029-06-07", "location": "Hotel Astoria"}),
    _fill("Good day, Marek Nowotny here. Your software shows a blank page after the update. No need to hurry.", TICKET, {
        "customer": "Marek Nowotny", "category": "technical", "priority": "low"}),
    _fill("I paid the same invoice twice and I need my money today! Greetings from Alma Reyes", TICKET, {"customer": "Alma Reyes", "category": "billing", "priority": "high"}),
    _call("Is there going to be snow in Innsbruck?", "get_weather", city="Innsbruck"),
    _call("How many degrees celsius is it in Cairo?", "get_weather", city="Cairo", unit="celsius"),
    _call("Please enter my haircut on Tuesday at 4:30 pm.", "create_event", title="haircut", date="Tuesday", time="4:30 pm"),
    _call("Make a note in the calendar: chess tournament on July 2.", "create_event", title="chess tournament", date="July 2"),
    _call("The pasta needs 9 minutes, please watch the time.", "set_timer", minutes=9),
    _choice("The hotel was loud and the bed was too short.", ["positive", "negative"], "negative"),
    _choice("Brilliant concert, I would go again tomorrow.", ["positive", "negative"], "positive"),
    _choice("The tracking page says delivered but there is nothing here.", ["billing", "shipping", "account"], "shipping"),
    _regex("Ask for Tina, extension 555-2093.", r"\d{3}-\d{4}", "555-2093"),
    _regex("Reference ORD-10442, ordered last May.", r"ORD-\d+", "ORD-10442"),
)
