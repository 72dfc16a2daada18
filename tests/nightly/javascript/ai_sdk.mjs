import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import { MODEL, QUESTION, TEXT, UNKNOWN, URL, rejects, runChecks } from "./checks.mjs";

const require = createRequire(`${process.env.MODULES}/`);
const load = (name) => import(pathToFileURL(require.resolve(name)).href);
const { Output, generateText, stepCountIs, streamText, tool } = await load("ai");
const { createAnthropic } = await load("@ai-sdk/anthropic");
const { createOpenAI } = await load("@ai-sdk/openai");
const { createOpenAICompatible } = await load("@ai-sdk/openai-compatible");
const { z } = await load("zod");

const provider = createOpenAICompatible({ name: "maskwright", baseURL: URL, supportsStructuredOutputs: true });
const Person = z.object({ name: z.string(), age: z.number().int() });
const asked = { model: provider(MODEL), maxRetries: 0, maxOutputTokens: 100 };
const others = {
  responses: createOpenAI({ baseURL: URL, apiKey: "none" }).responses,
  messages: createAnthropic({ baseURL: URL, apiKey: "none" }),
};
const cities = [];
const tools = {
  get_weather: tool({ description: "The weather in a city", inputSchema: z.object({ city: z.string() }), execute: async ({ city }) => (cities.push(city), `It is sunny in ${city}.`) }),
};

/** A loop of tools over another interface, streamed. */
const streamedLoop = async (provider) => {
  const before = cities.length;
  const result = streamText({ ...asked, model: provider(MODEL), prompt: QUESTION, tools, stopWhen: stepCountIs(4) });
  for await (const part of result.fullStream) if (part.type === "error") throw part.error;
  assert.equal(cities[before], "Paris");
  assert.ok((await result.steps).length > 1 && (await result.totalUsage).outputTokens > 0);
};

await runChecks({
  "typed output": async () => {
    const { output } = await generateText({ ...asked, prompt: TEXT, output: Output.object({ schema: Person }) });
    assert.deepEqual(output, { name: "Ada Lovelace", age: 36 });
  },
  "tools in a loop": async () => {
    const { steps } = await generateText({ ...asked, prompt: QUESTION, tools, stopWhen: stepCountIs(4) });
    assert.equal(cities[0], "Paris");
    assert.ok(steps.length > 1);
  },
  "tools beside typed output": async () => {
    const { steps } = await generateText({ ...asked, prompt: TEXT, tools, output: Output.object({ schema: Person }), stopWhen: stepCountIs(4) });
    assert.ok(steps.length > 0);
  },
  streaming: async () => {
    const result = streamText({ ...asked, prompt: TEXT, output: Output.object({ schema: Person }) });
    let parts = 0;
    for await (const _ of result.partialOutputStream) parts += 1;
    assert.equal((await result.output).age, 36);
    assert.ok(parts > 1);
  },
  "a streamed loop of tools, responses": () => streamedLoop(others.responses),
  "a streamed loop of tools, messages": () => streamedLoop(others.messages),
  error: () => rejects(generateText({ ...asked, model: provider(UNKNOWN), prompt: "x" })),
});
