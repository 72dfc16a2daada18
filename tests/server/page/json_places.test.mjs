import assert from "node:assert/strict";
import { test } from "node:test";
import { lineAndColumn, locate, offsetOf, readJson } from "../../../server/page/json_places.mjs";

const SOURCE = `{
  "type": "object",
  "properties": {
    "a/b": {"type": "string", "pattern": "^x$"},
    "list": [1, [true, null], {"k": -0.5}]
  }
}`;

/** Every pointer of a value, by walking it. */
function* pointers(value, pointer = "") {
  yield [pointer, value];
  if (value !== null && typeof value === "object") {
    for (const [key, inner] of Object.entries(value)) yield* pointers(inner, `${pointer}/${key.replaceAll("~", "~0").replaceAll("/", "~1")}`);
  }
}

test("every value is found at its place", () => {
  const { value, places, error } = readJson(SOURCE);
  assert.equal(error, null);
  assert.deepEqual(value, JSON.parse(SOURCE));
  const all = [...pointers(value)];
  assert.equal(places.size, all.length);
  for (const [pointer, inner] of all) {
    const { start, end } = places.get(pointer);
    assert.deepEqual(JSON.parse(SOURCE.slice(start, end)), inner, pointer);
  }
});

test("it takes and refuses what JSON.parse does", () => {
  const texts = ["", " ", "{", "[1,]", '{"a":1,}', '{"a" 1}', "{a:1}", "[1 2]", "01", '"\\x"', '"a', "tru", "[]]", "nul", "1 2", "-", "[", '{"a":', "[[[]]]", '{"a":{}}', "1e5", '"\\u12"'];
  for (const text of texts) {
    let isJson = true;
    try {
      JSON.parse(text);
    } catch {
      isJson = false;
    }
    const { error } = readJson(text);
    assert.equal(error === null, isJson, JSON.stringify(text));
    if (error) assert.ok(error.offset >= 0 && error.offset <= text.length);
  }
});

test("errors are where they are", () => {
  const at = (text) => lineAndColumn(text, readJson(text).error.offset);
  assert.deepEqual(at('{\n  "a": 1\n  "b": 2\n}'), { line: 3, column: 3 });
  assert.deepEqual(at('{\n  "a": tru\n}'), { line: 2, column: 8 });
  assert.deepEqual(at('{"a": 1, "a": 2}'), { line: 1, column: 10 });
});

test("a path of the server leads to its place, with its keyword, or to what is around it", () => {
  const { places } = readJson(SOURCE);
  const shown = (path, keyword) => {
    const { start, end } = locate(places, path, keyword);
    return SOURCE.slice(start, end);
  };
  assert.equal(shown("#/properties/a~1b", "pattern"), '"pattern": "^x$"');
  assert.equal(shown("#/properties/a~1b"), '"a/b": {"type": "string", "pattern": "^x$"}');
  assert.equal(shown("#/properties/list/2/k"), '"k": -0.5');
  assert.equal(shown("#/properties/list/9/none", "x"), '"list": [1, [true, null], {"k": -0.5}]');
  assert.equal(shown("#/properties/a%7E1b"), shown("#/properties/a~1b"));
  assert.equal(shown("#"), SOURCE);
});

test("offsets and lines with columns are two names of one thing", () => {
  const text = "ab\n\n😀c\nd";
  for (const [line, column, offset] of [[1, 1, 0], [1, 3, 2], [2, 1, 3], [3, 1, 4], [3, 2, 6], [4, 1, 8], [4, 2, 9]]) {
    assert.equal(offsetOf(text, line, column), offset);
    assert.deepEqual(lineAndColumn(text, offset), { line, column });
  }
  assert.equal(offsetOf(text, 9, 1), text.length);
});
