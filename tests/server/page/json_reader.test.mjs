import assert from "node:assert/strict";
import { test } from "node:test";
import { JsonReader } from "../../../server/page/json_reader.mjs";

/** The value of a tree. */
function valueOf(node) {
  if (node.type === "object") return Object.fromEntries(node.children.map((child) => [child.key, valueOf(child)]));
  if (node.type === "array") return node.children.map(valueOf);
  return node.type === "string" ? node.text : JSON.parse(node.text);
}

const TEXTS = [
  '{"name":"Ada","age":36,"tags":["a","b"],"nested":{"x":{"y":[[],{}]}},"ok":true,"none":null}',
  ' [ 1 , -2.5e3 , "a\\n\\u00e9\\"\\\\ \\ud83d\\ude00" , false ] ',
  '"text"',
  "42",
  "[]",
  "{}",
  '{"":0,"a":{"":[]}}',
];

for (const text of TEXTS) {
  test(`reads ${text} however it is cut`, () => {
    for (let cut = 0; cut <= text.length; cut += 1) {
      const reader = new JsonReader();
      reader.feed(text.slice(0, cut));
      reader.feed(text.slice(cut));
      reader.finish();
      assert.equal(reader.failed, false);
      assert.deepEqual(valueOf(reader.root), JSON.parse(text));
      assert.equal(reader.root.isOpen, false);
    }
  });
}

test("what is open says so", () => {
  const reader = new JsonReader();
  reader.feed('{"name":"Ad');
  assert.equal(reader.root.isOpen, true);
  assert.deepEqual(reader.root.children.map(({ key, text, isOpen }) => [key, text, isOpen]), [["name", "Ad", true]]);
});

test("the path is where the text has come to", () => {
  const reader = new JsonReader();
  const paths = [];
  for (const piece of ['{"a', '":', '{"b c":[', "1", ",", '"x', '"', "]", "}", ',"d":', "2"]) {
    reader.feed(piece);
    paths.push(reader.path);
  }
  assert.deepEqual(paths, ["$", "$.a", '$.a["b c"][0]', '$.a["b c"][0]', '$.a["b c"][1]', '$.a["b c"][1]', '$.a["b c"][2]', "$.a", "$", "$.d", "$.d"]);
});

test("what is not JSON ends the reading", () => {
  for (const text of ["{a:1}", "[1 2]", "{} {}", "yes", '{"a" 1}', "[1}", "]"]) {
    const reader = new JsonReader();
    reader.feed(text);
    assert.equal(reader.failed, true, text);
  }
});
