"""Word pools of the synthetic corpus. Which of them are held out is decided by `values.split_of`, not here."""

from __future__ import annotations

FIRST_NAMES = """Ada Alan Grace Linus Maria John Wei Fatima Omar Sofia Lucas Emma Liam Olivia Noah Ava Mia Ethan Isabella James
Amelia Benjamin Charlotte Elijah Harper Henry Evelyn Alexander Abigail Daniel Emily Matthew Ella Samuel Scarlett David Chloe Joseph
Victoria Carter Aria Owen Penelope Wyatt Layla Jack Riley Luke Zoey Jayden Nora Dylan Lily Grayson Eleanor Levi Hannah Isaac Lillian
Gabriel Addison Julian Aubrey Mateo Stella Anthony Natalie Jaxon Zoe Lincoln Leah Joshua Hazel Christopher Violet Andrew Aurora
Theodore Savannah Caleb Audrey Ryan Brooklyn Asher Bella Nathan Claire Thomas Skylar Leo Lucy Isaiah Paisley Charles Anna Josiah
Caroline Hudson Nova Christian Genesis Hunter Emilia Connor Kennedy Eli Maya Ezra Willow Aaron Kinsley Landon Naomi Adrian Sarah
Jonathan Elena Nolan Alice Jeremiah Gabriela Easton Madelyn Elias Cora Colton Ruby Cameron Eva Carson Serenity Robert Autumn Angel
Hailey Maverick Gianna Nicholas Valentina Dominic Isla Jaxson Eliana Greyson Quinn Adam Nevaeh Ian Ivy Austin Sadie Santiago Piper
Jordan Lydia Cooper Alexa Brayden Josephine Roman Julia Evan Delilah Ezekiel Arianna Xavier Vivian Jose Kaylee Jace Sophie Jameson
Priya Ravi Anjali Arjun Yuki Hiroshi Sakura Kenji Chen Ming Ling Jin Aisha Yusuf Khalid Leila Ingrid Lars Bjorn Astrid Freya Sven
Giulia Marco Luca Chiara Pierre Amélie René José Zoë Chloé Jürgen Søren Łukasz Agnieszka Katarzyna Ivan Olga Dmitri Svetlana Kwame
Amara Chidi Ngozi Thabo Zanele Diego Camila Javier Lucía Ana Pedro João Inês Thiago Siobhán Niamh Declan Rhys Carys Angus Morag
Margaret Tim Dennis Ken Barbara Donald Edsger Bob Carol Dave Eve Frank Judy Mallory Peggy Rupert Sybil Trent Walter Tom Sam Kim Jo""".split()

LAST_NAMES = """Lovelace Turing Hopper Torvalds Garcia Smith Johnson Williams Brown Jones Miller Davis Rodriguez Martinez Hernandez
Lopez Gonzalez Wilson Anderson Thomas Taylor Moore Jackson Martin Lee Perez Thompson White Harris Sanchez Clark Ramirez Lewis Robinson
Walker Young Allen King Wright Scott Torres Nguyen Hill Flores Green Adams Nelson Baker Hall Rivera Campbell Mitchell Carter Roberts
Gomez Phillips Evans Turner Diaz Parker Cruz Edwards Collins Reyes Stewart Morris Morales Murphy Cook Rogers Gutierrez Ortiz Morgan
Cooper Peterson Bailey Reed Kelly Howard Ramos Kim Cox Ward Richardson Watson Brooks Chavez Wood James Bennett Gray Mendoza Ruiz
Hughes Price Alvarez Castillo Sanders Patel Myers Long Ross Foster Jimenez Powell Jenkins Perry Russell Sullivan Bell Coleman Butler
Henderson Barnes Fisher Vasquez Simmons Romero Jordan Patterson Alexander Hamilton Graham Reynolds Griffin Wallace Moreno West Cole
Tanaka Suzuki Sato Yamamoto Nakamura Wang Li Zhang Liu Chen Yang Huang Zhao Wu Singh Kumar Sharma Gupta Khan Ali Hassan Ibrahim
Müller Schmidt Schneider Fischer Weber Meyer Wagner Becker Hoffmann Dubois Moreau Laurent Lefèvre Rossi Russo Ferrari Esposito Bianchi
Silva Santos Oliveira Souza Pereira Costa Novak Kowalski Nowak Wójcik Johansson Andersson Nilsson Hansen Olsen Larsen Jensen Nielsen
O'Brien O'Connor McCarthy MacDonald Okafor Adeyemi Mensah Dlamini Nkosi Ivanov Petrov Smirnov Popov Horvat Kovács Szabó Papadopoulos
Hamilton Knuth Dijkstra Liskov Ritchie Thompson Kernighan Berners-Lee Curie Einstein Newton Darwin Mercer Holt Vance Abbott""".split()

