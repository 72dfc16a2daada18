import assert from "node:assert/strict";
import { test } from "node:test";
import { frame, jsonError, placed } from "../../../server/page/error_place.mjs";
import { EXAMPLES } from "../../../server/page/examples.mjs";
import { marked, spans } from "../../../server/page/highlight.mjs";
import { Meter, milliseconds, percent } from "../../../server/page/meters.mjs";
import { childSchema, membersOf, typeLabel } from "../../../server/page/outline.mjs";
import { asCurl, requestOf } from "../../../server/page/request.mjs";
import { Run } from "../../../server/page/run.mjs";
import { EventSplitter } from "../../../server/page/sse.mjs";
import { commonReason, reasonTold, spelled } from "../../../server/page/token_text.mjs";

test("events come out whole, however their text is cut", () => {
  const text = 'data: {"a":1}\n\n: keep-alive\n\ndata: two\ndata: lines\n\nevent: x\r\ndata:[DONE]\r\n\r\n';
  for (let cut = 0; cut <= text.length; cut += 1) {
    const splitter = new EventSplitter();
    assert.deepEqual([...splitter.feed(text.slice(0, cut)), ...splitter.feed(text.slice(cut))], ['{"a":1}', "two\nlines", "[DONE]"]);
  }
});

test("highlighting changes no character", () => {
  const sources = { json: EXAMPLES.schema[0].source, regex: EXAMPLES.regex[1].source, gbnf: EXAMPLES.grammar[0].source, lark: 'a: "x" /y+/ // z\n%import common.WS', ebnf: "a = 'x' | [0-9]; (* c *)", plain: "a\nb" };
  for (const [language, source] of Object.entries(sources)) {
    const found = spans(source, language);
    assert.equal(found.map(({ text }) => text).join(""), source);
    for (let start = 0; start < source.length; start += 7) {
      const parts = marked(found, { start, end: start + 5 });
      assert.equal(parts.map(({ text }) => text).join(""), source);
      assert.equal(parts.filter(({ isMarked }) => isMarked).map(({ text }) => text).join(""), source.slice(start, start + 5));
    }
  }
  assert.ok(spans('{"a": 1}', "json").some(({ text, kind }) => text === '"a"' && kind === "name"));
});

const FORM = {
  kind: "schema", source: '{"type": "integer"}', language: "gbnf", toolChoice: "required", system: "", turns: [], prompt: "x", endpoint: "chat", model: "m",
  temperature: 0, topP: null, topK: null, minP: null, seed: 3, maxTokens: 9, details: true,
};

test("a form becomes a request", () => {
  const { path, body } = requestOf(FORM);
  assert.equal(path, "v1/chat/completions");
  assert.deepEqual(body.response_format.json_schema.schema, { type: "integer" });
  assert.deepEqual([body.temperature, body.seed, body.max_tokens, "top_p" in body], [0, 3, 9, false]);
  assert.deepEqual(body.maskwright, { version: 1, tokens: true, fields: true, candidates: 8 });
  assert.equal("maskwright" in requestOf({ ...FORM, details: false }).body, false);
  assert.equal(requestOf({ ...FORM, maxCandidates: 3 }).body.maskwright.candidates, 3);
  const text = requestOf({ ...FORM, endpoint: "completions", kind: "regex", source: "a+\n" });
  assert.deepEqual([text.path, text.body.prompt, text.body.response_format.pattern], ["v1/completions", "x", "a+"]);
  assert.deepEqual(requestOf({ ...FORM, kind: "choices", source: "a\n\nb\n" }).body.response_format.choice, ["a", "b"]);
  assert.equal(requestOf({ ...FORM, kind: "free" }).body.response_format, undefined);
});

test("bare functions become tools, others stay what they are", () => {
  const wrapped = { type: "function", function: { name: "g" } };
  const { path, body } = requestOf({ ...FORM, kind: "tools", endpoint: "completions", source: JSON.stringify([{ name: "f" }, wrapped]) });
  assert.equal(path, "v1/chat/completions");
  assert.deepEqual(body.tools, [{ type: "function", function: { name: "f" } }, wrapped]);
});

test("a command quotes what a shell would read", () => {
  const command = asCurl("http://x/v1", { a: "it's" }, true);
  assert.ok(command.includes(`it'\\''s`) && command.includes("$MASKWRIGHT_API_KEY"));
});

test("examples of JSON are JSON", () => {
  for (const { source } of [...EXAMPLES.schema, ...EXAMPLES.tools]) assert.equal(jsonError(source), null);
});

test("errors of JSON are shown where they are", () => {
  const told = jsonError('{"a": 1\n"b": 2}');
  assert.deepEqual([told.line, told.column, told.range], [2, 1, { start: 8, end: 9 }]);
});

test("errors of a schema stand at their path, those of a pattern inside its string", () => {
  const source = '{"properties": {"a": {"type": "strin", "pattern": "x(b"}}}';
  const error = { message: "m", param: "response_format.json_schema.schema", path: "#/properties/a", keyword: "type", reason: "no such type\n  frame" };
  const told = placed(error, { kind: "schema", source });
  assert.equal(source.slice(told.range.start, told.range.end), '"type": "strin"');
  assert.equal(told.reason, "no such type");
  const inside = placed({ ...error, keyword: "pattern", line: 1, column: 2 }, { kind: "schema", source });
  assert.equal(source.slice(inside.range.start, inside.range.end), "(");
});

test("errors of tools are found with and without the wrapping", () => {
  const error = { message: "m", param: "tools", path: "#/tools/0/function/parameters/properties/a", keyword: "type" };
  for (const source of ['[{"parameters": {"properties": {"a": {"type": 1}}}}]', '[{"function": {"parameters": {"properties": {"a": {"type": 1}}}}}]']) {
    const told = placed(error, { kind: "tools", source });
    assert.equal(source.slice(told.range.start, told.range.end), '"type": 1');
  }
});

