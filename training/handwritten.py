"""Texts written by hand: how the model does on what nobody wrote a template for.

`HANDWRITTEN` guided the work, and some of its turns of phrase found their way into the generator. `UNSEEN` was written after the generator's last
change and guided nothing; it stays as it is. So does `LATER`, in the shapes that people try: mails, chats, reviews, adverts, tickets, invoices, reports of matches,
requests. It was written before any candidate for the third weights was measured.
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

REVIEW = closed({"product": STRING, "rating": INTEGER, "sentiment": {"enum": ["positive", "neutral", "negative"]}})
ADVERT = closed({"item": STRING, "price": NUMBER, "city": STRING, "phone": STRING})
INVOICE = closed({"invoice_number": STRING, "vendor": STRING, "total": NUMBER, "due_date": DATE})
MATCH = closed({"home_team": STRING, "away_team": STRING, "home_score": INTEGER, "away_score": INTEGER})
FLIGHT = closed({"from": STRING, "to": STRING, "date": DATE, "passengers": INTEGER})
FLAT = closed({"rooms": INTEGER, "rent": NUMBER, "city": STRING, "pets_allowed": BOOLEAN})
JOB = closed({"title": STRING, "company": STRING, "location": STRING, "remote": BOOLEAN})

MAIL_TOOL = {"name": "send_email", "parameters": closed({"to": STRING, "subject": STRING})}
MESSAGE_TOOL = {"name": "send_message", "parameters": closed({"contact": STRING, "text": STRING})}
LIGHT_TOOL = {"name": "set_light", "parameters": closed({"room": STRING, "state": {"enum": ["on", "off"]}})}
MUSIC_TOOL = {"name": "play_music", "parameters": closed({"artist": STRING, "song": STRING}, frozenset({"song"}))}
TRAIN_TOOL = {"name": "find_train", "parameters": closed({"origin": STRING, "destination": STRING, "date": STRING}, frozenset({"date"}))}
PHONE = [MAIL_TOOL, MESSAGE_TOOL, MUSIC_TOOL]
HOUSE = [LIGHT_TOOL, MUSIC_TOOL]
TRAVEL = [TRAIN_TOOL, WEATHER]


def _fill(prompt: str, schema: Any, answer: Any) -> Example:
    return Example("fill", prompt, canonical_json(answer), {"schema": schema})


def _call(prompt: str, name: str, tools: Any = ASSISTANT, /, **arguments: Any) -> Example:
    return Example("call", prompt, canonical_json({"name": name, "arguments": arguments}), {"tools": tools})


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

LATER = (
    # mails
    _fill("Hi Tom,\n\nour new intern Beatriz Fonseca starts on Monday. She is 23 and just moved here from Coimbra.\n\nBest, Karen", PERSON, {
        "name": "Beatriz Fonseca", "age": 23, "city": "Coimbra"}),
    _fill("Dear all, please note that the Quarterly Planning has been moved to 12 March 2027. We will meet in the Blue Room. Regards, Sven", EVENT, {
        "title": "Quarterly Planning", "date": "2027-03-12", "location": "the Blue Room"}),
    _fill("Forwarded message: my new contact details are below.\nMagnus Åberg\nmagnus@aberg.se\n+46 70 555 01 93", CONTACT, {
        "name": "Magnus Åberg", "email": "magnus@aberg.se", "phone": "+46 70 555 01 93"}),
    _fill("Subject: Login broken\nI have tried to reset my password three times and still can't get in. I have a presentation in one hour, so please help immediately!\nPriya Raman", TICKET, {
        "customer": "Priya Raman", "category": "account", "priority": "high"}),
    _fill("Hello support, the invoice from April lists two licences but we only have one. Just correct it before next month. Thanks, Gerald Foss", TICKET, {
        "customer": "Gerald Foss", "category": "billing", "priority": "low"}),
    _fill("Dear Mr. Osei, we are pleased to offer you the position of data analyst at Brightwater Labs in Accra. You may work from home.", JOB, {
        "title": "data analyst", "company": "Brightwater Labs", "location": "Accra", "remote": True}),
    # chats
    _fill("anna: who is the new guy?\nben: Lukas Meier, he's 41 i think\nanna: from here?\nben: no, from Basel", PERSON, {"name": "Lukas Meier", "age": 41, "city": "Basel"}),
    _fill("hey its Mia Castellano, can u send me 2 yoga mats and 6 water bottles? asap if possible, express is ok", ORDER, {
        "customer": "Mia Castellano", "items": [{"product": "yoga mats", "quantity": 2}, {"product": "water bottles", "quantity": 6}], "express": True}),
    _fill("Me: party?\nHer: yes! Midsummer Party on 2026-06-20\nMe: where?\nHer: Lakeside Cabin", EVENT, {"title": "Midsummer Party", "date": "2026-06-20", "location": "Lakeside Cabin"}),
    _fill("ok so 4 of us fly from Dublin to Malta on the 3rd of May 2027, can you book that", FLIGHT, {"from": "Dublin", "to": "Malta", "date": "2027-05-03", "passengers": 4}),
    # reviews
    _fill("2/5. The BrewMaster 300 leaks after a week and makes lukewarm coffee. Very disappointed.", REVIEW, {"product": "BrewMaster 300", "rating": 2, "sentiment": "negative"}),
    _fill("My kids adore the Galaxy Tent! Set up in ten minutes and survived a storm. Rating: 5 of 5.", REVIEW, {"product": "Galaxy Tent", "rating": 5, "sentiment": "positive"}),
    _fill("SoundPod Mini. 3 stars. Sound is average, battery is average. You get what you pay for.", REVIEW, {"product": "SoundPod Mini", "rating": 3, "sentiment": "neutral"}),
    _fill("We had dinner at Trattoria Bella in Verona. The pasta was great but we waited 50 minutes. I'd give it 4 out of 5.", closed({"restaurant": STRING, "city": STRING, "rating": INTEGER, "wait_minutes": INTEGER}), {
        "restaurant": "Trattoria Bella", "city": "Verona", "rating": 4, "wait_minutes": 50}),
    # adverts
    _fill("FOR SALE: mountain bike, hardly used, 350 euros. Pick up in Utrecht. Call 06 5550 1234.", ADVERT, {"item": "mountain bike", "price": 350, "city": "Utrecht", "phone": "06 5550 1234"}),
    _fill("Selling my old piano because we are moving. $900 or best offer. I'm in Portland, phone 503-555-0175", ADVERT, {
        "item": "piano", "price": 900, "city": "Portland", "phone": "503-555-0175"}),
    _fill("Sunny 3-room apartment in Leipzig, 740 euros per month, sorry, no pets.", FLAT, {"rooms": 3, "rent": 740, "city": "Leipzig", "pets_allowed": False}),
    _fill("To let in Galway: two rooms, small garden, 1150 a month. Dogs and cats welcome!", FLAT, {"rooms": 2, "rent": 1150, "city": "Galway", "pets_allowed": True}),
    _fill("Hiring! Nordlicht GmbH needs a pastry chef in Kiel. On site only.", JOB, {"title": "pastry chef", "company": "Nordlicht GmbH", "location": "Kiel", "remote": False}),
    # invoices, orders and forms
    _fill("INVOICE\nNo. 2026-0417\nHartmann Office Supplies\nPaper, toner: 84.30\nTotal due: 84.30 EUR\nPayable by 30 April 2026", INVOICE, {
        "invoice_number": "2026-0417", "vendor": "Hartmann Office Supplies", "total": 84.3, "due_date": "2026-04-30"}),
    _fill("We received bill RX-5512 from Delta Plumbing, it comes to $1,260 and has to be settled by November 5, 2026.", INVOICE, {
        "invoice_number": "RX-5512", "vendor": "Delta Plumbing", "total": 1260, "due_date": "2026-11-05"}),
    _fill("Order confirmation\nShip to: Aisha Bello\n1 x kettle\n3 x tea towels\nStandard delivery (5 days)", ORDER, {
        "customer": "Aisha Bello", "items": [{"product": "kettle", "quantity": 1}, {"product": "tea towels", "quantity": 3}], "express": False}),
    _fill("Patient: Ruben Ortiz\nDOB: 4 February 1981\nBlood type: A+\nAllergies: penicillin, nuts", closed({"patient": STRING, "birth_date": DATE, "blood_type": STRING, "allergies": STRINGS}), {
        "patient": "Ruben Ortiz", "birth_date": "1981-02-04", "blood_type": "A+", "allergies": ["penicillin", "nuts"]}),
    # matches and other news
    _fill("Ajax beat Feyenoord 3-1 in Amsterdam on Sunday.", MATCH, {"home_team": "Ajax", "away_team": "Feyenoord", "home_score": 3, "away_score": 1}),
    _fill("Full time at Celtic Park: Celtic 2, Rangers 2.", MATCH, {"home_team": "Celtic", "away_team": "Rangers", "home_score": 2, "away_score": 2}),
    _fill("Kenya's Faith Chebet, 27, won the Boston race yesterday in front of Lena Vogt.", closed({"winner": STRING, "age": INTEGER, "country": STRING}), {
        "winner": "Faith Chebet", "age": 27, "country": "Kenya"}),
    _fill("A fire broke out in a warehouse in Rotterdam on 9 January 2026. Two workers were injured.", closed({"city": STRING, "date": DATE, "injured": INTEGER}), {
        "city": "Rotterdam", "date": "2026-01-09", "injured": 2}),
    _fill("Mount Kilimanjaro in Tanzania is 5895 metres high.", closed({"mountain": STRING, "country": STRING, "height": INTEGER}), {
        "mountain": "Mount Kilimanjaro", "country": "Tanzania", "height": 5895}),
    _fill("Pancakes: mix 250 g flour, 3 eggs and half a litre of milk. Serves 4, takes about 30 minutes.", closed({"dish": STRING, "servings": INTEGER, "minutes": INTEGER}), {
        "dish": "Pancakes", "servings": 4, "minutes": 30}),
    _fill("The server web-03 went down at 14:20 because the disk was full.", closed({"host": STRING, "time": STRING, "cause": STRING}), {"host": "web-03", "time": "14:20", "cause": "the disk was full"}),
    _fill("Quick reminder from the vet: Biscuit, your beagle, is due for a vaccination on 14 August 2026.", closed({"pet": STRING, "breed": STRING, "date": DATE}), {
        "pet": "Biscuit", "breed": "beagle", "date": "2026-08-14"}),
    _fill("Meeting notes: Olu will write the report, Petra will call the bank. Next meeting: 2 June 2026.", closed({"people": STRINGS, "next_meeting": DATE}), {
        "people": ["Olu", "Petra"], "next_meeting": "2026-06-02"}),
    _fill("Room 214, two nights, 98 euros each, breakfast included. Guest: Yannick Roux", closed({"guest": STRING, "room": INTEGER, "nights": INTEGER, "price": NUMBER, "breakfast": BOOLEAN}), {
        "guest": "Yannick Roux", "room": 214, "nights": 2, "price": 98, "breakfast": True}),
    # requests
    _call("It's getting dark, switch on the lamp in the kitchen.", "set_light", HOUSE, room="kitchen", state="on"),
    _call("nobody is in the bedroom, lights out there please", "set_light", HOUSE, room="bedroom", state="off"),
    _call("I'm in the mood for some Miles Davis.", "play_music", HOUSE, artist="Miles Davis"),
    _call("Can you put on Hurt by Johnny Cash?", "play_music", PHONE, artist="Johnny Cash", song="Hurt"),
    _call("Tell Marta that dinner is ready.", "send_message", PHONE, contact="Marta", text="dinner is ready"),
    _call("Send joe@acme.com an email, subject lunch.", "send_email", PHONE, to="joe@acme.com", subject="lunch"),
    _call("How do I get from Vienna to Graz by train tomorrow?", "find_train", TRAVEL, origin="Vienna", destination="Graz", date="tomorrow"),
    _call("Should I pack sunscreen for Lisbon?", "get_weather", TRAVEL, city="Lisbon"),
    _call("I've got a job interview at 10 am on Thursday, don't let me miss it.", "create_event", ASSISTANT, title="job interview", date="Thursday", time="10 am"),
    _call("Eggs on the stove, ping me in six minutes.", "set_timer", ASSISTANT, minutes=6),
    # labels and patterns, which are no fields
    _choice("The staff went out of their way to help us. We will be back next year!", ["positive", "negative"], "positive"),
    _choice("Broke on day two. Waste of money.", ["positive", "negative", "neutral"], "negative"),
    _choice("How can I change the credit card on file?", ["billing", "shipping", "technical"], "billing"),
    _choice("The courier left my parcel in the rain.", ["billing", "shipping", "technical"], "shipping"),
    _choice("Arsenal signed a new striker on Friday.", ["sports", "politics", "business"], "sports"),
    _choice("Parliament voted on the new budget last night.", ["sports", "politics", "weather"], "politics"),
    _choice("All production systems are down since 6 am.", ["low", "medium", "high"], "high"),
    _regex("Flight LH2047 is delayed by an hour.", r"[A-Z]{2}\d{4}", "LH2047"),
    _regex("Deliver it to ZIP code 94107, please.", r"\d{5}", "94107"),
    _regex("The meeting was moved from Tuesday to 14:45.", r"\d{2}:\d{2}", "14:45"),
)  # fmt: skip
