/** Codex itself, without a terminal, between it and the server a proxy that notes what is sent. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, mkdtemp, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { MODEL, SERVER, TEXT, UNKNOWN, runChecks } from "./checks.mjs";

const folder = await mkdtemp(join(tmpdir(), "codex-"));
const home = join(folder, "home");
const work = join(folder, "work");
await mkdir(home);
await mkdir(work);
const schema = join(folder, "schema.json");
const PERSON = { name: { type: "string", maxLength: 30 }, age: { type: "integer", minimum: 0, maximum: 150 } };
await writeFile(schema, JSON.stringify({ type: "object", properties: PERSON, required: ["name", "age"], additionalProperties: false }));
await writeFile(join(folder, "short.md"), "Be brief.");

/** What is sent and answered. `change` changes the next body; all others call nothing: what the demonstration model would have run is anything. */
const proxy = { sent: [], answers: [], change: null };
const server = createServer(async (asked, answer) => {
  const pieces = [];
  for await (const piece of asked) pieces.push(piece);
  const body = pieces.length ? JSON.parse(Buffer.concat(pieces)) : null;
  if (body) (proxy.change ?? callingNothing)(body);
  proxy.change = null;
  proxy.sent.push(body);
  const headers = { "content-type": "application/json" };
  const told = await fetch(SERVER + asked.url, { method: asked.method, headers, body: body && JSON.stringify(body) });
  const text = await told.text();
  proxy.answers.push({ status: told.status, text });
  answer.writeHead(told.status, { "content-type": told.headers.get("content-type") });
  answer.end(text);
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
await writeFile(
  join(home, "config.toml"),
  `model_provider = "here"
model_instructions_file = ${JSON.stringify(join(folder, "short.md"))}
check_for_update_on_startup = false
include_permissions_instructions = false
include_environment_context = false
include_apps_instructions = false
[skills]
include_instructions = false
[analytics]
enabled = false
[model_providers.here]
name = "here"
base_url = "http://127.0.0.1:${server.address().port}/v1"
wire_api = "responses"
request_max_retries = 0
stream_max_retries = 0
`,
);

/** The events of one run, and what was sent meanwhile. */
async function codex(options, change = null) {
  Object.assign(proxy, { sent: [], answers: [], change });
  const program = join(process.env.MODULES, "node_modules", ".bin", "codex");
  const env = { ...process.env, HOME: home, CODEX_HOME: home };
  const started = ["exec", "--json", "--skip-git-repo-check", "-c", 'sandbox_mode="danger-full-access"'];
  const child = spawn(program, [...started, ...options], { cwd: work, env, stdio: ["ignore", "pipe", "ignore"] });
  let out = "";
  child.stdout.on("data", (piece) => (out += piece));
  await once(child, "close");
  const events = out.split("\n").filter((line) => line.startsWith("{")).map((line) => JSON.parse(line));
  return { events, sent: proxy.sent, answers: proxy.answers };
}

/** The items of a kind that have ended. */
const items = ({ events }, kind) => events.filter((event) => event.type === "item.completed" && event.item.type === kind).map((event) => event.item);
const isDone = ({ events }) => assert(events.some((event) => event.type === "turn.completed"), JSON.stringify(events.at(-1)));
const outputs = (body) => body.input.filter((item) => item.type === "function_call_output");

/** Nor does it end by itself, unless it has a schema. */
function callingNothing(body) {
  body.tool_choice = "none";
  if (!body.text?.format) body.regex = "[A-Z][a-z ]{20,40}[.]";
}

/** Have the model call this function with these arguments. */
function calling(tools, choice, fixed) {
  return (body) => {
    const tool = tools(body).find((each) => each.name === choice.name);
    const properties = Object.fromEntries(Object.entries(fixed).map(([name, value]) => [name, { const: value }]));
    tool.parameters = { type: "object", properties, required: Object.keys(fixed), additionalProperties: false };
    body.tool_choice = { type: "function", ...choice };
  };
}

await runChecks({
  "typed output": async () => {
    const run = await codex(["-m", MODEL, "--output-schema", schema, TEXT]);
    isDone(run);
    const { name, age } = JSON.parse(items(run, "agent_message").at(-1).text);
    assert(typeof name === "string" && Number.isInteger(age));
  },
  "tools in a loop": async () => {
    const run = await codex(["-m", MODEL, "Greet."], calling((body) => body.tools, { name: "exec_command" }, { cmd: "echo hello" }));
    isDone(run);
    assert.equal(items(run, "command_execution")[0].aggregated_output, "hello\n");
    assert(run.sent.length >= 2 && JSON.stringify(outputs(run.sent[1])).includes("hello"));
  },
  "tools in a namespace": async () => {
    const called = { namespace: "multi_agent_v1", name: "close_agent" };
    const inner = (body) => body.tools.find((tool) => tool.name === called.namespace).tools;
    const run = await codex(["-m", MODEL, "Close it."], calling(inner, called, { target: "nobody" }));
    isDone(run);
    const call = run.sent[1].input.find((item) => item.type === "function_call");
    assert.deepEqual([call.namespace, call.name], [called.namespace, called.name]);
    assert(JSON.stringify(outputs(run.sent[1])).includes("nobody") && !JSON.stringify(outputs(run.sent[1])).includes("unsupported call"));
  },
  streaming: async () => {
    const run = await codex(["-m", MODEL, "Say hello."]);
    isDone(run);
    assert(run.answers[0].text.split("response.output_text.delta").length > 3);
    assert(items(run, "agent_message").length === 1);
  },
  "a long history": async () => {
    const lengths = [];
    for (let turn = 0; turn < 3; turn++) {
      const run = await codex(["resume", "--last", "-m", MODEL, "And now?"]);
      isDone(run);
      lengths.push(run.sent[0].input.length);
    }
    assert(lengths[0] < lengths[1] && lengths[1] < lengths[2], `${lengths}`);
  },
  error: async () => {
    const { events } = await codex(["-m", UNKNOWN, "x"]);
    assert(JSON.stringify(events.filter((event) => /error|failed/.test(event.type))).includes(`there is no model '${UNKNOWN}'`), JSON.stringify(events));
  },
});
