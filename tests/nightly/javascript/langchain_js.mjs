import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { MODEL, QUESTION, TEXT, UNKNOWN, URL, rejects, runChecks } from "./checks.mjs";

const require = createRequire(`${process.env.MODULES}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { ChatOpenAI } = await load("@langchain/openai");
const { tool } = await load("@langchain/core/tools");
const { HumanMessage } = await load("@langchain/core/messages");
const { z } = await load("zod");

const chat = (model = MODEL) => new ChatOpenAI({ model, apiKey: "none", configuration: { baseURL: URL }, maxRetries: 0, maxTokens: 100 });
const Person = z.object({ name: z.string(), age: z.number().int() });

await runChecks({
  "typed output": async () => {
    for (const method of ["jsonSchema", "functionCalling"]) {
      assert.equal((await chat().withStructuredOutput(Person, { method }).invoke(TEXT)).age, 36);
    }
  },
  "tools in a loop": async () => {
    const cities = [];
    const weather = tool(({ city }) => (cities.push(city), `It is sunny in ${city}.`), { name: "get_weather", description: "The weather in a city", schema: z.object({ city: z.string() }) });
    const messages = [new HumanMessage(QUESTION)];
    let reply;
    for (let turn = 0; turn < 4; turn += 1) {
      reply = await chat().bindTools([weather]).invoke(messages);
      messages.push(reply);
      if (!reply.tool_calls.length) break;
      for (const call of reply.tool_calls) messages.push(await weather.invoke(call));
    }
    assert.equal(cities[0], "Paris");
    assert.equal(reply.tool_calls.length, 0);
  },
  streaming: async () => {
    let parts = 0;
    for await (const _ of await chat().stream(TEXT)) parts += 1;
    assert.ok(parts > 2);
  },
  error: () => rejects(chat(UNKNOWN).invoke("x")),
});
