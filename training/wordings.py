"""More ways to put things, for training alone: what `domains.py` and `tools.py` have is divided into two splits and measured by, and stays as it is.

A sentence that happens to stand there as one that is held out is left out here, too (`values.split_of`).
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

from values import Source

# Clauses by domain and field: {v} is the value, {S} the subject

MORE_CLAUSES: dict[str, dict[str, tuple[str, ...]]] = {
    "person": {
        "name": ("You may know {v}.", "They call me {v}.", "Everybody knows {v}.", "Full name: {v}.", "Signed by {v}.", "On the list: {v}.", "We are talking about {v}.", "The person is {v}.", "Applicant: {v}."),
        "age": ("{S} became {v} in spring.", "{S} is about to finish year number {v}.", "{S} is only {v}.", "{S} is already {v}.", "{S} celebrated the {v}th birthday.", "{S} is {v} and does not look it.", "Years: {v}.", "{S} counts {v} summers.", "{S} is {v} now.", "{S} was {v} in May.", "{S} has seen {v} winters.", "Age is {v}.", "({v} years)", "{S} is, at {v}, the oldest of us.", "{S} turns {v} on Sunday.", "{S} is a {v}-year-old."),
        "city": ("{S} still lives in {v}.", "{S} has always been living in {v}.", "{S} rents a room in {v}.", "{S} owns a house in {v}.", "{S} went back to {v}.", "{S} stays in {v}.", "{S} retired in {v}.", "{S} returned to {v} last year.", "{S} feels at home in {v}.", "{S} took a flat in {v}.", "Town: {v}.", "{S} can be found in {v}.", "{S} left for {v}.", "The place of residence is {v}.", "{S} is a citizen of {v}.", "{S} fell in love with {v} and never left.", "Today {v} is home.", "{S}, by the way, lives in {v}.", "{S} has an office in {v}.", "{S} raised a family in {v}."),
        "country": ("{S} is a national of {v}.", "Country: {v}.", "{S} emigrated from {v}.", "{S} came here from {v}.", "The family is from {v}."),
        "job": ("{S} has a job as a {v}.", "{S} is the best {v} I know.", "{S} wanted to be a {v} and is one.", "{S} is training to be a {v}.", "{S} works, as far as I know, as a {v}.", "{S} spends the days as a {v}.", "The card says {v}.", "{S} applied as a {v}.", "{S} used to be a {v} and still is.", "Work: {v}.", "{S} serves as {v}."),
        "company": ("{S} started at {v} in June.", "{S} signed with {v}.", "{S} is one of the people at {v}.", "{S} has a desk at {v}.", "{S} left school for {v}.", "{S} runs a team at {v}.", "{S} is employed with {v}.", "Firm: {v}.", "{S} got hired at {v}.", "The firm is called {v}."),
        "email": ("Best reached by mail: {v}", "Send the papers to {v} .", "{S} answers mail at {v} .", "Address: {v}", "e-mail {v}", "{S} asked us to write to {v} .", "Mails go to {v} .", "Online: {v}", "Mailbox: {v}"),
        "phone": ("{S} picks up at {v}.", "Number: {v}.", "{S} left the number {v}.", "You get {S} under {v}.", "By phone: {v}.", "Cell {v}", "{S} has a mobile, {v}.", "Phone number {v}", "Ph. {v}", "{v} is the number.", "Please ring back on {v}."),
        "birthday": ("{S} first saw light on {v}.", "Birth: {v}.", "{S} has the birthday on {v}.", "DOB {v}", "{S} arrived on {v}.", "The birth certificate says {v}."),
        "hobbies": ("{S} cannot live without {v}.", "{S} spends evenings with {v}.", "{S} is crazy about {v}.", "{S} took up {v}.", "{S} is known for {v}.", "Free time: {v}.", "{S} prefers {v}.", "{S} relaxes with {v}.", "On Sundays: {v}.", "{S} adores {v}."),
        "children": ("{S} brings up {v} kids.", "{v} children live in the house.", "Kids: {v}.", "{S} became a parent of {v}."),
        "salary": ("{S} takes home {v} a year.", "Pay: {v}.", "{S} asks for {v} a year.", "The contract says {v} a year."),
    },
    "order": {
        "id": ("Ref. {v}.", "No. {v}", "Filed as {v}.", "The reference number is {v}.", "It has the number {v}.", "Please quote {v}."),
        "customer": ("{v} wants it.", "The order comes from {v}.", "The name on the order is {v}.", "Thank you, {v}", "Yours truly, {v}", "{v} here.", "It is {v} who ordered.", "Please write {v} on the box.", "Name on the parcel: {v}.", "Bill it to {v}."),
        "items": ("What I want: {v}.", "Could you send {v}?", "We are short of {v}.", "This time it is {v}.", "Get me {v}.", "Into the box go {v}.", "The box holds {v}.", "Wanted: {v}.", "I take {v}.", "We decided on {v}.", "There should be {v}.", "Put down {v}.", "Make it {v}."),
        "total": ("I was told it would be {v}.", "Price in all: {v}.", "{v} in total.", "It adds up to {v}.", "All together {v}.", "Please charge {v}.", "We agreed on {v}."),
        "date": ("We wrote it down on {v}.", "That was on {v}.", "Bought on {v}.", "It dates from {v}.", "It reached us on {v}."),
        "city": ("It travels to {v}.", "The customer is in {v}.", "The van goes to {v}.", "Town: {v}.", "Please deliver in {v}."),
        "address": ("The door is at {v}.", "Drop it at {v}.", "We are at {v}.", "Leave it at {v}.", "The street is {v}."),
        "discount": ("{v}% less for a friend.", "Minus {v} percent.", "Take {v}% off.", "A discount of {v} percent was promised."),
    },
    "event": {
        "title": ("We call it {v}.", "The name is {v}.", "Topic: {v}.", "The occasion is the {v}.", "What: {v}."),
        "date": ("Come on {v}.", "Keep {v} free.", "On {v} it begins.", "The day to remember is {v}.", "We chose {v}.", "Day: {v}.", "It falls on {v}.", "See you on {v}.", "{v} is the day.", "Note {v} down.", "It was set for {v}."),
        "time": ("Please come at {v}.", "{v} sharp.", "The doors open at {v}.", "We wait until {v}.", "Clock: {v}.", "At {v} we begin.", "Arrive at {v}."),
        "location": ("Everybody meets at {v}.", "You will find it at {v}.", "We rented {v}.", "It happens at {v}.", "The hosts chose {v}.", "{v} is the place.", "Where we meet: {v}.", "Doors are open at {v}.", "Find us at {v}.", "Spot: {v}."),
        "city": ("We go to {v} for it.", "All of it in {v}.", "Town: {v}.", "{v} is the host city."),
        "organizer": ("Ask {v} about it.", "{v} planned it all.", "{v} sent the invitation.", "Led by {v}.", "{v} runs it.", "It was {v} who had the idea."),
        "attendees": ("On the list are {v}.", "We hope to see {v}.", "{v} said yes.", "Seats for {v}.", "Present: {v}.", "{v} promised to come."),
        "duration": ("Reckon with {v} minutes.", "{v} minutes long.", "It is over after {v} minutes.", "Time needed: {v} minutes."),
        "capacity": ("No more than {v} people.", "{v} chairs.", "The hall holds {v}."),
        "price": ("You pay {v} at the door.", "{v} a head.", "Tickets are {v}."),
    },
    "ticket": {
        "customer": ("{v} is my name.", "Yours sincerely, {v}", "Respectfully, {v}", "Many thanks from {v}", "Love, {v}", "{v} writing.", "Thank you. {v}", "All the best, {v}", "Until soon, {v}", "With regards, {v}", "It is {v} again.", "You are talking to {v}.", "From: {v}.", "Sender: {v}.", "With kind wishes, {v}"),
        "order_id": ("Reference: {v}.", "The paper says {v}.", "Under number {v}.", "Ticket for {v}.", "You filed it as {v}."),
        "product": ("The thing is a {v}.", "My {v} is concerned.", "I got a {v} from you.", "Article: {v}.", "We own one {v}."),
        "email": ("Send the answer to {v} .", "My mail is {v} .", "Mailbox: {v}", "You find me at {v} ."),
        "phone": ("Best by phone: {v}.", "I pick up on {v}.", "Tel: {v}", "Ring back on {v}."),
        "subject": ("Re: {v}.", "Topic: {v}.", "What it is about: {v}."),
    },
    "product": {
        "name": ("You get a {v}.", "Article: {v}.", "What it is: a {v}."), "price": ("{v} is all you pay.", "Now {v}.", "It goes for {v}.", "For {v} it is yours.", "The shop wants {v}."),
        "color": ("Painted {v}.", "The shade is {v}.", "In {v}."), "brand": ("Built by {v}.", "Maker: {v}.", "{v} is behind it."), "weight": ("{v} kg heavy.", "On the scale: {v} kg.", "The weight is {v} kg."),
        "stock": ("{v} on the shelf.", "Still {v} there.", "The shelf holds {v}."), "rating": ("{v} points.", "Buyers gave {v}.", "Score {v}."), "sku": ("Listed as {v}.", "No. {v}."),
    },
    "pet": {
        "name": ("We call it {v}.", "{v} is what we call it.", "On the collar: {v}."), "species": ("What you see is a {v}.", "Kind: {v}.", "Of course it is a {v}."),
        "age": ("{v} years of age.", "It has been with us {v} years.", "Already {v}."), "owner": ("{v} feeds it.", "Master: {v}.", "It lives with {v}."), "weight": ("On the scale {v} kg.", "{v} kg in all."),
    },
    "book": {"author": ("From the pen of {v}.", "Written by {v}.", "{v} is the author."), "year": ("In shops since {v}.", "It is from {v}.", "Printed in {v}."), "pages": ("{v} pages long.", "Length: {v} pages."), "price": ("For {v}.", "{v} in the shop."), "language": ("You read it in {v}.", "In {v}.")},
    "invoice": {"total": ("{v} are due.", "Sum: {v}.", "All in all {v}."), "due": ("To be paid by {v}.", "Until {v}.", "Pay before {v}."), "vendor": ("{v} wrote it.", "By {v}."), "customer": ("{v} is the payer.", "For {v}."), "date": ("Written on {v}.", "Of {v}.")},
    "flight": {"origin": ("Start: {v}.", "We take off in {v}."), "destination": ("It lands in {v}.", "Goal: {v}.", "The way goes to {v}."), "date": ("On {v} we fly.", "Day: {v}."), "passengers": ("{v} of us.", "Party of {v}."), "time": ("At {v} sharp.", "Gate closes at {v}."), "passenger": ("Ticket for {v}.", "{v} takes it.")},
}

MORE_OPENERS: dict[str, tuple[str, ...]] = {
    "person": (
        "{name} turned {age} in June and moved to {city}.", "Our neighbour {name}, {age} years old, comes from {city}.", "A certain {name} from {city} called, {age} years old.", "The speaker was {name}, a {job}.", "{name} grew old in {city}: {age} years.", "I have a friend in {city}, {name}, who is {age}.",
        "The prize went to {name} of {city}.", "{age}-year-old {name} lives in {city}.", "{name} - {age} - {city}", "{name} ({city})", "{name} ({job}, {age})", "{name}: {age}, {city}", "In {city} we met {name}, {age}.", "The new tenant is {name}, {age}, from {city}.", "Let me introduce {name}, who lives in {city}.",
        "Do you remember {name} from {city}?", "{name} has moved to {city}, aged {age}.", "Passenger {name}, {age}, boarded in {city}.", "{city} is where {name} lives.", "{name} retired at {age} and lives in {city}.", "Call {name} at {phone} or write to {email} .", "Any questions? {name}, {phone}, {email}", "{name}, phone {phone}, email {email}",
        "Please ask {name} ({email}).", "{name} | {phone} | {email}", "{email} is the address of {name}.", "{phone}: {name}", "You reach {name} on {phone}.", "Mail {email} and ask for {name}, or ring {phone}.", "The team: {name}, {job}.", "Born in {city}, {name} is now {age}.", "The police are looking for {name}, {age}, last seen in {city}.",
        "My sister {name} is {age} and works in {city}.", "My uncle {name} lives in {city}.", "Doctor's note: patient {name}, {age}.", "{name} won. The {job} is {age} and lives in {city}.", "{name}, aged {age}, lives near {city}.", "With {age} years {name} is our youngest {job}.", "Student: {name}, {age}, {city}.", "{name} writes from {city}.",
        "Say hello to {name}, our {job} in {city}!", "The {age} year old {name} is a {job}.", "Yes, {name} is {age}.", "{name} came all the way from {city}.", "{name} plays for {city} and is {age}.", "Who is {name}? A {job} of {age} years from {city}.",
    ),
    "order": (
        "{items} for {customer}.", "{customer} would love to have {items}.", "{customer} asks for {items}.", "{customer}, {city}: {items}", "Two days ago {customer} asked us for {items}.", "Please reserve {items} for {customer}.", "{customer} is waiting for {items}.", "{customer} called and wants {items}.", "Note for the shop: {items} for {customer}.",
        "I would like to have {items}. {customer}", "It is {customer} again, I need {items}.", "Good day! {items}, please. {customer}", "Hi, {customer} here, please send {items}.", "Dear shop, please send {items}. Regards, {customer}", "We need {items}, says {customer}.", "{customer} takes {items}.", "{customer} decided to buy {items}.",
        "Pack {items} for {customer}.", "For {customer} in {city}: {items}.", "{customer} wants to order {items}.", "{customer} picked {items}.", "Deliver {items} to {customer}, {address}.", "Please put {items} aside for {customer}.", "Order of {date}: {items}, {customer}.", "{items}. Name: {customer}.", "Customer {customer} bought {items} for {total}.",
        "Hello! Could I have {items}? Thanks, {customer}", "{id}: {customer}, {items}", "Make that {items} for {customer}.", "{customer} just bought {items} from us.", "A parcel with {items} for {customer}.", "{customer} paid {total} for {items}.", "Today {customer} came in and took {items}.",
    ),
    "event": (
        "{title}, {date}, {location}.", "{title}! {date}, {location}", "{location}, {date}: {title}", "{date}: {title} at {location}", "Do come to the {title} at {location}, {date}.", "We hold the {title} at {location} on {date}.", "This year the {title} is at {location}, on {date}.", "Everybody is welcome at the {title} on {date}.",
        "Note it down: {title}, {date}.", "{organizer} asks you to the {title} at {location}.", "The {title} was moved to {date}, {location}.", "We look forward to the {title} on {date} in {location}.", "{date} is the day of the {title}.", "At {location} the {title} begins at {time} on {date}.", "You find the {title} at {location} from {time} on.",
        "Who comes to the {title} on {date}?", "{title} (on {date}, at {location})", "Your ticket: {title}, {location}, {date}", "The town invites to the {title} at {location} on {date}.", "The next {title} will be on {date}.", "Only on {date}: {title} in {city}!", "Party! {title} at {location}, {date}, {time}", "The school plans a {title} at {location} for {date}.",
        "We would be glad to see you at the {title}, {date}, {location}.", "What a day: on {date} the {title} opens at {location}.", "{title} - {date} - {location}", "Meeting: {title}. Day: {date}. Place: {location}.", "Tell all: the {title} is on {date} at {location}.",
    ),
    "ticket": (
        "{customer} here. {category}", "{customer} here. {category} {priority}", "Dear team, {category} {priority} {customer}", "Good evening, this is {customer}. {category} {priority}", "{category} {priority} Yours, {customer}", "{priority} {category} Signed {customer}", "Hello, {customer} writing. {category}", "Me again, {customer}. {category} {priority}",
        "{category} Can you help? {customer}", "Dear support, {category} {priority} Thanks a lot, {customer}", "{customer}: {category}", "{customer} wrote: {category} {priority}", "{customer} says: {category}", "To whom it may concern: {category} Best regards, {customer}", "I am called {customer}. {category} {priority}", "Help please. {category} {priority} Thank you, {customer}",
        "Hi. {priority} {category} {customer}", "Ladies and gentlemen, {category} {priority} Faithfully, {customer}", "{category} {priority} With greetings, {customer}", "You have a message from {customer}. {category} {priority}", "Good afternoon, I am {customer}. {category} {priority}",
    ),
    "product": ("Look, a {name} for {price}!", "{price} for the {name}.", "The {name} is made by {brand}.", "Sold: one {name}, {price}.", "You can have the {name} for {price}.", "{brand} {name}, {color}, {price}", "A {name} in {color}.", "The {name} is now {price} and weighs {weight} kg.", "I paid {price} for this {name}."),
    "pet": ("{name} is the {species} of {owner}.", "A {species} named {name}, {age} years old.", "Found: a {color} {species} called {name}.", "{owner} and {name}, a {species}.", "Our {species} is called {name} and is {age}.", "{name} ({species}, {age})"),
    "book": ("{author} is the author of {title}, {year}.", "{title} was written in {year} by {author}.", "In {title}, {author} needs {pages} pages.", "Read {title} by {author}!", "{title}: {author}, {year}", "I bought {title} from {author}."),
    "invoice": ("{vendor} wants {total} from {customer}.", "For {customer}: invoice {number}, {total}.", "{number} / {date} / {total}", "Pay {total} to {vendor} by {due}.", "Bill {number} of {vendor}: {total}"),
    "flight": ("{passenger} wants to go to {destination} from {origin}.", "From {origin}, {passenger} flies to {destination}.", "{date}: {origin} to {destination}", "{passengers} people from {origin} to {destination}, please.", "At {time} {number} leaves {origin} for {destination}.", "Take me from {origin} to {destination} on {date}."),
}

# Requests by the first name of the tool

MORE_REQUESTS: dict[str, tuple[str, ...]] = {
    "get_weather": (
        "Do I need an umbrella in {city}?", "Do I need a coat in {city} {day}?", "Is it cold in {city}?", "Is it hot in {city} {day}?", "Is there snow in {city}?", "Will there be a storm in {city} {day}?", "How warm does it get in {city}?", "How cold will it be in {city} {day}?", "Does the sun shine in {city}?", "What are the temperatures in {city}?",
        "I travel to {city} {day}, how is the weather?", "Tell me whether it rains in {city}.", "Weather report for {city} please.", "{city} weather, please", "How many degrees are there in {city}?", "Degrees in {city}, {unit} please?", "Is it windy in {city} {day}?", "Give me the forecast for {city}, in {unit}.", "What does the sky look like in {city}?",
        "We are going to {city}. Will it be dry {day}?", "Can I go without a jacket in {city} {day}?", "How does it look in {city} {day}?", "I want the temperature of {city} in {unit}.", "Are there clouds over {city}?", "Could it freeze in {city} {day}?", "Is {city} sunny {day}?", "Find out about the weather in {city}.",
    ),
    "create_event": (
        "Write {title} in my calendar for {date}.", "Note the {title} {date} at {time}.", "Mark the {title} in the calendar on {date}.", "I have a {title} on {date}, please save it.", "The {title} is on {date} at {time}, note it.", "Calendar entry: {title}, {date}, {time}.", "Make room for {title} on {date}.", "Keep {date} at {time} free for the {title}.",
        "Enter {title} for {date}.", "Please save {title}, {date}, {time}.", "On {date} at {time} I have {title}. Add it.", "Add an appointment: {title}, {date}.", "There is a {title} on {date}. Do not let me miss it.", "Arrange the {title} for {date} at {time}.", "Block {date} for the {title}.", "Could you enter the {title}? It is on {date} at {time}.",
        "We will have a {title} {date} at {time}; put it down.", "Insert {title} on {date}.", "{date}, {time}: {title}. Please enter it.",
    ),
    "list_events": ("Am I free {date}?", "Is there anything on {date}?", "Tell me what happens {date}.", "Read me my appointments for {date}.", "How busy am I {date}?", "My plans {date}?", "Look into the calendar for {date}."),
    "cancel_event": ("I will not go to the {title}, strike it.", "No {title} on {date}, please remove it.", "Drop the {title}.", "Erase {title} on {date}.", "We do not need the {title} any more.", "Forget about the {title} on {date}.", "Please cross out the {title}."),
    "set_timer": (
        "Tell me when {minutes} minutes are over.", "The eggs need {minutes} minutes.", "Bake it {minutes} minutes and tell me then.", "Count {minutes} minutes.", "In {minutes} minutes I want a signal.", "Let it ring after {minutes} minutes.", "My tea takes {minutes} minutes, please time it.", "The rice is done in {minutes} minutes, tell me.", "{minutes} minutes from now, ring.",
        "Run the clock for {minutes} minutes.", "I have {minutes} minutes left, count them.", "Stop me after {minutes} minutes.", "{minutes} minutes, go!", "Please clock {minutes} minutes for me.", "The soup has to cook {minutes} minutes.",
    ),
    "set_alarm": ("I want to wake up at {time}.", "Let me sleep until {time}.", "Get me out of bed at {time} {day}.", "Alarm clock: {time}.", "{time} {day}, wake me."),
    "create_reminder": ("I should {text} {when}, tell me then.", "Do not let me forget: {text}, {when}.", "Note for {when}: {text}.", "At {time} I have to {text}, remind me.", "Please remember {when} that I want to {text}."),
    "send_message": ("Write to {to}: {text}", "Let {to} read this: {text}", "Tell {to} by text: {text}", "{to} should know: {text}", "Drop {to} a line: {text}"),
    "send_email": ("Please mail {to} that we {body}.", "An email to {to}: {body}", "Subject {subject}, to {to}, text: {body}", "{to} should get a mail about {subject}."),
    "search": ("What does the web say about {query}?", "I am looking for {query}.", "Get me results for {query}.", "Is there news about {query}?", "Query: {query}"),
    "control_device": ("Make the {device} in the {room} go {state}.", "I want the {device} {state}.", "{device} {state}!", "{state} with the {device} in the {room}.", "Is the {device} in the {room} {state}? If not, turn it {state}."),
    "book_table": ("We want to eat at {restaurant}, {people} of us, {date} at {time}.", "{restaurant}, {people} people, {date}, please.", "Dinner at {restaurant} {date} for {people}.", "Is there a table at {restaurant} for {people} at {time}?"),
    "book_flight": ("From {origin} to {destination} on {date}, please.", "I have to get to {destination} from {origin}.", "How do I fly from {origin} to {destination} on {date}?", "{people} tickets {origin} - {destination}"),
    "convert_currency": ("What is {amount} {from} worth in {to}?", "Give me {amount} {from} as {to}.", "I need {to} for {amount} {from}.", "{amount} {from} makes how many {to}?"),
    "translate": ("What would {text} be in {language}?", "I need {text} in {language}.", "The {language} word for {text}?", "{text} - in {language}, please."),
    "play_music": ("I feel like {genre}.", "Let's hear {song}.", "Music by {artist}!", "Turn on {song} by {artist}.", "Some {genre}, please."),
    "get_order": ("Is {id} on its way?", "What happened to order {id}?", "Any news of {id}?", "My order is {id}, where is it?"),
    "add_item": ("We are out of {item}.", "Do not forget {quantity} {item}.", "Also {quantity} {item}.", "{quantity} {item} for the cart."),
    "call_contact": ("I need to speak to {name}.", "Put me through to {name}.", "Connect me with {name}.", "Let me talk with {name}."),
    "get_time": ("Is it late in {city}?", "{city}: what time?", "What does the clock say in {city}?", "How late in {city}?"),
    "set_temperature": ("The {room} needs {degrees} degrees.", "{degrees} degrees for the {room}, please.", "Bring the {room} to {degrees} degrees."),
    "get_stock_price": ("What do shares of {company} cost?", "{company} stock?", "Is {company} up or down?"),
    "create_contact": ("Note down {name}, {phone}.", "Keep the number {phone} of {name}.", "{name}, {phone}, {email}: save that."),
}


# Sentences that mean a label, put together of parts

def _all(*parts: Sequence[str]) -> tuple[str, ...]:
    return tuple(" ".join(each).replace(" ,", ",").replace(" .", ".").replace(" !", "!") for each in itertools.product(*parts))


PLACES = ("hotel", "room", "house", "flat", "restaurant", "shop", "museum", "beach", "camp", "bar")
SHOWS = ("film", "book", "play", "show", "game", "trip", "party", "course", "tour", "song", "match", "lecture", "wedding", "opera")
GOODS = ("food", "soup", "pizza", "coffee", "bread", "cake", "fish", "breakfast", "dinner", "wine", "salad")
PEOPLE = ("staff", "guide", "driver", "cook", "teacher", "host", "nurse", "seller", "manager", "band")
THINGS = ("phone", "chair", "lamp", "bike", "watch", "bag", "coat", "printer", "tent", "knife", "radio", "bed", "sofa", "car")

GOOD = ("great", "lovely", "excellent", "brilliant", "perfect", "wonderful", "beautiful", "superb", "very good", "fantastic", "better than expected", "a real pleasure", "a joy", "amazing", "first class")
BAD = ("terrible", "awful", "a disaster", "horrible", "very bad", "a waste of money", "poor", "disappointing", "worse than expected", "a joke", "a shame", "dreadful", "ruined", "a nightmare")
FAIR = ("okay", "average", "normal", "neither good nor bad", "acceptable", "ordinary", "so so", "like all others", "nothing to write home about", "fine, no more")
WERE = ("was", "was really", "was simply", "was once more", "was, as always,", "turned out to be")
ENDS = (".", ".", "!")

SENTIMENTS: dict[str, tuple[str, ...]] = {
    "positive": (
        *_all(("The",), (*PLACES, *SHOWS, *GOODS, *PEOPLE, *THINGS), WERE, GOOD, ENDS), *_all(("The",), GOODS, ("tasted", "was so", "is"), ("good", "fresh", "delicious", "wonderful", "fantastic"), ENDS), *_all(("The",), PEOPLE, ("was", "was so", "was very"), ("kind", "helpful", "friendly", "patient", "polite", "quick"), ENDS),
        *_all(("What a", "Such a"), ("lovely", "great", "brilliant", "wonderful", "beautiful"), (*PLACES, *SHOWS, *THINGS), ENDS), *_all(("I", "We", "My children", "All of us", "My wife"), ("loved", "enjoyed", "adored", "were happy with", "could not get enough of"), ("the", "this"), (*PLACES, *SHOWS, *GOODS, *THINGS), ENDS),
        *_all(("I would", "We would", "I will", "We will"), ("come back", "go again", "buy it again", "do it again", "recommend it", "order again", "be back"), ("any time", "soon", "tomorrow", "at once", "next year"), ENDS), *_all(("The",), ("bed", "room", "bath", "garden", "view", "pool"), ("was", "was so", "was very"), ("soft", "clean", "quiet", "big", "bright", "comfortable"), ENDS),
    ),
    "negative": (
        *_all(("The",), (*PLACES, *SHOWS, *GOODS, *PEOPLE, *THINGS), WERE, BAD, ENDS), *_all(("The",), GOODS, ("tasted", "was", "came"), ("old", "burnt", "too salty", "raw", "like paper", "stale", "cold and late"), ENDS), *_all(("The",), PEOPLE, ("was", "was so", "was very"), ("rude", "slow", "lazy", "unfriendly", "loud", "late", "bored"), ENDS),
        *_all(("What a", "Such a"), ("boring", "bad", "terrible", "sad", "useless", "dirty"), (*PLACES, *SHOWS, *THINGS), ENDS), *_all(("I", "We", "My children", "All of us", "My wife"), ("hated", "regret", "were unhappy with", "could not stand", "were disappointed by"), ("the", "this"), (*PLACES, *SHOWS, *GOODS, *THINGS), ENDS),
        *_all(("I would", "We would", "I will", "We will"), ("not come back", "never go again", "not buy it again", "never do it again", "not recommend it", "send it back", "complain"), ("", "for sure", "ever", "to anyone"), ENDS), *_all(("The",), ("bed", "room", "bath", "garden", "view", "pool"), ("was", "was so", "was much too"), ("hard", "dirty", "loud", "small", "dark", "short", "cold", "narrow"), ENDS),
        *_all(("The", "This"), THINGS, ("broke", "fell apart", "stopped working", "was broken", "had a crack"), ("after a day", "within a week", "at once", "on the first day"), ENDS),
    ),
    "neutral": (*_all(("The",), (*PLACES, *SHOWS, *GOODS, *THINGS), ("was", "is", "was just", "seems"), FAIR, (".",)), *_all(("The", "This"), THINGS, ("is", "comes"), ("in a box", "with a manual", "in two sizes", "from a factory", "with a cable", "without batteries"), (".",)), *_all(("The",), PLACES, ("is", "stands", "lies"), ("next to the station", "in the centre", "by the road", "on the second floor", "opposite the bank"), (".",))),
}

PRIORITIES: dict[str, tuple[str, ...]] = {
    "high": (
        *_all(("I need", "We need", "I must have", "I want"), ("this solved", "this fixed", "an answer", "help", "a solution", "it back", "my money"), ("now", "today", "at once", "within the hour", "before noon", "immediately", "this very minute", "tonight"), ("!", ".")), *_all(("Please",), ("act", "answer", "fix it", "react", "call me", "help", "repair it"), ("at once", "immediately", "today", "right now", "without delay", "quickly"), ("!", ".")),
        *_all(("It is", "This is", "The matter is"), ("very urgent", "extremely urgent", "critical", "an emergency", "most urgent", "pressing"), ("!", ".")), *_all(("We", "I"), ("cannot wait", "cannot wait any longer", "cannot work", "lose money", "have no time left"), ("!", ".")),
    ),
    "medium": (*_all(("Please", "Could you", "Kindly"), ("look at it", "fix it", "answer", "see to it"), ("this week", "in a few days", "by Friday", "in the next days", "when it is your turn"), (".",)), *_all(("It is", "This is", "The matter is"), ("of normal importance", "fairly important", "not the most urgent", "moderately urgent", "of medium urgency"), (".",))),
    "low": (
        *_all(("No", "There is no", "Absolutely no"), ("pressure", "stress", "deadline", "hurry here", "rush at all", "need for speed", "urgency"), (".", "!")), *_all(("Answer", "Do it", "Fix it", "Look at it", "Reply", "Take care of it"), ("whenever you like", "when it suits you", "when you have nothing else to do", "some time", "in your own time", "one of these months", "next month or later"), (".",)),
        *_all(("It", "This", "The matter"), ("can wait", "has time", "is not important", "is not urgent", "may take a while", "is of little importance", "is a small thing"), (".",)),
    ),
}

CATEGORIES: dict[str, tuple[str, ...]] = {
    "billing": (
        *_all(("The invoice", "My bill", "The receipt", "My statement", "The last invoice"), ("shows", "has", "contains", "lists"), ("the wrong amount", "two charges", "a fee I never agreed to", "a mistake", "the wrong price", "a strange charge", "too much tax", "the same item twice"), (".",)), *_all(("I", "We"), ("paid", "was charged", "have been billed"), ("twice", "too much", "two times", "double", "the wrong amount", "for nothing"), ("", "this month", "last week", "again", "by you"), (".",)),
        *_all(("You", "Your shop", "Your company"), ("took", "charged", "withdrew", "booked"), ("the money twice", "too much money", "the fee again", "more than agreed"), (".",)), *_all(("My", "The"), ("refund", "payment", "money", "discount"), ("never came", "is missing", "was not booked", "is still open", "did not go through"), (".",)),
    ),
    "technical": (
        *_all(("The app", "Your software", "The program", "The website", "The page", "The printer", "The screen", "The update", "The camera", "The search"), ("crashes", "freezes", "shows an error", "stays empty", "turns black", "does not load", "hangs", "is broken", "stops working", "closes by itself"), ("", "when I open it", "since yesterday", "after a minute", "on my phone", "all day", "every time", "whenever I print", "after the last update"), (".",)),
        *_all(("I", "We"), ("only see", "get", "keep getting"), ("an error message", "a white screen", "a blank page", "error {n}", "a spinning wheel", "strange characters"), (".",)),
    ),
    "shipping": (
        *_all(("My parcel", "The parcel", "My package", "The delivery", "Our order", "The box", "The letter", "The goods"), ("has not come", "never came", "is lost", "is late", "is nowhere to be found", "was left in the rain", "went to a neighbour", "was left at the wrong door", "came back to you", "has been on its way for weeks", "arrived damaged", "should be here by now"), ("", "yet", "again", "since Monday"), (".", "!")),
        *_all(("The courier", "The driver", "The postman", "Your carrier"), ("did not ring", "lost it", "went to the wrong house", "never showed up", "threw it over the fence"), (".", "!")), *_all(("Tracking", "The tracking page", "The tracking link"), ("shows nothing", "has not moved for days", "says it is in another town", "does not know my parcel"), (".",)),
    ),
    "account": (
        *_all(("My password", "My login", "My user name", "My profile", "My account"), ("is wrong", "does not work", "was changed", "is locked", "has been blocked", "was deleted", "is not accepted", "was taken by someone"), ("", "since today", "any more", "again"), (".",)), *_all(("I", "We"), ("cannot", "can no longer", "want to", "would like to"), ("log in", "sign in", "change my password", "reset the password", "open my profile", "close the account", "change the user name", "enter my account"), ("", "any more", "today", "please"), (".",)),
        *_all(("Please", "Kindly"), ("unlock my account", "reset my login", "delete my profile", "send me a new password", "change my user name"), (".",)),
    ),
}

LABEL_SENTENCES: dict[str, dict[str, tuple[str, ...]]] = {"sentiment": SENTIMENTS, "priority": PRIORITIES, "category": CATEGORIES}


def label_sentence(source: Source, which: str, label: Any) -> str:
    """One of the composed sentences that mean a label."""
    options = LABEL_SENTENCES[which][label]
    return source.fresh(lambda: source.rng.choice(options)).replace(" .", ".").replace("  ", " ")