CITIES = """London|Paris|Berlin|Madrid|Rome|Lisbon|Vienna|Prague|Warsaw|Budapest|Athens|Dublin|Oslo|Stockholm|Helsinki|Copenhagen|Amsterdam|
Brussels|Zurich|Geneva|Milan|Barcelona|Munich|Hamburg|Lyon|Porto|Seville|Krakow|Moscow|Istanbul|Cairo|Lagos|Nairobi|Accra|Cape Town|
Johannesburg|Casablanca|Tunis|Dubai|Doha|Tehran|Delhi|Mumbai|Bangalore|Chennai|Kolkata|Karachi|Dhaka|Bangkok|Hanoi|Singapore|Jakarta|
Manila|Tokyo|Osaka|Kyoto|Seoul|Busan|Beijing|Shanghai|Shenzhen|Hong Kong|Taipei|Sydney|Melbourne|Perth|Auckland|Wellington|New York|
Boston|Chicago|Seattle|Portland|San Francisco|Los Angeles|San Diego|Denver|Austin|Dallas|Houston|Miami|Atlanta|Toronto|Vancouver|
Montreal|Mexico City|Bogotá|Lima|Quito|Santiago|Buenos Aires|São Paulo|Rio de Janeiro|Havana|Leeds|Bristol|Glasgow|Cardiff|York|Oxford|
Cambridge|Reykjavik|Tallinn|Riga|Vilnius|Zagreb|Belgrade|Sofia|Bucharest|Kyiv|Lviv|Tbilisi|Baku|Almaty|Nice|Turin|Naples|Ghent|
Malmö|Bergen|Graz|Basel|Bern|Cologne|Dresden|Leipzig|Springfield|Phoenix|Detroit|Nashville|Orlando|Salt Lake City|St. Louis""".replace("\n", "").split("|")

COUNTRIES = """France|Germany|Spain|Italy|Portugal|Austria|Poland|Hungary|Greece|Ireland|Norway|Sweden|Finland|Denmark|Belgium|
Switzerland|Turkey|Egypt|Nigeria|Kenya|Ghana|South Africa|Morocco|India|Pakistan|Bangladesh|Thailand|Vietnam|Indonesia|Japan|South Korea|
China|Australia|New Zealand|United States|Canada|Mexico|Colombia|Peru|Chile|Argentina|Brazil|Cuba|Iceland|Estonia|Ukraine|Romania|
the Netherlands|the UK|the USA""".replace("\n", "").split("|")

JOBS = """nurse|doctor|teacher|software engineer|data scientist|architect|carpenter|plumber|electrician|chef|baker|lawyer|judge|
journalist|writer|editor|painter|musician|actor|photographer|pilot|mechanic|farmer|accountant|bank clerk|cashier|librarian|biologist|
chemist|physicist|mathematician|geologist|pharmacist|dentist|surgeon|veterinarian|firefighter|police officer|paramedic|bus driver|
translator|interpreter|product manager|project manager|sales manager|graphic designer|web developer|security guard|student|researcher|
professor|gardener|tailor|barista|waiter|hairdresser|social worker|civil engineer|marine biologist|flight attendant|real estate agent|
tax advisor|game designer|sound engineer|tour guide|programmer|analyst|consultant|astronomer|historian""".replace("\n", "").split("|")

HOBBIES = """chess|hiking|painting|swimming|running|reading|cooking|cycling|gardening|photography|yoga|climbing|sailing|skiing|dancing|
knitting|fishing|surfing|rowing|pottery|origami|birdwatching|board games|video games|playing the piano|playing guitar|baking|tennis|
football|basketball|archery|judo|writing poetry|stargazing|woodworking|calligraphy|jazz|theatre|camping""".replace("\n", "").split("|")

COLORS = """red blue green yellow orange purple black white grey silver golden brown pink turquoise navy beige maroon teal violet ivory""".split()

