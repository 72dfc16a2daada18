/** JSON text with the place of every value, so that errors can be shown where they are. */

const STRING = /"(?:[^"\\\u0000-\u001f]|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*"/y;
const SCALAR = /-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null/y;
const WHITE = /[ \t\r\n]*/y;

/**
 * {value, places, error}: places maps a JSON pointer to {start, end, keyStart}; error is null or {offset, message}, and then
 * value is undefined.
 */
export function readJson(text) {
  const places = new Map();
  const containers = []; // {close, pointer, index, key}
  let at = 0;
  let expects = "value";

  const white = () => {
    at += match(WHITE, text, at).length;
  };
  const fail = (message, offset = at) => ({ value: undefined, places, error: { offset, message } });
  const pointer = () => containers.map((container) => `/${escaped(container.key)}`).join("");

  for (;;) {
    white();
    const top = containers.at(-1);
    if (at >= text.length) {
      if (expects === "end") return { value: JSON.parse(text), places, error: null };
      return fail(top ? `the text ends before “${top.close}”` : "a value is missing", text.trimEnd().length);
    }
    const char = text[at];
    if (expects === "end") return fail("there is something behind the value");
    if (expects === "comma") {
      if (char === top.close) {
        containers.pop();
        at += 1;
        const place = places.get(pointer());
        place.end = at;
        expects = containers.length ? "comma" : "end";
      } else if (char === ",") {
        at += 1;
        expects = top.close === "]" ? "value" : "key";
        if (top.close === "]") top.key += 1;
      } else return fail(`“,” or “${top.close}” is expected here`);
      continue;
    }
    if (top && char === top.close && top.isEmpty) {
      containers.pop();
      at += 1;
      places.get(pointer()).end = at;
      expects = containers.length ? "comma" : "end";
      continue;
    }
    if (top) top.isEmpty = false;
    if (expects === "key") {
      const key = match(STRING, text, at);
      if (!key) return fail(char === "}" ? "no comma before “}”" : "a name in double quotes is expected here");
      top.key = JSON.parse(key);
      top.keyStart = at;
      if (places.has(pointer())) return fail(`the name ${key} comes twice`);
      at += key.length;
      white();
      if (text[at] !== ":") return fail("“:” is expected here", at);
      at += 1;
      expects = "value";
      continue;
    }
    const place = { start: at, end: at, keyStart: top?.close === "}" ? top.keyStart : at };
    places.set(pointer(), place);
    if (char === "{" || char === "[") {
      at += 1;
      containers.push({ close: char === "{" ? "}" : "]", key: char === "{" ? null : 0, isEmpty: true });
      expects = char === "{" ? "key" : "value";
      continue;
    }
    const scalar = match(char === '"' ? STRING : SCALAR, text, at);
    if (!scalar) return fail(char === '"' ? "this string has no end, or a wrong escape" : "a value is expected here");
    at += scalar.length;
    place.end = at;
    expects = containers.length ? "comma" : "end";
  }
}

/** {start, end} of what a schema path such as `#/properties/name` and a keyword below it name, or of the nearest value around it. */
export function locate(places, path, keyword = null) {
  let pointer = unescapedFragment(path.replace(/^#/, ""));
  const inner = keyword === null ? undefined : places.get(`${pointer}/${escaped(keyword)}`);
  if (inner) return { start: inner.keyStart, end: inner.end, valueStart: inner.start };
  for (;;) {
    const place = places.get(pointer);
    if (place) return { start: place.keyStart, end: place.end, valueStart: place.start };
    if (!pointer) return { start: 0, end: 0, valueStart: 0 };
    pointer = pointer.slice(0, pointer.lastIndexOf("/"));
  }
}

/** Line and column, both from 1, the column in characters. */
export function lineAndColumn(text, offset) {
  const before = text.slice(0, offset).split("\n");
  return { line: before.length, column: [...before.at(-1)].length + 1 };
}

/** The offset of a line and a column, both from 1. */
export function offsetOf(text, line, column) {
  const lines = text.split("\n");
  if (line > lines.length) return text.length;
  const before = lines.slice(0, line - 1).reduce((sum, each) => sum + each.length + 1, 0);
  return before + [...lines[line - 1]].slice(0, column - 1).join("").length;
}

function match(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text)?.[0] ?? "";
}

function escaped(key) {
  return String(key).replaceAll("~", "~0").replaceAll("/", "~1");
}

function unescapedFragment(pointer) {
  try {
    return decodeURIComponent(pointer);
  } catch {
    return pointer;
  }
}