test("errors of text stand at line and column, others nowhere in it", () => {
  const told = placed({ message: "m", param: "response_format.grammar", line: 2, column: 3 }, { kind: "grammar", source: "a ::= b\nb := c" });
  assert.deepEqual(told.range, { start: 10, end: 11 });
  assert.equal(placed({ message: "m", param: "max_tokens", code: "max_tokens_too_small" }, { kind: "grammar", source: "a" }).range, null);
  assert.equal(frame("a ::= b\nb := c", 2, 3), "2 │ b := c\n      ▲");
});

test("figures of a run", () => {
  const meter = new Meter(1000);
  assert.deepEqual(meter.figures(), { tokens: 0, rate: null, firstToken: null, forced: null, masked: null, compile: null });
  meter.head({ constraint: { compile_seconds: 0.002 } });
  meter.tokens([{ kind: "forced", kept_mass: null }], 1100);
  meter.tokens([{ kind: "free", kept_mass: 0.5 }, { kind: "forced", kept_mass: 1 }], 1600);
  assert.deepEqual(meter.figures(), { tokens: 3, rate: 4, firstToken: 100, forced: 2 / 3, masked: 0.25, compile: 2 });
  assert.deepEqual([0, 0.5, 0.99995, 1, 1e-6, null].map(percent), ["0 %", "50.0 %", "> 99.99 %", "100 %", "< 0.01 %", "–"]);
  assert.deepEqual([1.24, 80, 2000, null].map(milliseconds), ["1.2 ms", "80 ms", "2.00 s", "–"]);
});

test("an outline knows types, members and what is below", () => {
  const schema = { properties: { a: { $ref: "#/$defs/x" }, b: { items: { enum: ["p", "q"] }, type: "array", maxItems: 2 } }, required: ["b"], $defs: { x: { allOf: [{ properties: { c: {} } }] } } };
  assert.deepEqual(membersOf(schema, schema).map(({ name, isRequired }) => [name, isRequired]), [["a", false], ["b", true]]);
  assert.deepEqual(membersOf(childSchema(schema, schema, "a"), schema).map(({ name }) => name), ["c"]);
  assert.equal(typeLabel(childSchema(schema.properties.b, schema, 0), schema), '"p" | "q"');
  assert.equal(typeLabel(schema.properties.b, schema), "array …2");
  assert.equal(typeLabel({ type: "integer", minimum: 0, maximum: 9 }, {}), "integer 0…9");
  const circle = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } };
  assert.equal(typeof typeLabel(circle, circle), "string");
});

test("a run joins its events", () => {
  const run = new Run({ isJson: true, started: 0 });
  const token = (text, extra = {}) => ({ text, token: text, kind: "forced", kept_mass: 1, ...extra });
  const chunk = (content, tokens) => ({ choices: [{ delta: { content }, maskwright: { version: 1, tokens } }] });
  run.read({ choices: [], maskwright: { vocabulary_size: 9, constraint: { compile_seconds: 1 } } }, 1);
  run.read(chunk('{"a":', [token('{"'), token("a"), token('":')]), 2);
  assert.deepEqual(run.tokens.map(({ place }) => place), ["$", "$", "$"]);
  run.read(chunk("12", [token("12")]), 3);
  assert.equal(run.tokens[0].place, "$.a");
  run.read({ choices: [{ delta: { content: "}" }, maskwright: { tokens: [token("}")] } }] }, 4);
  run.read({ choices: [{ delta: {}, finish_reason: "stop" }], usage: null }, 4);
  run.read({ choices: [], usage: { completion_tokens: 5 } }, 5);
  run.finish();
  assert.deepEqual([run.text, run.finishReason, run.usage.completion_tokens, run.vocabularySize], ['{"a":12}', "stop", 5, 9]);
  assert.equal(run.reader.root.children[0].text, "12");
});

test("a run without details reads the content", () => {
  const run = new Run({ isJson: true, started: 0 });
  run.read({ choices: [{ text: '{"a":1' }] }, 1);
  run.read({ choices: [{ text: "}" }] }, 2);
  assert.equal(run.reader.root.isOpen, false);
});

test("calls are told apart", () => {
  const run = new Run({ isJson: false, started: 0 });
  const call = (index, name, text) => ({ choices: [{ delta: { tool_calls: [{ index, function: { ...(name && { name }), arguments: text } }] } }] });
  for (const event of [call(0, "f", ""), call(0, null, '{"x":'), call(0, null, "1}"), call(1, "g", "{}")]) run.read(event, 1);
  assert.deepEqual(run.calls.map(({ name, text }) => [name, text]), [["f", '{"x":1}'], ["g", "{}"]]);
});

test("tokens are spelled so that they can be seen, reasons name the character", () => {
  assert.deepEqual([" a ", "\n", "", null, "a b"].map(spelled), ["␣a␣", "↵", "∅", "end of text", "a b"]);
  assert.equal(reasonTold({ token: "éx", dies_at: 2, expected: "'y'" }), "“é” fits, then “x” cannot follow; expected 'y'");
  assert.equal(reasonTold({ token: "é", dies_at: 1, expected: "" }), "“é” cannot follow here");
  assert.equal(reasonTold({ token: null, reason: "EOS ends the text" }), "EOS ends the text");
  const candidates = [{ allowed: true }, { allowed: false, dies_at: 0, expected: "'h'", token: "x" }];
  assert.ok(commonReason(candidates).includes("'h'"));
  assert.equal(reasonTold(candidates[1], true), null);
});
