/** Where in the editor an error of the server belongs, and how it is told. */

import { lineAndColumn, locate, offsetOf, readJson } from "./json_places.mjs";

/**
 * {title, reason, instead, range, line, column, path}: range is {start, end} in the editor's text, null when the error is not about
 * it. `error` is the error object of an answer.
 */
export function placed(error, form) {
  const told = {
    title: titleOf(error),
    reason: (error.reason ?? error.message).split("\n")[0],
    instead: error.instead ?? null,
    path: error.path ?? null,
    range: null,
    line: null,
    column: null,
  };
  if (!isAboutEditor(error)) return told;
  const range = form.kind === "schema" || form.kind === "tools" ? inJson(error, form) : inText(error, form.source);
  return range ? { ...told, range, ...lineAndColumn(form.source, range.start) } : told;
}

/** The same for text that is not JSON at all, found before it is sent; null when it is JSON. */
export function jsonError(source) {
  const { error } = readJson(source);
  if (!error) return null;
  const start = Math.min(error.offset, source.length);
  return {
    title: "This is not JSON",
    reason: error.message,
    instead: null,
    path: null,
    range: { start, end: Math.min(start + 1, source.length) },
    ...lineAndColumn(source, start),
  };
}

/** The line of an error with a caret under the place, as compilers show it. */
export function frame(source, line, column) {
  const text = [...(source.split("\n")[line - 1] ?? "")];
  const first = Math.max(0, Math.min(column - 30, text.length - 60));
  const shown = text.slice(first, first + 60).join("").replaceAll("\t", " ");
  const number = `${line} │ `;
  return `${number}${shown}\n${" ".repeat(number.length + column - 1 - first)}▲`;
}

const TITLES = {
  unsupported_constraint: "Not supported",
  constraint_limit: "Beyond a limit",
  constraint_syntax: "Syntax error",
  invalid_constraint: "No constraint",
  max_tokens_too_small: "Too few tokens",
  invalid_api_key: "A key is needed",
  context_length_exceeded: "The prompt is too long",
  queue_full: "The server is busy",
  grammars_refused: "Refused by the operator",
  no_connection: "No answer",
};

function titleOf(error) {
  return TITLES[error.code] ?? "The request failed";
}

function isAboutEditor(error) {
  return error.path != null || error.line != null || (error.param ?? "").startsWith("response_format") || error.param === "tools";
}

function inText(error, source) {
  if (error.line == null) return null;
  const start = offsetOf(source, error.line, error.column ?? 1);
  const length = error.keyword && source.startsWith(error.keyword, start) ? error.keyword.length : 1;
  return { start: Math.min(start, Math.max(source.length - 1, 0)), end: Math.min(start + length, source.length) };
}

function inJson(error, form) {
  if (error.path == null) return null;
  const { places } = readJson(form.source);
  const path = form.kind === "tools" ? withinTools(error.path, places) : error.path;
  const place = locate(places, path, error.keyword ?? null);
  if (error.line != null) {
    const inside = place.valueStart + 1 + (error.column ?? 1) - 1; // of a pattern in a string without escapes
    if (!form.source.slice(place.valueStart, inside).includes("\\")) return { start: inside, end: inside + 1 };
  }
  return { start: place.start, end: place.end };
}

/** The server counts from the request: #/tools/0/function/parameters/…, and the editor may hold bare functions. */
function withinTools(path, places) {
  const inner = path.replace(/^#\/tools/, "#");
  const index = /^#\/(\d+)/.exec(inner)?.[1];
  return index !== undefined && !places.has(`/${index}/function`) ? inner.replace(/^(#\/\d+)\/function/, "$1") : inner;
}
