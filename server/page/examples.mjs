/** What there is to start from: {name, hint, source, prompt, language?}. The prompts are of the kind that the embedded model knows. */

const json = (value) => JSON.stringify(value, null, 2).replaceAll(/\[\n\s+([^[\]{}]{1,60}?)\n\s+\]/g, (_, inner) => `[${inner.replaceAll(/\n\s+/g, " ")}]`);

const closed = (properties, required = Object.keys(properties)) => ({ type: "object", properties, required, additionalProperties: false });

export const EXAMPLES = {
  schema: [
    {
      name: "A person",
      hint: "Keys, brackets and quotes are forced; names and numbers are the model's.",
      prompt: "Ada Lovelace is a 36-year-old mathematician from London who likes French, music and chess.",
      source: json(
        closed({
          name: { type: "string", maxLength: 40 },
          age: { type: "integer", minimum: 0, maximum: 150 },
          city: { type: "string", maxLength: 40 },
          job: { type: "string", maxLength: 40 },
          likes: { type: "array", items: { type: "string", maxLength: 20 }, minItems: 1, maxItems: 3, uniqueItems: true },
        }),
      ),
    },
    {
      name: "An order, with a list of what a definition describes",
      hint: "A reference, a list of objects, an optional field.",
      prompt: "Please send 3 green lamps and 2 chairs to Maria Silva in Lisbon, order 48213.",
      source: json({
        ...closed(
          {
            order_id: { type: "integer", minimum: 1 },
            customer: { type: "string", maxLength: 40 },
            city: { type: "string", maxLength: 40 },
            items: { type: "array", items: { $ref: "#/$defs/item" }, minItems: 1, maxItems: 3 },
          },
          ["order_id", "customer", "items"],
        ),
        $defs: { item: closed({ product: { type: "string", maxLength: 24 }, quantity: { type: "integer", minimum: 1, maximum: 99 } }) },
      }),
    },
    {
      name: "A meeting, with a date and a pattern",
      hint: "The format and the pattern are enforced while the text is written.",
      prompt: "The team meeting is on 2024-03-18 at 14:30 in Room 12.",
      source: json(
        closed({
          title: { type: "string", maxLength: 40 },
          date: { type: "string", format: "date" },
          time: { type: "string", pattern: "^[0-2][0-9]:[0-5][0-9]$" },
          place: { type: "string", maxLength: 40 },
        }),
      ),
    },
    {
      name: "A schema with a mistake",
      hint: "Refused before anything runs, at its place.",
      prompt: "Ada Lovelace, 36, lives in London.",
      source: json(closed({ name: { type: "string", pattern: "^(\\w+) \\1$" }, age: { type: "integer" } })),
    },
  ],
  regex: [
    { name: "A telephone number", hint: "Python's dialect; the whole output matches.", prompt: "You can reach me at 555-0142 after six.", source: "\\d{3}-\\d{4}" },
    { name: "A date", hint: "Alternatives and ranges.", prompt: "The meeting is on the 18th of March 2024.", source: "(19|20)\\d\\d-(0[1-9]|1[0-2])-(0[1-9]|[12]\\d|3[01])" },
    { name: "A colour", hint: "Hexadecimal, short or long.", prompt: "A warm orange such as #ff8800.", source: "#([0-9a-f]{3}|[0-9a-f]{6})" },
  ],
  grammar: [
    {
      name: "A sum",
      hint: "llama.cpp's notation.",
      language: "gbnf",
      prompt: "Add 12 and 30, then take away 5.",
      source: '# Sums of small numbers.\nroot   ::= number ( " " sign " " number ){1,4}\nsign   ::= "+" | "-"\nnumber ::= "0" | [1-9] [0-9]{0,3}\n',
    },
  ],
  choices: [
    { name: "Sentiment", hint: "One option a line.", prompt: "The delivery came two weeks late and the box was broken.", source: "positive\nneutral\nnegative" },
    { name: "Yes or no", hint: "One option a line.", prompt: "Yes, I would love to come.", source: "yes\nno" },
  ],
  tools: [
    {
      name: "Weather and reminders",
      hint: "Functions with parameters, as OpenAI writes them.",
      prompt: "What is the weather in Oslo, in celsius?",
      source: json([
        { name: "get_weather", description: "The weather in a city", parameters: closed({ city: { type: "string", maxLength: 40 }, unit: { enum: ["celsius", "fahrenheit"] } }) },
        { name: "set_reminder", description: "Reminds of something", parameters: closed({ text: { type: "string", maxLength: 60 }, minutes: { type: "integer", minimum: 1, maximum: 1440 } }) },
      ]),
    },
  ],
  free: [{ name: "Free text", hint: "No constraint: every token is allowed.", prompt: "Ada Lovelace, 36, lives in London.", source: "" }],
};

/** Grammars of the library as examples. */
export function ofLibrary(grammars) {
  return grammars.map(({ name, language, description, grammar }) => ({
    name,
    hint: description,
    language,
    prompt: PROMPTS[name] ?? `Write ${name.replaceAll("-", " ")}.`,
    source: grammar,
  }));
}

const PROMPTS = {
  "sql-select": "Which users are older than 30?",
  semver: "The release is version 2.4.1.",
  "ip-address": "The server answers at 192.168.10.5.",
  "iso-date": "The meeting is on 2024-03-18.",
  "email-address": "Write to maria.silva@example.com.",
  arithmetic: "Add 12 and 30, then multiply by 5.",
  uuid: "The id is 123e4567-e89b-12d3-a456-426614174000.",
  cron: "Every day at half past six.",
};
