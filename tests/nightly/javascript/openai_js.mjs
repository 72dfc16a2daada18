import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { MODEL, QUESTION, TEXT, UNKNOWN, URL, rejects, runChecks } from "./checks.mjs";

const require = createRequire(`${process.env.MODULES}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { default: OpenAI } = await load("openai");
const { zodResponseFormat } = await load("openai/helpers/zod");
const { z } = await load("zod");

const client = new OpenAI({ baseURL: URL, apiKey: "none", maxRetries: 0 });
const Person = z.object({ name: z.string(), age: z.number().int() });
const asked = { model: MODEL, messages: [{ role: "user", content: TEXT }], response_format: zodResponseFormat(Person, "person") };

await runChecks({
  "typed output": async () => {
    const reply = await client.chat.completions.parse(asked);
    assert.deepEqual(reply.choices[0].message.parsed, { name: "Ada Lovelace", age: 36 });
  },
  "tools in a loop": async () => {
    const cities = [];
    const runner = client.chat.completions.runTools({
      model: MODEL,
      max_tokens: 100,
      messages: [{ role: "user", content: QUESTION }],
      tools: [
        {
          type: "function",
          function: {
            name: "get_weather",
            parse: JSON.parse,
            parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
            function: ({ city }) => (cities.push(city), `It is sunny in ${city}.`),
          },
        },
      ],
    });
    assert.equal(typeof (await runner.finalContent()), "string");
    assert.equal(cities[0], "Paris");
  },
  streaming: async () => {
    const stream = client.chat.completions.stream(asked);
    let parts = 0;
    for await (const _ of stream) parts += 1;
    assert.equal((await stream.finalChatCompletion()).choices[0].message.parsed.age, 36);
    assert.ok(parts > 2);
  },
  error: () => rejects(client.chat.completions.create({ model: UNKNOWN, messages: asked.messages })),
});