PRODUCT_ADJECTIVES = """wireless portable leather cotton wooden steel ceramic electric digital mini large small folding waterproof organic
vintage smart compact heavy soft glass plastic bamboo adjustable thermal stainless gaming mechanical rechargeable solar""".split()

PRODUCT_NOUNS = """kettle keyboard mouse lamp chair desk mug backpack jacket shirt notebook pen pencil bottle headset speaker charger
cable monitor camera tripod umbrella wallet watch scarf hat glove boot sneaker sandal pillow blanket towel candle vase clock mirror
toaster blender grinder pan pot knife fork spoon plate bowl cup tray basket box bag tent lantern helmet bicycle scooter drone tablet
phone laptop printer router adapter battery hammer screwdriver drill ladder bucket broom sponge soap shampoo razor comb doll puzzle
robot guitar drum flute novel atlas poster sticker stapler ruler eraser folder whiteboard projector webcam microphone fan heater""".split()

COMPANY_STEMS = """Acme Globex Initech Umbrella Stark Wayne Wonka Hooli Vandelay Cyberdyne Tyrell Soylent Northwind Contoso Fabrikam
Blue River Silver Oak Bright Harbor Stone Eagle Summit Pioneer Quantum Vertex Apex Nimbus Orion Lumen Atlas Delta Nova Zenith Cobalt
Maple Cedar Granite Falcon Beacon Horizon Evergreen Redwood Polar Solar Terra Aqua Pixel Vector Matrix Cipher Echo""".split()

COMPANY_SUFFIXES = """Inc|Ltd|Corp|Group|Labs|Systems|Industries|Partners|Bank|Foods|Motors|Energy|Robotics|Software|Logistics|Media|
Airlines|Hospital|University|Studio|Books|Health|Design|Press|Consulting|& Sons|GmbH""".replace("\n", "").split("|")

STREETS = """Main Oak Maple Park Station Church High Mill Lake River King Queen Bridge Garden Forest Hill Market School Victoria Elm
Cedar Sunset Harbour Castle Green Spring North South Baker Abbey""".split()

STREET_SUFFIXES = "Street|Road|Avenue|Lane|Drive|Way|Square|Court".split("|")

EVENT_KINDS = """meeting|workshop|concert|conference|lecture|party|dinner|lunch|picnic|exhibition|hackathon|seminar|reading|tournament|
festival|interview|review|standup|retrospective|kickoff|webinar|training|ceremony|rehearsal|demo|fair|reunion|gala|parade|auction""".replace("\n", "").split("|")

TOPICS = """budget planning design marketing product sales security jazz poetry science robotics chess summer winter spring autumn annual
weekly monthly quarterly team project strategy wine book film music art history garden charity wedding birthday graduation onboarding
roadmap release performance safety climate startup python data research customer hiring board community space""".split()

VENUES = """Town Hall|City Library|Room {n}|Conference Room B|the main auditorium|Central Park|Building {n}|the cafeteria|the rooftop|
Grand Hotel|Riverside Pavilion|the gym|Lecture Hall {n}|the community centre|Hall {n}|the museum|the old theatre|Studio {n}|the beach club|
Café Luna|the school yard|the lobby|the Blue Room|Zoom|the botanical garden|Opera House|the harbour|the stadium""".replace("\n", "").split("|")

ROOMS = """kitchen|living room|bedroom|bathroom|garage|hallway|office|garden|attic|basement|dining room|nursery|balcony|study""".split("|")

DEVICES = """light|lamp|fan|heater|thermostat|television|speaker|alarm|camera|oven|coffee machine|radio|vacuum|door|blinds""".split("|")

LANGUAGES = """English French German Spanish Italian Portuguese Dutch Polish Swedish Finnish Greek Turkish Arabic Hindi Japanese Korean
Chinese Russian Ukrainian Czech""".split()

CUISINES = "italian french japanese mexican indian thai greek chinese spanish korean vegan turkish".split()

GENRES = "rock jazz pop classical folk metal blues techno soul reggae comedy drama thriller horror romance fantasy mystery biography".split()

DOMAINS_OF_MAIL = """example.com mail.net test.org post.io inbox.co web.de corp.com acme.com school.edu uni.ac.uk office.org gmail.com
outlook.com fastmail.com company.biz hospital.org shop.store""".split()

CURRENCIES = "USD EUR GBP JPY CHF CAD AUD SEK NOK DKK PLN INR CNY BRL MXN ZAR".split()

MONTHS = "January February March April May June July August September October November December".split()

WEEKDAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()

NUMBER_WORDS = "zero one two three four five six seven eight nine ten eleven twelve".split()

ANIMALS = "dog cat rabbit parrot hamster horse goldfish turtle snake pony canary goat sheep cow duck ferret".split()

CARS = "Toyota Honda Ford BMW Audi Tesla Volvo Fiat Renault Skoda Mazda Nissan Kia Jeep Porsche Opel Seat Subaru Lexus Peugeot".split()

KEY_NOUNS = """size weight height width depth length speed power voltage capacity level score rank grade rating count limit offset
version status mode type kind group class code label title name owner author editor source target origin region zone area floor room
seat row column page line chapter section volume issue year month day hour minute second duration interval start end deadline price cost
fee tax total balance amount discount budget revenue profit loss rate ratio percent temperature humidity pressure wind rain snow altitude
latitude longitude distance radius angle color shape material brand model serial batch lot warranty engine fuel mileage gear wheel door
window wall roof garden street city state country continent planet star moon ocean river mountain language currency religion species breed
habitat diet dose drug symptom disease patient doctor nurse ward hospital insurance policy claim account iban bank branch card pin token
key user password role team manager employee department salary bonus vacation shift project task ticket bug feature release server port
host path file folder format encoding checksum protocol network latency bandwidth memory disk cpu core thread queue topic channel message
subject body sender recipient attachment player coach stadium goal match league season round winner loser referee artist album song genre
label studio film actor director scene recipe ingredient flavor calories protein fat sugar salt oven pan serving taste crop yield soil
harvest tractor barn flight gate airline airport pilot luggage train platform station track captain ship crew cargo dock""".split()

KEY_ADJECTIVES = """max min total average main first last next old new primary secondary home work current final initial internal external
net gross daily weekly monthly annual local global public private default backup base full short long inner outer upper lower""".split()

COMMON_WORDS = """the of and to in is it you that he was for on are with as his they at be this from have or by one had not but what all
were when we there can an your which their said if do will each about how up out them then she many some so these would other into has more
her two like him see time could no make than been its who now people my made over did down only way find use may water long little very
after words called just where most know get through back much before go good new write our used me man too any day same right look think
also around another came come work three word must because does part even place well such here take why things help put years different away
again off went old number great tell men say small every found still between name should home big give air line set own under read last never
us left end along while might next sound below saw something thought both few those always looked show large often together asked house
don't world going want school important until form food keep children feet land side without boy once animals life enough took sometimes four
head above kind began almost live page got earth need far hand high year mother light parts country father let night following picture being
study second eyes soon times story boys since white days ever paper hard near sentence better best across during today others however sure
means knew it's try told young miles sun ways thing whole hear example heard several change answer room sea against top turned learn point
city play toward five using himself usually money seen didn't car morning given trees I'm ship later yesterday tomorrow please thanks hello
hi dear order package delivery arrived broken missing late refund invoice payment charge account login password error crash screen update
install app website page button slow fast great terrible awful excellent love hate happy angry disappointed satisfied recommend quality
service support staff team product item price cheap expensive worth waste money perfect fine okay average bad worst amazing wonderful
customer email phone address street weather forecast temperature rain sunny cloudy windy snow storm tonight weekend week month meeting event
calendar schedule reminder appointment book table reserve flight hotel ticket train bus taxi travel trip from to between remind me set alarm
timer turn on off play song music call send message text translate convert search find show list create delete cancel add remove lives works
born age aged years old employed job occupation located located married single currently contact reach available joined met meet called named
string integer number boolean null any date time uri uuid true false Fill Call Choose Match Follow root""".split()

TEXT_NOUNS = """report garden bridge letter forest window machine river castle morning journey market island engine mountain signal
library shadow harbor village storm festival lesson mirror station kitchen theory painting answer project blanket desert camera planet
teacher rocket silence orchard lantern whisper carpet tunnel meadow copper velvet thunder compass anchor feather marble puzzle ribbon""".split()

TEXT_ADJECTIVES = """quiet bright broken hidden golden ancient gentle frozen lonely crooked silent hollow distant restless curious
patient clever humble bitter eager fierce graceful heavy narrow pale rapid sharp steady tender vast warm young simple strange""".split()

TEXT_VERBS = """review update finish discuss prepare clean paint repair order cancel check send print sign translate pack water feed
visit call plan test deploy write read sort move buy return study measure record fix book""".split()
