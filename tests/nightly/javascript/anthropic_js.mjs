import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { MODEL, QUESTION, SERVER, TEXT, UNKNOWN, rejects, runChecks } from "./checks.mjs";

const require = createRequire(`${process.env.MODULES}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { default: Anthropic } = await load("@anthropic-ai/sdk");

const client = new Anthropic({ baseURL: SERVER, apiKey: "none", maxRetries: 0 });
const person = { type: "object", properties: { name: { type: "string" }, age: { type: "integer" } }, required: ["name", "age"], additionalProperties: false };
const asked = { model: MODEL, max_tokens: 100, messages: [{ role: "user", content: TEXT }] };
const typed = { ...asked, output_config: { format: { type: "json_schema", schema: person } } };
const weather = { name: "get_weather", input_schema: { type: "object", properties: { city: { type: "string" } }, required: ["city"] } };

await runChecks({
  "typed output": async () => {
    const { content } = await client.messages.create(typed);
    assert.deepEqual(JSON.parse(content[0].text), { name: "Ada Lovelace", age: 36 });
  },
  "tools in a loop": async () => {
    const messages = [{ role: "user", content: QUESTION }];
    const cities = [];
    let reply;
    do {
      reply = await client.messages.stream({ ...asked, messages, tools: [weather] }).finalMessage();
      const uses = reply.content.filter((block) => block.type === "tool_use");
      cities.push(...uses.map((block) => block.input.city));
      messages.push({ role: "assistant", content: reply.content });
      messages.push({ role: "user", content: uses.map((block) => ({ type: "tool_result", tool_use_id: block.id, content: `It is sunny in ${block.input.city}.` })) });
    } while (reply.stop_reason === "tool_use" && messages.length < 9);
    assert.equal(cities[0], "Paris");
    assert.equal(reply.stop_reason, "end_turn");
  },
  streaming: async () => {
    const stream = client.messages.stream(typed);
    let text = "";
    stream.on("text", (piece) => (text += piece));
    const message = await stream.finalMessage();
    assert.equal(JSON.parse(text).age, 36);
    assert.ok(message.usage.output_tokens > 0);
  },
  error: () => rejects(client.messages.create({ ...asked, model: UNKNOWN })),
});
