"""What the synthetic texts are about: for each domain its fields, how they are called, and the ways people put them into words."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import words
from values import Source, Value, listed

JsonSchema = dict[str, Any]

STRING: JsonSchema = {"type": "string"}
INTEGER: JsonSchema = {"type": "integer"}
NUMBER: JsonSchema = {"type": "number"}
BOOLEAN: JsonSchema = {"type": "boolean"}
DATE: JsonSchema = {"type": "string", "format": "date"}
EMAIL: JsonSchema = {"type": "string", "format": "email"}
STRINGS: JsonSchema = {"type": "array", "items": STRING}


@dataclass(frozen=True, slots=True)
class Field:
    """One fact: its possible keys, its type, a random value, and sentences that state it ({v} is the value, {S} the subject)."""

    keys: tuple[str, ...]
    schema: JsonSchema
    make: Callable[[Source], Value]
    clauses: tuple[str, ...]
    bare: bool = False  # recognisable without a label, as in "Ada Lovelace, 36, London"


@dataclass(frozen=True, slots=True, eq=False)
class Domain:
    """Fields by name; openers are texts that mention the fields in their braces."""

    name: str
    fields: dict[str, Field]
    openers: tuple[str, ...]
    subjects: tuple[str, ...] = ("It",)


def keys(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def same(make: Callable[[Source], str]) -> Callable[[Source], Value]:
    """A value that is copied from the text as it stands."""

    def value(source: Source) -> Value:
        text = make(source)
        return Value(text, text)

    return value


def integer(low: int, high: int) -> Callable[[Source], Value]:
    return lambda source: source.number(source.integer(low, high))


def small(low: int, high: int) -> Callable[[Source], Value]:
    return lambda source: source.small(low, high)


def decimal(low: float, high: float) -> Callable[[Source], Value]:
    return lambda source: source.decimal(low, high)


def phrased(phrases: dict[Any, tuple[str, ...]]) -> Callable[[Source], Value]:
    """A label together with one of the sentences that mean it."""

    def value(source: Source) -> Value:
        label = source.rng.choice(list(phrases))
        return Value(label, source.phrasing(phrases[label]))

    return value


def enum(phrases: dict[Any, tuple[str, ...]]) -> JsonSchema:
    return {"enum": list(phrases)}


def several(make: Callable[[Source], str], low: int = 1, high: int = 4) -> Callable[[Source], Value]:
    def value(source: Source) -> Value:
        items = list(dict.fromkeys(make(source) for _ in range(source.rng.randint(low, high))))
        return Value(items, listed(items, source.rng))

    return value


def order_items(source: Source) -> Value:
    """Lines of an order: product, quantity and sometimes a price."""
    rng = source.rng
    with_price = rng.random() < 0.5
    noun, count = rng.choice([("product", "quantity"), ("name", "quantity"), ("item", "count"), ("product", "qty"), ("name", "amount")])
    shapes = ["{n} {p}", "{n}x {p}", "{n} x {p}", "{p} x{n}", "{n} pieces of {p}", "{p} ({n})"]
    prices = [" at ${v}", " for ${v} each", " (${v})", " @ {v}", " at {v} euros", " costing {v}"]
    shape, price_shape = source.phrasing(shapes), source.phrasing(prices)
    items, texts = [], []
    for _ in range(rng.randint(1, 3)):
        quantity = source.small(1, 20)
        product = source.product(plural=quantity.json > 1 and rng.random() < 0.8)
        item, text = {noun: product, count: quantity.json}, shape.format(n=quantity.text, p=product)
        if with_price:
            price = source.amount()
            item["price"] = price.json
            text += price_shape.format(v=price.text)
        items.append(item)
        texts.append(text)
    return Value(items, listed(texts, rng))


def schema_of_items(items: list[dict[str, Any]]) -> JsonSchema:
    kinds = {"price": NUMBER, "quantity": INTEGER, "count": INTEGER, "qty": INTEGER, "amount": INTEGER}
    properties = {key: kinds.get(key, STRING) for key in items[0]}
    return {"type": "array", "items": closed(properties)}


def closed(properties: dict[str, JsonSchema], optional: frozenset[str] = frozenset()) -> JsonSchema:
    """An object schema without extra keys."""
    required = [key for key in properties if key not in optional]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def person_field(make: Callable[[Source], str], names: str, *clauses: str) -> Field:
    return Field(keys(names), STRING, same(make), clauses)


PRIORITY: dict[Any, tuple[str, ...]] = {
    "low": ("No rush.", "Whenever you have time.", "There is no rush.", "It is not urgent.", "No hurry.", "Only when you find time.", "This is not important.", "Any time is fine.", "It does not matter when.", "Some day would be fine.", "It can wait.", "This is low priority.", "There is no hurry at all.", "Not urgent.",
            "Take your time.", "Priority: low."),
    "medium": ("Normal priority.", "Please look at it this week.", "This week would be nice.", "It is moderately important.", "Please fix it in the next days.", "Normal urgency.", "Not too urgent, but please look at it.", "Medium priority.", "It would be nice to fix this soon.",
               "This is of medium importance.", "Some time this week would be good.", "Priority: medium."),
    "high": ("This is urgent!", "Please hurry.", "It is urgent.", "This is very urgent!", "Hurry up!", "I need it today.", "This is an emergency!", "Please fix it as soon as possible.", "It must be fixed now.", "The matter is urgent.", "We cannot work at all!", "Everything is down!", "Answer immediately please.", "I need this fixed immediately.", "As soon as possible please.", "High priority.",
             "We are losing money every hour.", "It is critical for us.", "Please answer right away.", "ASAP!", "I need help right now.",
             "Priority: high.", "This cannot wait."),
}

CATEGORY: dict[Any, tuple[str, ...]] = {
    "billing": ("I was charged twice.", "My invoice is wrong.", "My card was charged twice.", "I was charged two times.", "You charged me too much.", "There is a mistake in my invoice.", "The payment failed.", "The price on the bill is not right.", "I was billed for something I did not buy.", "My credit card was charged two times.", "I paid twice this month.", "I need a new invoice.", "The payment was refused.", "I want my money back.",
                "There is a charge that I do not recognise.", "The bill is too high.", "My credit card was charged by mistake.",
                "I never got the refund.", "Please correct the invoice.", "You billed the wrong amount."),
    "technical": ("The app crashes when I open it.", "I see an error on the screen.", "The app crashes all the time.", "The app does not start.", "It crashes every time I open it.", "I get an error message.", "The website is down.", "The server is down.", "The program freezes.", "It does not work since the update.", "There is a bug in the app.", "The camera does not work.", "The display is broken.", "The page does not load.", "The button does nothing.",
                  "It stopped working after the update.", "The screen stays black.", "The installation fails.", "It is very slow and freezes.",
                  "Nothing happens when I click save.", "The software shows error {n}."),
    "shipping": ("My package has not arrived.", "The delivery is late.", "My parcel never arrived.", "My parcel has not arrived.", "Where is my parcel?", "Where is my package?", "It should have arrived on Monday.", "The package is late.", "The delivery never came.", "My order never arrived.", "The parcel is lost.", "When will my package arrive?", "The courier lost my parcel.", "The parcel was damaged on the way.", "Where is my order?",
                 "It was sent to the wrong address.", "The courier never came.", "I am still waiting for the delivery.",
                 "The tracking number does not work.", "The box was empty when it arrived."),
    "account": ("I cannot log in.", "I forgot my password.", "I forgot my password and cannot log in.", "I lost my password.", "My password does not work.", "I cannot access my account.", "Please reset my password.", "I want to close my account.", "The login fails.", "I cannot sign in to my account.", "My user name is wrong.", "Please delete my account.", "My account is locked.",
                "I want to change my email address.", "The login does not accept my password.", "How do I change my user name?",
                "Someone else is using my account.", "I cannot sign in any more."),
}

SENTIMENT: dict[Any, tuple[str, ...]] = {
    "positive": ("I love it.", "Great service, thank you!", "What a wonderful day, thank you!", "It was wonderful.", "I really like it.", "A great product.", "The food was delicious.", "The room was clean and quiet.", "Thank you, it is great!", "It makes me happy.", "I am delighted.", "Very good, I like it a lot.", "It was a lovely evening.", "Well done!", "The best hotel in town.", "Superb!", "It works perfectly.", "Absolutely wonderful.", "I am very happy with it.",
                 "The best purchase of the year.", "Fantastic quality and fast delivery.", "I would buy it again.", "Excellent support!",
                 "Everything was perfect.", "What a delight!", "The staff was friendly and helpful.", "Highly recommended.", "Amazing value for the price.",
                 "I enjoyed every minute.", "Five stars from me."),
    "negative": ("I hate it.", "Terrible service.", "The food was cold.", "The room was dirty and loud.", "The waiter was rude.", "It was horrible.", "I do not like it at all.", "It is bad.", "A terrible product.", "It was a bad experience.", "I am very unhappy.", "What a mess.", "It is useless.", "The worst hotel in town.", "It stopped working at once.", "I regret buying it.", "Awful!", "It was boring and too expensive.", "It broke after two days.", "Very disappointed.", "A complete waste of money.",
                 "The worst purchase of the year.", "Poor quality and slow delivery.", "I want a refund.", "The support was awful.",
                 "Nothing works.", "Never again.", "The staff was rude and slow.", "Do not buy this.", "It arrived broken.",
                 "I am angry about this.", "One star is too much."),
    "neutral": ("It is okay.", "It does what it says.", "It is all right.", "It is a chair like any other.", "It was delivered in a box.", "The room has two beds.", "It works as described.", "It has a manual.", "It was not special.", "Some things are good, some are bad.", "It is neither great nor terrible.", "Neither good nor bad.", "The package arrived on Tuesday.", "It is average.",
                "I have used it for a week.", "It comes in three colors.", "Nothing special.", "I bought it for my office.", "It is a normal one.",
                "It is fine, I guess.", "I have no strong opinion."),
}

STATUS: dict[Any, tuple[str, ...]] = {
    "new": ("It was just placed.", "The order is new.", "It has not been processed yet.", "It came in a minute ago."),
    "paid": ("It has been paid.", "The payment went through.", "Payment received.", "It is already paid for."),
    "shipped": ("It has been shipped.", "It is on its way.", "It left the warehouse.", "The parcel was handed to the courier.", "It shipped yesterday."),
    "delivered": ("It has been delivered.", "It arrived at the door.", "The customer received it.", "Delivery is complete.", "It was delivered this morning."),
    "cancelled": ("It was cancelled.", "The customer cancelled it.", "Please cancel it.", "The order has been called off.", "It is cancelled."),
}

YES_NO: dict[str, dict[bool, tuple[str, ...]]] = {
    "married": {True: ("{S} is married.", "{S} has a spouse.", "{S} got married last year."),
                False: ("{S} is single.", "{S} is not married.", "{S} is unmarried.", "{S} has never married.")},
    "remote": {True: ("{S} works remotely.", "{S} works from home."), False: ("{S} works on site.", "{S} works in the office.")},
    "gift": {True: ("Please wrap it as a gift.", "It is a gift.", "Gift wrapping, please."),
             False: ("No gift wrapping.", "It is not a gift.", "No need to wrap it.")},
    "express": {True: ("Express shipping please.", "Send it by express.", "Please use express delivery."),
                False: ("Standard shipping is fine.", "No express delivery needed.", "Regular delivery, please.")},
    "online": {True: ("It takes place online.", "It is a virtual event.", "It will be held online."),
               False: ("It is held in person.", "It is not online.", "You have to come in person.")},
    "free": {True: ("Admission is free.", "It is free of charge.", "No ticket needed."),
             False: ("Tickets must be bought.", "It is not free.", "There is an entrance fee.")},
    "refund": {True: ("I want a refund.", "Please give me my money back.", "Refund me, please."),
               False: ("I do not want a refund.", "No refund needed.", "Please do not refund me.")},
    "in_stock": {True: ("It is in stock.", "It is available now.", "You can buy it today."),
                 False: ("It is out of stock.", "It is sold out.", "It is not available at the moment.")},
    "paid": {True: ("It has been paid.", "Already paid.", "The payment arrived."), False: ("It is unpaid.", "Not paid yet.", "The payment is still open.")},
}


def yes_no(which: str, names: str) -> Field:
    return Field(keys(names), BOOLEAN, phrased(YES_NO[which]), ("{v}",))


def labelled(phrases: dict[Any, tuple[str, ...]], names: str) -> Field:
    return Field(keys(names), enum(phrases), phrased(phrases), ("{v}",))


PERSON = Domain(
    "person",
    {
        "name": Field(keys("name full_name person"), STRING, same(Source.full_name), ("The name is {v}.", "Name: {v}.", "This is {v}."), bare=True),
        "age": Field(keys("age age years age_years"), INTEGER, integer(1, 99), (
            "{S} is {v} years old.", "{S} is {v}.", "Age {v}.", "{S} turned {v} this year.", "{S} is aged {v}.", "At {v}, life is good.",
            "{S} is now {v} years of age.", "{S} just celebrated birthday number {v}.", "{S} has reached the age of {v}.", "{S} will soon be older than {v}.", "{S} has lived for {v} years.", "Age: {v} years.", "{v} years old.", "{S} is a person of {v} years.", "{S} is currently {v}.", "Aged {v}."), bare=True),
        "city": Field(keys("city city location town residence home_city lives_in"), STRING, same(Source.city), (
            "{S} lives in {v}.", "{S} is from {v}.", "{S} is based in {v}.", "Home is {v}.", "{S} moved to {v}.", "{S} resides in {v}.",
            "{S} calls {v} home.", "{S} now lives in {v}.", "{S} has settled in {v}.", "{S} has an apartment in {v}.", "City: {v}.", "{S} grew up in {v} and stayed there.", "You will find the house in {v}.", "{S} spends the whole year in {v}.", "Residence: {v}.", "{S} is living in {v}.", "Currently in {v}.", "{S} has a flat in {v}.", "{S} comes from {v}."), bare=True),
        "country": Field(keys("country country nationality home_country"), STRING, same(Source.country), (
            "{S} was born in {v}.", "The country is {v}.", "{S} grew up in {v}.", "{S} holds a passport of {v}."), bare=False),
        "job": Field(keys("job occupation profession role job_title position"), STRING, lambda s: same(lambda t: t.pick(words.JOBS))(s), (
            "{S} works as a {v}.", "{S} is a {v}.", "Profession: {v}.", "{S} is employed as {v}.", "{S} earns a living as a {v}.",
            "{S} has been a {v} for years.", "{S} trained as a {v}.", "{S} became a {v}.", "Job: {v}.", "The job title is {v}.", "{S} earns money as a {v}.", "Occupation: {v}.", "{S} is working as {v}.", "{S} found work as a {v}.", "The profession is {v}.", "{S}, a {v}, loves the job.", "By trade {S} is a {v}.", "{S} makes a living as a {v}."), bare=True),
        "company": Field(keys("company employer organization works_at workplace"), STRING, same(Source.company), (
            "{S} works at {v}.", "{S} works for {v}.", "Employer: {v}.", "{S} joined {v}.", "{S} is with {v}.", "{S} is on the staff of {v}.", "The employer is {v}.", "{S} was hired by {v}.", "Company: {v}.", "{S} has worked for {v} since last year.", "{S} got a position at {v}.", "Works at {v}.", "{S} is employed by {v}.", "{S} has a job at {v}.")),
        "email": Field(keys("email email email_address mail contact_email"), EMAIL, same(Source.email), (
            "Email: {v}.", "Write to {v} .", "The email address is {v} .", "E-mail {v}", "Send mail to {v} .", "{S} reads mail at {v} .", "Mail: {v}", "The address for mail is {v} .", "{S} has the email {v} .", "You can write to {v} .", "{S} can be reached at {v} .", "Contact: {v}", "Mail {v} for details."), bare=True),
        "phone": Field(keys("phone phone phone_number telephone mobile tel"), STRING, same(Source.phone), (
            "Phone: {v}.", "Call {v}.", "The phone number is {v}.", "Ring {v}.", "Mobile: {v}", "The number to call is {v}.", "{S} has the number {v}.", "Telephone {v}.", "Dial {v} to talk.", "{S} is available on {v}.", "{S} answers the phone at {v}.", "Tel. {v}", "You can ring {v}."), bare=True),
        "birthday": Field(keys("birthday birth_date date_of_birth born dob"), DATE, Source.date, (
            "{S} was born on {v}.", "Born {v}.", "{S} celebrates a birthday on {v}.", "Birthday: {v}.", "{S} has been around since {v}.", "The date of birth is {v}.", "{S} was born {v}.", "Born on {v}.", "Date of birth: {v}.", "{S} came into the world on {v}.", "The birthday is {v}.")),
        "hobbies": Field(keys("hobbies interests likes skills"), STRINGS, several(lambda s: s.pick(words.HOBBIES)), (
            "{S} likes {v}.", "{S} enjoys {v}.", "{S} is interested in {v}.", "Interests: {v}.", "{S} has a passion for {v}.", "{S} does {v} at weekends.", "The hobbies are {v}.", "In spare time: {v}.", "{S} is good at {v}.", "Hobbies: {v}.", "{S} spends free time on {v}.", "{S} is fond of {v}.", "{S} loves {v}.")),
        "children": Field(keys("children kids number_of_children"), INTEGER, small(0, 6), (
            "{S} has {v} children.", "Children: {v}.", "{S} has {v} kids.", "There are {v} children in the family.", "{S} is the proud parent of {v}.", "Number of children: {v}.", "{S} is a parent of {v}.", "{S} raised {v} kids.")),
        "salary": Field(keys("salary income annual_salary"), INTEGER, integer(18000, 250000), (
            "{S} earns {v} a year.", "The salary is {v}.", "{S} gets {v} a year.", "Annual salary: {v}.", "{S} is paid {v} per year.", "The income is {v}.", "Yearly income {v}.", "{S} makes ${v} per year.", "Salary: {v}.")),
        "married": yes_no("married", "married is_married"),
        "remote": yes_no("remote", "remote works_remotely is_remote"),
    },
    (
        "{name} is {age} years old and lives in {city}.", "{name} lives in {city} and is {age} years old.", "{name} lives in {city}.", "{name} is {age}.", "{name} is {age} years old.", "{name} is a {job}.", "{name} works for {company}.", "{name} is from {city}.", "{name}, a {job}, lives in {city}.", "{name}, {age} years old, works as a {job}.", "{age}-year-old {name} lives in {city}.", "{age}-year-old {name} is a {job} from {city}.", "I'm {name}, {age}, from {city}.", "I'm {name}.", "Hi, {name} here.", "Let me introduce {name}, {age}, {job}.", "{name}, {city}, {age}.", "{name}, {job}, {city}.", "Here is {name}, our {job}.", "{name} ({job}, {company})", "Do you know {name} from {city}?", "{name} has just moved to {city}.", "My friend {name} is {age} and works as a {job}.", "My neighbour {name} works at {company}.", "The new {job} at {company} is {name}.", "{name} will start at {company} on Monday.", "Mail from {name} ({email}).", "{name}'s number is {phone}.", "{name}'s email is {email} .", "{name} can be called at {phone}.", "Applicant: {name}, {age}, {job}.", "Patient {name}, {age}, from {city}.", "{city} is where {name} lives.", "{name} says hello from {city}.", "A {job} named {name} visited us.", "Born in {country}, {name} now lives in {city}.", "I am a {job} and my name is {name}.", "I am {age} and live in {city}. My name is {name}.", "Name of the {job}: {name}.", "There is a {job} in {city} named {name}, aged {age}.", "Even at {age}, {name} works as a {job}.", "With {age} years {name} is our oldest {job}.", "{name} and I met in {city}.", "{name}, {age}, lives in {city}.", "{name} is a {age}-year-old {job} from {city}.",
        "Meet {name}, a {job} from {city}.", "{name}, {age}, {city}.", "{name} ({age}) works as a {job} in {city}.", "My name is {name}.",
        "I am {name}, {age} years old.", "{name} works as a {job} at {company}.", "This is {name} from {city}.", "Hello, I'm {name} and I live in {city}.",
        "{name}, {job} at {company}, is {age} years old.", "At {age}, {name} is a {job} in {city}.", "Our new colleague {name} is {age}.",
        "{name}, aged {age}, is a {job}.", "{name} of {city} is {age}.", "From {city} comes {name}, {age} years of age.", "Please welcome {name}!",
        "The {job} {name} lives in {city}, {country}.", "You can contact {name} at {email} or {phone}.", "{name} joined {company} as a {job}.",
        "{name} <{email}>", "Yesterday I met {name}.", "We hired {name}, a {job} who is {age}.", "Contact for {name}: {email}, {phone}.",
        "{name} was born in {city} and is {age} now.", "In {city} lives a {job} called {name}.", "I spoke with {name} today.", "Guest: {name} ({city}).",
    ),
    ("She", "He"),
)

ORDER = Domain(
    "order",
    {
        "id": Field(keys("order_id id order_number number order reference"), STRING, same(Source.code), (
            "Order number: {v}.", "The order id is {v}.", "The number of the order is {v}.", "Order no. {v}.", "Order ID {v}", "My order id: {v}.", "Number: {v}.", "Order {v}.", "Reference {v}.", "This is order {v}.", "It is filed under {v}.")),
        "customer": Field(keys("customer customer_name buyer client name ordered_by"), STRING, same(Source.full_name), (
            "The customer is {v}.", "Ordered by {v}.", "Customer: {v}.", "Name: {v}.", "My name is {v}.", "The buyer is {v}.", "Please put it on the name {v}.", "Regards, {v}", "Placed by {v}.", "On behalf of {v}.", "Bought by {v}.", "{v} placed it.", "Client: {v}.", "It is for {v}.")),
        "items": Field(keys("items products lines order_items articles"), {"type": "array"}, order_items, (
            "Items: {v}.", "It contains {v}.", "The items are {v}.", "The order contains {v}.", "I need {v}.", "We would like {v}.", "The list: {v}.", "Products: {v}.", "Please pack {v}.", "Add {v} to it.", "They want {v}.", "The order lists {v}.", "Please send {v}.", "Ordered: {v}.", "In the basket: {v}.")),
        "total": Field(keys("total total_price amount sum price order_total"), NUMBER, Source.money, (
            "The total is {v}.", "Total: {v}.", "In all it costs {v}.", "The price is {v}.", "The customer pays {v}.", "Sum: {v}.", "That makes {v}.", "The bill is {v}.", "The order is worth {v}.", "Amount: {v}.", "It comes to {v}.", "To pay: {v}.", "The sum is {v}.", "Altogether {v}.")),
        "date": Field(keys("date order_date ordered_on placed_on"), DATE, Source.date, (
            "Ordered on {v}.", "It was placed on {v}.", "The date is {v}.", "Placed {v}.", "The order was made on {v}.", "It came in on {v}.", "The order is from {v}.", "Order date: {v}.", "Date: {v}.", "It was bought {v}.")),
        "city": Field(keys("city ship_to shipping_city destination delivery_city"), STRING, same(Source.city), (
            "Ship to {v}.", "Deliver it to {v}.", "City: {v}.", "The customer lives in {v}.", "Shipping to {v}.", "Delivery to {v} please.", "We ship it to {v}.", "It will be sent to {v}.", "The destination is {v}.", "It goes to {v}.", "Send it to {v}.", "Destination: {v}.", "The parcel goes to {v}.")),
        "address": Field(keys("address street shipping_address delivery_address"), STRING, same(Source.street), (
            "The address is {v}.", "Address: {v}.", "Send it to {v}.", "Street: {v}.", "I live at {v}.", "The house is at {v}.", "Bring it to {v}.", "Deliver to {v}.", "Please ship to {v}.", "It should go to {v}.")),
        "email": Field(keys("email customer_email contact"), EMAIL, same(Source.email), ("Email: {v}.", "Receipt to {v} .", "Contact: {v}", "Confirm by mail to {v} .")),
        "discount": Field(keys("discount discount_percent rebate"), INTEGER, integer(1, 60), ("Discount {v} percent.", "With {v}% off.", "A rebate of {v}% applies.")),
        "status": labelled(STATUS, "status state order_status"),
        "gift": yes_no("gift", "gift is_gift gift_wrap"),
        "express": yes_no("express", "express express_shipping is_express"),
    },
    (
        "{customer} ordered {items}.", "{customer} has ordered {items}.", "{customer} bought {items}.", "{customer} would like {items}.", "{customer} needs {items}.", "Please send {items} to {customer}.", "Please send me {items}.", "I need {items}.", "I'd like {items}, please.", "Hello, I am {customer} and I would like to buy {items}.", "Hi, {customer} here. Please send {items}.", "{customer} placed an order for {items}.", "Order for {customer}: {items}.", "Order {id}: {customer}, {items}.", "Customer {customer} wants {items}.", "{items} ordered by {customer}.", "We received an order from {customer} for {items}.", "Order {id} contains {items}.", "Order {id} of {customer} costs {total}.", "Please deliver {items} to {address}.", "My order: {items}. Send it to {city}.", "{customer}, {city}: {items}.", "{customer} paid {total} for {items}.", "For {customer} in {city}: {items}.", "{customer} purchased {items} on {date}.", "Could you send {items} to {customer}?", "Give me {items}, my name is {customer}.", "The customer {customer} ordered {items} on {date}.", "Dear shop, please send {items} to {city}. {customer}", "Order number {id} for {customer}.", "{customer} just bought {items} from us.", "Sold {items} to {customer} for {total}.", "Deliver {items} to {customer}, {address}.", "I would like to order {items}.", "Order {id}: {items}.", "{customer} bought {items} for {total}.",
        "Hi, this is {customer}. I want {items}.", "Order {id} from {customer}.", "Please ship {items} to {customer} in {city}.",
        "Order {id} by {customer}: {items}, total {total}.", "New order {id} for {customer}, {city}.", "{customer} from {city} orders {items}.",
        "Send {items} to {address}, {city}.", "On {date} {customer} ordered {items}.", "{customer} wants {items}, please.", "We got order {id} today.",
        "Can I get {items}? My name is {customer}.", "Receipt {id}: {customer} paid {total}.", "{items} for {customer}, please.",
        "Purchase {id} of {date}: {items}.", "There is a new purchase by {customer}: {items}.", "Your order {id} is confirmed.",
    ),
)

PRODUCT = Domain(
    "product",
    {
        "name": Field(keys("name product product_name item title"), STRING, same(Source.product), ("The product is {v}.", "Product: {v}.", "It is called {v}.")),
        "price": Field(keys("price price cost unit_price amount"), NUMBER, Source.money, (
            "It costs {v}.", "Price: {v}.", "The price is {v}.", "It sells for {v}.", "You pay {v}.", "It is yours for {v}.", "Only {v}!")),
        "color": Field(keys("color colour"), STRING, same(Source.color), ("It comes in {v}.", "Color: {v}.", "The color is {v}.", "It is {v}.", "Available in {v}.")),
        "brand": Field(keys("brand manufacturer maker company"), STRING, same(Source.company), ("Made by {v}.", "Brand: {v}.", "It is from {v}.", "The manufacturer is {v}.", "{v} makes it.")),
        "weight": Field(keys("weight weight_kg mass"), NUMBER, decimal(0.1, 40), ("It weighs {v} kg.", "Weight: {v} kg.", "Its weight is {v} kilograms.", "At {v} kg it is easy to carry.")),
        "stock": Field(keys("stock quantity units in_store available"), INTEGER, integer(0, 900), (
            "There are {v} in stock.", "Stock: {v}.", "We have {v} left.", "{v} units are available.", "{v} pieces remain.")),
        "rating": Field(keys("rating stars score"), NUMBER, decimal(1, 5), ("Rated {v} out of 5.", "Rating: {v}.", "It has {v} stars.", "Customers give it {v} stars.", "The score is {v}.")),
        "sku": Field(keys("sku code article_number product_id"), STRING, same(Source.code), ("SKU {v}.", "Article number {v}.", "The code is {v}.", "Product code: {v}.")),
        "colors": Field(keys("colors colours variants"), STRINGS, several(Source.color, 2, 4), ("Colors: {v}.", "You can have it in {v}.", "It is made in {v}.", "Choose between {v}.")),
        "in_stock": yes_no("in_stock", "in_stock available is_available"),
    },
    (
        "The {name} costs {price}.", "The {name} is {price}.", "{name} for {price}.", "{name} - {price}", "A {name} costs {price}.", "The {color} {name} costs {price}.", "{brand} sells the {name} for {price}.", "The new {name} by {brand} costs {price}.", "Get the {name} for only {price}.", "This {name} weighs {weight} kg.", "I bought a {name} by {brand}.", "{name}, made by {brand}.", "The price of the {name} is {price}.", "One {name}, {color}.", "The {name} of {brand} has {rating} stars.", "{name}, {price}.", "{name} by {brand} for {price}.", "We sell a {name} for {price}.", "New: the {name} from {brand}.",
        "{name} in {color}, {price}.", "For sale: {name}.", "Buy the {name} now.", "{brand} presents the {name}.", "The {name} weighs {weight} kg and costs {price}.",
        "I am selling my {name} for {price}.", "Our {name} ({sku}) is rated {rating}.", "Today only: {name} at {price}.", "Look at this {name}!",
    ),
)

EVENT = Domain(
    "event",
    {
        "title": Field(keys("title name event event_name subject"), STRING, same(Source.title), ("The event is called {v}.", "Title: {v}.", "Event: {v}.")),
        "date": Field(keys("date date day event_date when"), DATE, Source.date, (
            "It is on {v}.", "Date: {v}.", "It is planned for {v}.", "It will be on {v}.", "When: {v}.", "We meet on {v}.", "It starts on {v}.", "The date is {v}.", "It was moved to {v}.", "It takes place on {v}.", "Save the date: {v}.", "The day is {v}.", "It happens on {v}.", "Mark {v} in your calendar.")),
        "time": Field(keys("time start_time start starts_at time"), STRING, same(Source.time), (
            "It starts at {v}.", "Start: {v}.", "It begins at {v}.", "The time is {v}.", "Starting at {v}.", "We start at {v}.", "From {v} on.", "It kicks off at {v}.", "Start time: {v}.", "Doors open at {v}.", "We begin at {v}.", "The start is at {v}.", "Be there by {v}.", "Time: {v}.")),
        "location": Field(keys("location place venue where room"), STRING, same(Source.venue), (
            "It is held at {v}.", "Place: {v}.", "Location: {v}.", "Where: {v}.", "It takes place at {v}.", "The venue is {v}.", "It will be at {v}.", "You find us at {v}.", "The place is {v}.", "The location is {v}.", "We meet at {v}.", "Join us at {v}.", "Venue: {v}.", "Come to {v}.")),
        "city": Field(keys("city town host_city"), STRING, same(Source.city), ("The city is {v}.", "It takes place in {v}.", "City: {v}.", "See you in {v}.")),
        "organizer": Field(keys("organizer host organiser organized_by contact"), STRING, same(Source.full_name), (
            "It is organized by {v}.", "Host: {v}.", "Organizer: {v}.", "{v} is the host.", "Hosted by {v}.", "Contact {v} for details.", "{v} takes care of everything.", "{v} is hosting.", "The organizer is {v}.", "{v} organizes it.", "Your host is {v}.")),
        "attendees": Field(keys("attendees participants guests people invitees"), STRINGS, several(Source.first_name, 1, 4), (
            "{v} will attend.", "Attendees: {v}.", "{v} will be there.", "Invited: {v}.", "The guests are {v}.", "People: {v}.", "{v} will join.", "Joined by {v}.", "{v} are coming.", "Participants are {v}.", "We invited {v}.", "With {v}.", "Guests: {v}.")),
        "duration": Field(keys("duration duration_minutes minutes length_minutes"), INTEGER, integer(5, 480), (
            "It lasts {v} minutes.", "Duration: {v} minutes.", "It will take {v} minutes.", "The duration is {v} minutes.", "It goes on for {v} minutes.", "Length: {v} minutes.", "We need {v} minutes.", "It takes {v} minutes.", "Plan for {v} minutes.", "After {v} minutes it is over.")),
        "capacity": Field(keys("capacity seats max_participants expected_guests"), INTEGER, integer(4, 5000), (
            "There are {v} seats.", "Capacity: {v}.", "Room for {v} people.", "At most {v} people can come.", "We expect {v} guests.")),
        "price": Field(keys("price ticket_price fee cost"), NUMBER, Source.money, ("Tickets cost {v}.", "Price: {v}.", "The fee is {v}.", "Entry is {v}.", "A ticket is {v}.")),
        "online": yes_no("online", "online is_online virtual"),
        "free": yes_no("free", "free is_free free_entry"),
    },
    (
        "{title} on {date} at {time}.", "The {title} is on {date}.", "The {title} is on {date} at {time}.", "The {title} will take place on {date} at {location}.", "The {title} takes place at {location} on {date}.", "The {title} takes place on {date}.", "The {title} is at {location}.", "We meet for the {title} on {date}.", "We invite you to the {title} on {date} at {location}.", "{title} in {city} on {date}.", "{title}: {date}, {location}.", "{title} ({date}, {time})", "Please come to the {title} on {date} at {time}.", "{organizer} is hosting the {title} on {date}.", "{organizer} organizes the {title} in {city}.", "Our {title} begins at {time} on {date}.", "Next up: {title}, {date}, {location}.", "On {date} at {time}: {title}.", "On {date}, {city} hosts the {title}.", "The {title} in {city} starts on {date}.", "Join {organizer} for the {title} at {location}.", "Don't forget the {title} on {date} at {time}.", "The {title} was moved to {date}.", "There will be a {title} at {location} on {date}.", "Invitation: {title} on {date} at {time}, {location}.", "{attendees} will be at the {title} on {date}.", "The {title} with {attendees} is on {date}.", "Meeting {attendees} for the {title} on {date}.", "Tickets for the {title} on {date} are on sale.", "{location} hosts the {title} on {date}.", "The {title} takes place on {date} in {city}.", "Join us for the {title} at {location}.", "{title}, {date}, {time}, {location}.",
        "You are invited to the {title} on {date}.", "{organizer} invites you to the {title}.", "Reminder: {title} at {time} in {location}.",
        "Don't miss the {title} on {date}!", "On {date} we host the {title}.", "{title} with {attendees} at {time}.", "We are planning the {title}.",
        "The {title} starts at {time} on {date}.", "{title} at {location}, {city}, {date}.", "Announcing the {title}!", "Come to the {title} in {city} on {date}.",
        "Let's meet for the {title} on {date} at {time}.", "{attendees} meet for the {title} at {location}.", "At {time} on {date} there will be a {title}.",
    ),
)

TICKET = Domain(
    "ticket",
    {
        "customer": Field(keys("customer name customer_name user reporter from"), STRING, same(Source.full_name), (
            "My name is {v}.", "Regards, {v}", "Name: {v}.", "Kind regards, {v}", "Greetings, {v}", "Sincerely, {v}", "Signed, {v}", "Cheers, {v}", "It is me, {v}.", "Customer: {v}.", "Best, {v}", "This is {v}.", "Thanks, {v}", "Reported by {v}.", "Yours, {v}", "I am {v}.")),
        "category": labelled(CATEGORY, "category topic department type"),
        "priority": labelled(PRIORITY, "priority urgency severity"),
        "order_id": Field(keys("order_id order order_number reference"), STRING, same(Source.code), (
            "My order number is {v}.", "Order {v}.", "The order number is {v}.", "My order is {v}.", "Order number: {v}.", "It concerns order {v}.", "I ordered it under {v}.", "It is about order {v}.", "Order id: {v}.", "See order {v}.", "The reference is {v}.")),
        "product": Field(keys("product item product_name device"), STRING, same(Source.product), (
            "It is about the {v}.", "Product: {v}.", "I have a problem with the {v}.", "I have your {v}.", "The {v} is the problem.", "Device: {v}.", "I ordered a {v}.", "It happened with my {v}.", "I bought a {v}.", "I use your {v}.", "The product is a {v}.", "I own a {v}.")),
        "email": Field(keys("email contact_email reply_to email"), EMAIL, same(Source.email), (
            "Please answer to {v} .", "My email is {v} .", "Write to me at {v} .", "Contact me at {v} .", "You can mail me at {v} .", "My address is {v} .", "Email: {v}", "Reach me at {v} .", "Reply to {v} please.")),
        "phone": Field(keys("phone callback_number phone_number"), STRING, same(Source.phone), ("Call me at {v}.", "My number is {v}.", "Please call {v}.", "My phone number is {v}.", "Reach me on {v}.", "Ring me at {v}.", "Phone: {v}", "You can phone me: {v}.")),
        "sentiment": labelled(SENTIMENT, "sentiment mood tone"),
        "refund": yes_no("refund", "refund wants_refund refund_requested"),
        "subject": Field(keys("subject title summary"), STRING, same(Source.phrase), ("Subject: {v}.", "It is about this: {v}.", "Title: {v}.", "In short: {v}.")),
        "version": Field(keys("version app_version software_version"), STRING, same(lambda s: f"{s.rng.randint(0, 20)}.{s.rng.randint(0, 20)}.{s.rng.randint(0, 99)}"), (
            "I use version {v}.", "Version: {v}.", "The version is {v}.", "It runs {v}.")),
        "amount": Field(keys("amount charged_amount sum"), NUMBER, Source.money, ("The amount is {v}.", "You charged {v}.", "I paid {v}.", "It was {v}.")),
    },
    (
        "Hello, {category}", "{category}", "{category} {priority}", "{category} {priority} My name is {customer}.", "Hello, my name is {customer}. {category} {priority}", "Hello, I am {customer}. {category}", "This is {customer}. {category}", "Hi, {customer} here. {category}", "{category} Regards, {customer}", "{category} Thanks, {customer}", "{category} Best, {customer}", "{priority} {category}", "{priority} {category} {customer}", "Hello! {category} My order number is {order_id}. {customer}", "I bought a {product}. {category}", "My {product} is a problem. {category}", "{category} It is about my {product}.", "Message from {customer}: {category} {priority}", "{customer} says: {category}", "{customer} reports: {category} {priority}", "From: {email}. {category}", "Order {order_id} by {customer}. {category}", "Please help me. {category} {priority}", "Ticket: {category} {priority}", "{customer}: {category}", "Hello support, {category} {priority} Yours, {customer}", "{customer} has a problem with the {product}. {category}", "Caller {customer}, phone {phone}: {category}", "{sentiment} {category}", "{category} {sentiment}", "Hi, my name is {customer}. {category}", "{category} My order is {order_id}.", "Dear support, {category}", "{customer} writes: {category}",
        "Hi there! {category} {priority}", "I have a problem with my {product}. {category}", "Good morning, {category}", "{category} {priority} Regards, {customer}",
        "Ticket from {customer} ({email}): {category}", "Order {order_id}: {category}", "Help! {category}", "{customer} called about order {order_id}.",
        "Hello team, {category} Please write to {email} .", "Subject: {subject}. {category}", "About the {product}: {category}",
    ),
    ("It",),
)

BOOK = Domain(
    "book",
    {
        "title": Field(keys("title title name book work"), STRING, same(lambda s: f"The {s.pick(words.TEXT_ADJECTIVES).title()} {s.pick(words.TEXT_NOUNS).title()}" if s.chance(0.7) else f"{s.pick(words.TEXT_NOUNS).title()} of {s.invented()}"), ("The title is {v}.", "Title: {v}.")),
        "author": Field(keys("author writer author written_by artist"), STRING, same(Source.full_name), ("It was written by {v}.", "Author: {v}.", "The author is {v}.", "By {v}.", "{v} wrote it.")),
        "year": Field(keys("year year published publication_year"), INTEGER, lambda s: (lambda y: Value(y, str(y)))(s.integer(1800, 2030)), (
            "It appeared in {v}.", "Published {v}.", "Year: {v}.", "It came out in {v}.", "It was published in {v}.", "First edition {v}.")),
        "pages": Field(keys("pages num_pages page_count length"), INTEGER, integer(20, 1500), ("It has {v} pages.", "{v} pages.", "Pages: {v}.", "The book is {v} pages long.", "Over {v} pages.")),
        "genre": Field(keys("genre genre category"), STRING, same(lambda s: s.pick(words.GENRES)), ("Genre: {v}.", "It is a work of {v}.", "The genre is {v}.", "You find it under {v}.")),
        "publisher": Field(keys("publisher press label"), STRING, same(Source.company), ("Publisher: {v}.", "It is published by {v}.", "{v} published it.", "From {v}.")),
        "price": Field(keys("price cost"), NUMBER, Source.money, ("It costs {v}.", "Price: {v}.", "You get it for {v}.")),
        "language": Field(keys("language lang"), STRING, same(lambda s: s.pick(words.LANGUAGES)), ("It is written in {v}.", "Language: {v}.", "The language is {v}.")),
        "rating": Field(keys("rating stars score"), NUMBER, decimal(1, 5), ("I give it {v} stars.", "Rating: {v}.", "Readers rate it {v}.")),
    },
    (
        "{title} by {author}.", "{title} by {author}, {year}.", "{author} wrote {title} in {year}.", "I am reading {title} by {author}.", "{title} ({year}) by {author}.",
        "{author}: {title}.", "The book {title} has {pages} pages.", "Have you read {title}?", "{author} published {title} in {year}.", "In {year} came {title} by {author}.",
        "My favourite book is {title}, written by {author}.", "{title}, {author}, {pages} pages.",
    ),
)

INVOICE = Domain(
    "invoice",
    {
        "number": Field(keys("invoice_number number invoice id invoice_id"), STRING, same(Source.code), ("Invoice number {v}.", "Invoice: {v}.", "The number is {v}.", "Invoice no. {v}.")),
        "vendor": Field(keys("vendor supplier seller company from"), STRING, same(Source.company), ("From {v}.", "Vendor: {v}.", "Issued by {v}.", "The supplier is {v}.", "{v} sent it.")),
        "customer": Field(keys("customer client bill_to recipient to"), STRING, same(Source.full_name), ("Billed to {v}.", "Customer: {v}.", "To {v}.", "The client is {v}.", "{v} has to pay.")),
        "date": Field(keys("date invoice_date issued"), DATE, Source.date, ("Issued on {v}.", "Invoice date: {v}.", "Dated {v}.", "It was issued on {v}.")),
        "due": Field(keys("due_date due pay_by deadline"), DATE, Source.date, ("Due on {v}.", "Due date: {v}.", "Please pay by {v}.", "Payment is due {v}.", "The deadline is {v}.")),
        "total": Field(keys("total amount total_amount sum amount_due"), NUMBER, Source.money, ("The total is {v}.", "Amount: {v}.", "Total: {v}.", "It amounts to {v}.", "You owe {v}.", "Please pay {v}.")),
        "tax": Field(keys("tax vat tax_amount"), NUMBER, Source.money, ("Tax: {v}.", "Including {v} tax.", "VAT {v}.", "The tax is {v}.")),
        "currency": Field(keys("currency currency_code"), STRING, same(lambda s: s.rng.choice(words.CURRENCIES)), ("Currency: {v}.", "All amounts in {v}.", "Payable in {v}.")),
        "paid": yes_no("paid", "paid is_paid settled"),
    },
    (
        "Invoice {number} from {vendor} over {total}.", "{vendor} billed {customer} {total}.", "Invoice {number}, {date}, {total}.", "Please find invoice {number} of {date}.",
        "{customer} owes {vendor} {total}.", "Invoice {number} for {customer} is due on {due}.", "{vendor} sent invoice {number} on {date}.", "The bill from {vendor} is {total}.",
        "Attached is invoice {number} by {vendor}.", "You received invoice {number} over {total}, due {due}.",
    ),
)

FLIGHT = Domain(
    "flight",
    {
        "origin": Field(keys("origin from departure_city from_city departure"), STRING, same(Source.city), ("It leaves from {v}.", "From: {v}.", "Departure city: {v}.", "I start in {v}.")),
        "destination": Field(keys("destination to arrival_city to_city arrival"), STRING, same(Source.city), ("The destination is {v}.", "To: {v}.", "I am going to {v}.", "It flies to {v}.")),
        "date": Field(keys("date departure_date travel_date"), DATE, Source.date, ("It leaves on {v}.", "Date: {v}.", "Departure on {v}.", "I travel on {v}.", "We go on {v}.")),
        "passengers": Field(keys("passengers travelers number_of_passengers seats people"), INTEGER, small(1, 9), ("We are {v} people.", "Passengers: {v}.", "For {v} passengers.", "{v} travelers.", "I need {v} seats.")),
        "number": Field(keys("flight_number flight number"), STRING, same(lambda s: f"{s.letters(2, 2)}{s.digits(2, 4)}"), ("Flight number {v}.", "It is flight {v}.", "The flight is {v}.", "Flight: {v}.")),
        "airline": Field(keys("airline carrier company"), STRING, same(Source.company), ("With {v}.", "Airline: {v}.", "It is operated by {v}.", "We fly with {v}.")),
        "passenger": Field(keys("passenger name traveler passenger_name"), STRING, same(Source.full_name), ("The passenger is {v}.", "Name: {v}.", "Booked for {v}.", "{v} will travel.")),
        "price": Field(keys("price fare cost ticket_price"), NUMBER, Source.money, ("The fare is {v}.", "Price: {v}.", "It costs {v}.", "The ticket is {v}.")),
        "time": Field(keys("time departure_time departs_at"), STRING, same(Source.time), ("It departs at {v}.", "Departure: {v}.", "Take-off at {v}.", "It leaves at {v}.")),
    },
    (
        "I want to fly from {origin} to {destination} on {date}.", "Flight from {origin} to {destination}.", "{passenger} flies from {origin} to {destination}.", "{origin} to {destination}, {date}.",
        "Book a flight to {destination} from {origin} for {passengers} people.", "Flight {number} from {origin} to {destination} departs at {time}.", "Travel from {origin} to {destination} on {date} with {airline}.",
        "{number}: {origin} - {destination}, {time}.", "We need {passengers} tickets from {origin} to {destination}.", "{passenger} goes to {destination} on {date}, starting in {origin}.",
        "A train from {origin} to {destination} leaves at {time}.", "Trip to {destination}, departing {origin} on {date}.",
    ),
)

ANIMAL = Domain(
    "pet",
    {
        "name": Field(keys("name pet_name animal_name"), STRING, same(Source.first_name), ("The name is {v}.", "It is called {v}.", "Its name is {v}.", "It answers to {v}.")),
        "species": Field(keys("species animal kind type"), STRING, same(lambda s: s.pick(words.ANIMALS)), ("It is a {v}.", "Species: {v}.", "The animal is a {v}.")),
        "age": Field(keys("age age_years years"), INTEGER, small(1, 25), ("It is {v} years old.", "Age: {v}.", "It turned {v}.", "It is {v}.")),
        "owner": Field(keys("owner owner_name belongs_to"), STRING, same(Source.full_name), ("It belongs to {v}.", "Owner: {v}.", "The owner is {v}.", "{v} takes care of it.")),
        "weight": Field(keys("weight weight_kg"), NUMBER, decimal(0.2, 60), ("It weighs {v} kg.", "Weight: {v} kg.", "Its weight is {v} kilos.")),
        "color": Field(keys("color colour fur_color"), STRING, same(Source.color), ("It is {v}.", "Color: {v}.", "Its fur is {v}.", "The color is {v}.")),
    },
    (
        "{name} is a {color} {species}.", "My {species} {name} is {age} years old.", "{owner} has a {species} named {name}.", "{name} the {species} belongs to {owner}.",
        "We adopted {name}, a {age}-year-old {species}.", "Lost: {species} called {name}.", "This is {name}, my {species}.", "{name}, {species}, {age} years, {weight} kg.",
    ),
)

DOMAINS = {PERSON: 4, ORDER: 3, EVENT: 3, TICKET: 3, PRODUCT: 0.6, BOOK: 0.4, INVOICE: 0.4, FLIGHT: 0.4, ANIMAL: 0.4}


def random_domain(rng: random.Random) -> Domain:
    """One of the domains, by weight."""
    return rng.choices(list(DOMAINS), weights=list(DOMAINS.values()))[0]
