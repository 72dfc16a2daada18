"""Tools of the synthetic corpus: their arguments and the requests that call them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import words
from domains import (
    DATE,
    EMAIL,
    INTEGER,
    NUMBER,
    STRING,
    STRINGS,
    Field,
    JsonSchema,
    keys,
    phrased,
    same,
    several,
    small,
)
from values import Source, Value


@dataclass(frozen=True, slots=True)
class Tool:
    """Possible names, arguments by placeholder, and requests; arguments missing from a request are optional."""

    names: tuple[str, ...]
    arguments: dict[str, Field]
    requests: tuple[str, ...]


def argument(names: str, make: Callable[[Source], str]) -> Field:
    return Field(keys(names), STRING, same(make), ())


def typed(names: str, schema: JsonSchema, make: Callable[[Source], Value]) -> Field:
    return Field(keys(names), schema, make, ())


def choice_argument(names: str, options: dict[str, tuple[str, ...]]) -> Field:
    return Field(keys(names), {"enum": list(options)}, phrased(options), ())


UNIT = choice_argument("unit units scale", {"celsius": ("celsius", "Celsius", "degrees C", "°C"), "fahrenheit": ("fahrenheit", "Fahrenheit", "degrees F", "°F")})
SWITCH = choice_argument("state action status", {"on": ("on",), "off": ("off",)})


def money_amount(source: Source) -> Value:
    return source.amount()


TOOLS = (
    Tool(keys("get_weather get_weather weather get_forecast get_current_weather"), {
        "city": argument("city city location place", Source.city),
        "day": argument("day date when", Source.day),
        "unit": UNIT,
    }, (
        "What's the weather in {city}?", "What is the weather in {city}?", "What's the weather like in {city}?", "What is the weather like in {city} {day}?", "How is the weather in {city}?", "How's the weather in {city} {day}?", "Weather for {city}, please.", "Show me the weather in {city}.", "Tell me the weather in {city}.", "Tell me the temperature in {city} in {unit}.", "What's the temperature in {city}?", "Temperature in {city} in {unit}?", "Will it be sunny in {city} {day}?", "Will it snow in {city} {day}?", "Is it raining in {city}?", "Is it cold in {city} {day}?", "Is it going to rain in {city} {day}?", "Any rain in {city} {day}?", "Forecast {city} {day}", "Give me the forecast for {city}.", "I need the weather in {city} in {unit}.", "How many degrees is it in {city}, in {unit}?", "What will the weather be in {city} {day}?", "Can I go out in {city} {day} or will it rain?", "Could you check the weather in {city}?", "Does it rain in {city} {day}?", "Weather in {city} {day}?", "Will it rain in {city} {day}?", "How warm is it in {city} in {unit}?", "Is it sunny in {city}?",
        "What is the forecast for {city} {day}?", "Give me the temperature in {city} in {unit}.", "Do I need an umbrella in {city} {day}?", "How cold will it get in {city} {day}?",
        "Tell me the weather in {city} in {unit} please.", "{city} weather", "Is it snowing in {city} right now?", "What will the weather be like in {city} {day}, in {unit}?",
        "I'm travelling to {city} {day}, how is the weather?", "Should I wear a coat in {city} {day}?", "Check the weather for {city}.", "How hot is {city}?", "Temperature in {city}, {unit}, please.",
    )),
    Tool(keys("create_event create_event add_event schedule_meeting add_to_calendar"), {
        "title": argument("title title name summary", Source.title),
        "date": argument("date day date", Source.day),
        "time": argument("time start_time start", Source.time),
        "people": typed("attendees participants people guests", STRINGS, several(Source.first_name, 1, 3)),
        "place": argument("location place room", Source.venue),
        "minutes": typed("duration duration_minutes minutes", INTEGER, lambda s: s.number(s.rng.randrange(10, 240, 5))),
    }, (
        "Schedule a {title} for {date} at {time}.", "Schedule a {title} on {date}.", "Schedule the {title} for {date}.", "Schedule {title} on {date} at {time}.", "Put the {title} in my calendar for {date}.", "Put a {title} on my calendar on {date} at {time}.", "Add a {title} to my calendar on {date}.", "Add the {title} to the calendar for {date} at {time}.", "Create a {title} on {date} at {time}.", "Make an appointment: {title}, {date}, {time}.", "New appointment {title} on {date} at {time}.", "Enter {title} on {date}.", "Plan a {title} with {people} on {date}.", "Arrange a {title} on {date} at {time}.", "Set up a {title} with {people} for {date} at {time}.", "Book the {title} on {date} at {time} in {place}.", "We have a {title} on {date}, add it please.", "There is a {title} on {date} at {time}, write it down.", "My {title} is on {date} at {time}.", "Block {minutes} minutes for the {title} on {date}.", "Note: {title} on {date} at {time}.", "I'd like to schedule a {title} on {date} at {time}.", "Can you add {title} on {date}?", "Put {title} in my calendar on {date}.", "Add {title} on {date} at {time} with {people}.", "Create an event {title}, {date}, {time}.",
        "Book a {title} with {people} on {date} at {time} for {minutes} minutes.", "I have a {title} on {date} at {time} in {place}.", "Set up a {title} at {time} on {date}.",
        "Invite {people} to the {title} on {date}.", "New event: {title} at {place}, {date}, {time}.", "Plan the {title} for {date}, {minutes} minutes.", "Please add the {title} on {date} at {time}.",
        "Can you schedule {title} with {people} at {time} {date}?", "{title} on {date} at {time}, please put it in the calendar.", "Let's have the {title} {date} at {time}.",
    )),
    Tool(keys("list_events get_calendar list_events show_schedule"), {"date": argument("date day date", Source.day)}, (
        "What is on my calendar {date}?", "What's on my calendar {date}?", "What do I have {date}?", "Show me my calendar for {date}.", "Which events are there {date}?", "Any appointments {date}?", "What is planned {date}?", "List all events of {date}.", "Do I have time {date}?", "Is there anything {date}?", "Open my calendar for {date}.", "Show my events for {date}.", "Do I have meetings {date}?", "What are my plans for {date}?", "List my appointments {date}.", "Am I free {date}?",
        "Show the schedule of {date}.", "What do I have to do {date}?",
    )),
    Tool(keys("cancel_event delete_event remove_event"), {"title": argument("title event name", Source.title), "date": argument("date day", Source.day)}, (
        "Cancel the {title}.", "Cancel my {title} on {date}.", "Cancel {title}.", "Delete the event {title}.", "Remove the {title} on {date}.", "Take the {title} off my calendar.", "The {title} will not take place, remove it.", "Call off the {title} on {date}.", "Drop the {title} {date}.", "Delete the {title} on {date}.", "Remove {title} from my calendar.", "The {title} on {date} is off, delete it.", "Please cancel {title} {date}.", "I can't make it to the {title}, cancel it.",
    )),
    Tool(keys("send_email send_mail email"), {
        "to": typed("to recipient address", EMAIL, same(Source.email)),
        "subject": argument("subject title", Source.phrase),
        "body": argument("body message text content", Source.phrase),
    }, (
        "Send an email to {to} with the subject {subject}.", "Mail {to}: {body}", "Write to {to} about {subject}: {body}", "Email {to} with subject {subject} and say {body}.",
        "Send {to} a mail saying {body}.", "Compose an email to {to}, subject {subject}, text {body}.", "Let {to} know by mail: {body}",
    )),
    Tool(keys("send_message text_contact send_sms message"), {"to": argument("to contact recipient name", Source.first_name), "text": argument("text message body content", Source.phrase)}, (
        "Text {to}: {text}", "Send a message to {to}: {text}", "Tell {to} to {text}.", "Message {to} that we must {text}.", "Write {to} a message: {text}", "Let {to} know: {text}", "Ask {to} to {text}.",
    )),
    Tool(keys("set_timer start_timer timer"), {"minutes": typed("minutes duration length", INTEGER, small(1, 90)), "label": argument("label name", Source.phrase)}, (
        "Set a timer for {minutes} minutes.", "Set the timer to {minutes} minutes.", "Start a timer for {minutes} minutes.", "Give me a timer of {minutes} minutes.", "Time {minutes} minutes.", "Timer for {minutes} minutes please.", "A {minutes} minute timer please.", "Tell me when {minutes} minutes are over.", "Let me know in {minutes} minutes.", "Can you set a timer for {minutes} minutes?", "Timer {minutes} min", "Give me {minutes} minutes.", "Start a {minutes} minute timer.", "Timer: {minutes} minutes for {label}.", "Remind me in {minutes} minutes to {label}.", "Count down {minutes} minutes.",
        "Wake me in {minutes} minutes.", "{minutes} minutes on the timer please.", "I need a timer of {minutes} minutes.",
    )),
    Tool(keys("set_alarm alarm create_alarm"), {"time": argument("time at", Source.time), "day": argument("day date", Source.day)}, (
        "Wake me up at {time}.", "Set an alarm for {time}.", "Alarm at {time} {day}.", "Set the alarm to {time} {day}.", "I have to get up at {time} {day}.", "Ring at {time}.", "Please wake me at {time} {day}.",
    )),
    Tool(keys("create_reminder add_reminder remind"), {"text": argument("text task what title", Source.phrase), "when": argument("when date day", Source.day), "time": argument("time at", Source.time)}, (
        "Remind me to {text} {when}.", "Remind me {when} at {time} to {text}.", "Don't let me forget to {text}.", "Add a reminder: {text}, {when}.", "I must {text} {when}, remind me.", "Set a reminder to {text} at {time}.",
        "Reminder for {when}: {text}.",
    )),
    Tool(keys("convert_currency exchange convert"), {
        "amount": typed("amount value sum", NUMBER, money_amount),
        "from": argument("from source from_currency", lambda s: s.rng.choice(words.CURRENCIES)),
        "to": argument("to target to_currency", lambda s: s.rng.choice(words.CURRENCIES)),
    }, (
        "Convert {amount} {from} to {to}.", "How much is {amount} {from} in {to}?", "What are {amount} {from} in {to}?", "Change {amount} {from} into {to}.", "{amount} {from} to {to}", "I have {amount} {from}, how many {to} is that?",
        "Exchange {amount} {from} for {to}.", "How many {to} do I get for {amount} {from}?",
    )),
    Tool(keys("play_music play_song play"), {"song": argument("song title track", lambda s: f"{s.pick(words.TEXT_ADJECTIVES).title()} {s.pick(words.TEXT_NOUNS).title()}"), "artist": argument("artist by singer band", Source.full_name), "genre": argument("genre style", lambda s: s.pick(words.GENRES))}, (
        "Play {song} by {artist}.", "Play some {genre}.", "I want to hear {song}.", "Put on {song} by {artist} please.", "Play {genre} music.", "Let me listen to {artist}.", "Start {song} from {artist}.", "Can you play {song}?", "Something by {artist}, please.",
    )),
    Tool(keys("search web_search search_web find"), {"query": argument("query q text", lambda s: s.phrase() if s.chance(0.6) else f"{s.product()} {s.city()}")}, (
        "Search for {query}.", "Look up {query}.", "Find {query} on the web.", "Search the web for {query}", "Google {query}.", "What can you find about {query}?", "Find information about {query}.",
    )),
    Tool(keys("control_device set_device switch_device switch"), {
        "device": argument("device appliance name", lambda s: s.pick(words.DEVICES)), "room": argument("room location", lambda s: s.pick(words.ROOMS)), "state": SWITCH,
    }, (
        "Turn {state} the {device} in the {room}.", "Switch {state} the {device}.", "Turn the {room} {device} {state}.", "Please turn the {device} {state}.", "{room} {device} {state}", "The {device} in the {room} should be {state}.",
        "Switch the {device} in the {room} {state}, please.", "Can you turn {state} the {device}?",
    )),
    Tool(keys("set_temperature set_thermostat thermostat"), {"degrees": typed("degrees temperature value", INTEGER, lambda s: s.number(s.integer(5, 35))), "room": argument("room location zone", lambda s: s.pick(words.ROOMS))}, (
        "Set the {room} to {degrees} degrees.", "Make it {degrees} degrees in the {room}.", "Heat the {room} to {degrees}.", "Set the thermostat to {degrees}.", "I want {degrees} degrees in the {room}.", "Change the temperature to {degrees} degrees.",
    )),
    Tool(keys("book_table reserve_table make_reservation"), {
        "restaurant": argument("restaurant place name", Source.company), "people": typed("people guests party_size seats", INTEGER, small(1, 12)), "time": argument("time at", Source.time), "date": argument("date day", Source.day),
    }, (
        "Book a table for {people} at {restaurant} {date} at {time}.", "Reserve a table at {restaurant} for {people} people.", "Table for {people} at {time}, {restaurant}.", "I'd like to eat at {restaurant} {date}, {people} people.",
        "Get us a table for {people} {date} at {time}.", "Make a reservation at {restaurant} for {date} at {time}.", "We are {people} and want to dine at {restaurant} at {time}.",
    )),
    Tool(keys("book_flight search_flights find_flights"), {
        "origin": argument("origin from from_city", Source.city), "destination": argument("destination to to_city", Source.city), "date": typed("date departure_date", DATE, Source.date), "people": typed("passengers seats travelers", INTEGER, small(1, 9)),
    }, (
        "Book a flight from {origin} to {destination} on {date}.", "Find flights from {origin} to {destination}.", "I want to fly to {destination} from {origin} on {date}.", "Flights {origin} to {destination}, {date}, {people} passengers.",
        "Get {people} seats to {destination} from {origin}.", "We are {people} and fly from {origin} to {destination} on {date}.", "Show me flights to {destination} leaving {origin} on {date}.",
    )),
    Tool(keys("translate translate_text translation"), {"text": argument("text phrase content", Source.phrase), "language": argument("language target target_language to", lambda s: s.pick(words.LANGUAGES))}, (
        "Translate {text} to {language}.", "How do you say {text} in {language}?", "What is {text} in {language}?", "Put {text} into {language}.", "{language} for: {text}", "Say {text} in {language}.",
    )),
    Tool(keys("get_order track_order order_status get_order_status"), {"id": argument("order_id id number", Source.code)}, (
        "Where is order {id}?", "Track order {id}.", "What is the status of order {id}?", "Has {id} been shipped?", "Look up order {id}.", "Check {id} for me.", "I am waiting for order {id}.", "When does {id} arrive?",
    )),
    Tool(keys("add_item add_to_cart add_to_list"), {"item": argument("item product name", Source.product), "quantity": typed("quantity count amount", INTEGER, small(1, 20))}, (
        "Add {quantity} {item} to the cart.", "Put a {item} on the list.", "I need {quantity} {item}.", "Add the {item} to my basket.", "Throw in {quantity} {item}.", "Shopping list: {quantity} {item}.", "Please add {item}.",
    )),
    Tool(keys("get_stock_price stock_price get_quote"), {"company": argument("company symbol name ticker", Source.company)}, (
        "What is the stock price of {company}?", "How is {company} trading?", "Quote for {company} please.", "Price of {company} shares?", "How much is a share of {company}?", "Check the stock of {company}.",
    )),
    Tool(keys("create_contact add_contact save_contact"), {"name": argument("name full_name contact", Source.full_name), "phone": argument("phone number phone_number", Source.phone), "email": typed("email mail", EMAIL, same(Source.email))}, (
        "Save {name} with the number {phone}.", "Add {name} to my contacts, {phone}.", "New contact {name}, {email}, {phone}.", "Store the number of {name}: {phone}.", "{name} has the email {email}, save it.", "Add contact {name} {email} .",
    )),
    Tool(keys("call_contact call phone_call make_call"), {"name": argument("name contact who person", Source.full_name)}, (
        "Call {name}.", "Ring {name} please.", "Phone {name}.", "I want to talk to {name}.", "Dial {name}.", "Get {name} on the phone.", "Give {name} a call.",
    )),
    Tool(keys("get_time current_time time_in"), {"city": argument("city location place", Source.city)}, (
        "What time is it in {city}?", "Time in {city}?", "Tell me the time in {city}.", "How late is it in {city}?", "What's the local time in {city}?", "Current time {city}",
    )),
)
