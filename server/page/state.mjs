/** What is asked, as a link carries it and as a tab keeps it over a reload. Keys of a server are no part of it. */

const MARK = "#s=";
const KEPT = "maskwright-request";
const KINDS = ["schema", "regex", "grammar", "choices", "tools", "free"];

const isText = (value) => typeof value === "string";
const isNumber = (value) => value === null || Number.isFinite(value);
const isOneOf = (...names) => (value) => names.includes(value);

// What belongs to one kind of constraint, and what to all. What a link does not name is as it stands on the page.
const OF_KIND = { example: isText, source: isText, language: isOneOf("gbnf", "lark", "ebnf"), system: isText, turns: areTurns, prompt: isText };
const OF_ALL = {
  toolChoice: isOneOf("required", "auto"),
  endpoint: isOneOf("chat", "completions"),
  temperature: isNumber,
  topP: isNumber,
  topK: isNumber,
  minP: isNumber,
  seed: isNumber,
  maxTokens: isNumber,
  details: (value) => typeof value === "boolean",
};

/** A link's fragment for {kind, one, all}: the state of one kind, and of what all share. */
export function linkOf(state) {
  const bytes = new TextEncoder().encode(JSON.stringify({ version: 1, ...state }));
  return MARK + btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join("")).replaceAll("+", "-").replaceAll("/", "_").replace(/=+$/, "");
}

/** {kind, one, all} of a fragment; null when it is none of ours. Raises an Error when it cannot be read. */
export function readLink(fragment) {
  if (!fragment.startsWith(MARK)) return null;
  const text = atob(fragment.slice(MARK.length).replaceAll("-", "+").replaceAll("_", "/"));
  const read = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(text, (char) => char.charCodeAt(0))));
  if (read?.version !== 1 || !KINDS.includes(read.kind)) throw new Error("another version's link");
  return { kind: read.kind, one: fitting(read.one, OF_KIND), all: fitting(read.all, OF_ALL) };
}

/** Keeps {kind, kept: {kind: one}, all} in this tab, beside the link that the address had. */
export function keep(state, fragment) {
  try {
    sessionStorage.setItem(KEPT, JSON.stringify({ fragment, ...state }));
  } catch {
    // a browser that keeps nothing, or has no more room: the page works on
  }
}

/** What this tab kept, with the `fragment` beside it; null when there is nothing. */
export function recall() {
  try {
    const read = JSON.parse(sessionStorage.getItem(KEPT));
    if (!KINDS.includes(read.kind)) return null;
    const kept = Object.fromEntries(KINDS.map((kind) => [kind, fitting(read.kept[kind], OF_KIND)]));
    return { fragment: read.fragment, kind: read.kind, kept, all: fitting(read.all, OF_ALL) };
  } catch {
    return null;
  }
}

/** The members of a value that are known and as they have to be; a link may come from anybody. */
function fitting(value, checks) {
  return Object.fromEntries(Object.entries(checks).flatMap(([name, check]) => (check(value?.[name]) ? [[name, value[name]]] : [])));
}

/** Turns as a request has them: of texts, of calls, and of their results. */
function areTurns(value) {
  return Array.isArray(value) && value.every((turn) => isText(turn?.content) && (turn.role === "user" || isReply(turn) || isResult(turn)));
}

function isReply({ role, tool_calls: calls = [] }) {
  return role === "assistant" && Array.isArray(calls) && calls.every((call) => isText(call?.id) && isText(call.function?.name) && isText(call.function.arguments));
}

function isResult({ role, tool_call_id: id }) {
  return role === "tool" && isText(id);
}
