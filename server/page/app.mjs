/** The page: what is asked, what comes, and where it is shown. */

import { ApiError, get, key, stream } from "./api.mjs";
import { byId } from "./dom.mjs";
import { Editor } from "./editor.mjs";
import { frame, jsonError, placed } from "./error_place.mjs";
import { EXAMPLES, ofLibrary } from "./examples.mjs";
import { Inspector } from "./inspector.mjs";
import { count, milliseconds, percent } from "./meters.mjs";
import { ObjectView } from "./object_view.mjs";
import { asCurl, requestOf } from "./request.mjs";
import { Run } from "./run.mjs";
import { startTheme } from "./theme.mjs";
import { TokenList } from "./token_list.mjs";

const LABELS = {
  schema: ["JSON Schema", "json", 14],
  regex: ["Regular expression", "regex", 3],
  grammar: ["Grammar", "gbnf", 14],
  choices: ["Choices, one a line", "plain", 4],
  tools: ["Tools, as JSON", "json", 14],
};

const editor = new Editor(byId("editor"), () => (kept[kind()].source = editor.text));
const inspector = new Inspector(byId("inspector"), byId("inspector-place"));
const tokens = new TokenList(byId("tokens"), byId("ribbon"), (details, index, total) => inspector.show(details, index, total));
const value = new ObjectView(byId("object"));

let examples = EXAMPLES;
const kept = Object.fromEntries(Object.keys(EXAMPLES).map((name) => [name, stateOf(EXAMPLES[name][0], 0)])); // what was edited, of each kind
let server = { model: null };
let running = null; // an AbortController
let maxCandidates;

function kind() {
  return new FormData(byId("form")).get("kind");
}

function stateOf(example, index) {
  return { index, source: example.source, prompt: example.prompt, language: example.language };
}

// -- the form

function showKind() {
  const name = kind();
  const isFree = name === "free";
  byId("source-field").hidden = isFree;
  byId("language-field").hidden = name !== "grammar";
  byId("tool-choice-field").hidden = name !== "tools";
  const options = examples[name].map((example, index) => new Option(example.name, String(index)));
  byId("example").replaceChildren(...options);
  showState();
}

function showState() {
  const name = kind();
  const state = kept[name];
  hideError();
  byId("example").value = String(state.index);
  byId("example-hint").textContent = examples[name][state.index].hint;
  byId("prompt").value = state.prompt;
  if (name === "free") return;
  const [label, language, rows] = LABELS[name];
  byId("source-label").textContent = label;
  if (name === "grammar") byId("language").value = state.language;
  editor.text = state.source;
  editor.setLanguage(name === "grammar" ? state.language : language, rows);
}

function formState() {
  const number = (id) => (byId(id).value === "" ? null : Number(byId(id).value));
  const name = kind();
  return {
    kind: name,
    source: name === "free" ? "" : editor.text,
    language: byId("language").value,
    toolChoice: byId("tool-choice").value,
    prompt: byId("prompt").value,
    endpoint: byId("endpoint").value,
    model: server.model,
    temperature: number("temperature"),
    topP: number("top-p"),
    topK: number("top-k"),
    minP: number("min-p"),
    seed: number("seed"),
    maxTokens: number("max-tokens"),
    details: byId("details").checked,
    maxCandidates,
  };
}

/** The request, or null when the text in the editor is not even JSON: then that is shown. */
function checkedRequest(form) {
  const wrong = form.kind === "schema" || form.kind === "tools" ? jsonError(form.source) : null;
  const notList = form.kind === "tools" && !wrong && !Array.isArray(JSON.parse(form.source));
  if (wrong) showError(wrong, form);
  else if (notList) showError({ title: "These are no tools", reason: "a list of functions is expected", instead: "[{\"name\": …, \"parameters\": …}]" }, form);
  else return requestOf(form);
  return null;
}

// -- errors

function showError(told, form) {
  byId("error").hidden = false;
  byId("error-title").textContent = told.title;
  byId("error-reason").textContent = told.reason;
  byId("error-instead").textContent = told.instead ? `Instead: ${told.instead}` : "";
  byId("error-instead").hidden = !told.instead;
  const place = [told.path, told.line ? `line ${told.line}, column ${told.column}` : null].filter(Boolean).join(" · ");
  byId("error-place").textContent = place;
  byId("error-place").parentElement.hidden = !place;
  byId("error-go").hidden = !told.range;
  byId("error-frame").hidden = !told.line;
  byId("error-frame").textContent = told.line ? frame(form.source, told.line, told.column) : "";
  editor.markError(told.range ?? null);
}

function hideError() {
  byId("error").hidden = true;
  editor.markError(null);
}

// -- a run

async function start(form) {
  const request = checkedRequest(form);
  if (!request) return;
  clearResults();
  running = new AbortController();
  setRunning(true);
  const run = new Run({ isJson: form.kind === "schema", started: performance.now() });
  try {
    for await (const event of stream(request.path, request.body, running.signal)) {
      run.read(event, performance.now());
      showEvent(run, form);
    }
    run.finish();
    showEnd(run, form);
  } catch (error) {
    if (error.name === "AbortError") byId("state").textContent = "stopped";
    else if (!(error instanceof ApiError)) throw error;
    else if (error.error.param === "maskwright.candidates" && maxCandidates === undefined) {
      maxCandidates = error.error.limit;
      await start({ ...form, maxCandidates });
    } else {
      byId("state").textContent = run.meter.numTokens ? "failed" : "";
      showError(placed(error.error, form), form);
      if (error.status === 401) askForKey();
    }
  } finally {
    byId("empty").hidden = run.meter.numTokens > 0 || run.text !== "";
    setRunning(false);
  }
}

function clearResults() {
  hideError();
  tokens.clear();
  inspector.clear();
  value.clear();
  byId("empty").hidden = true;
  byId("copy").hidden = true;
  byId("object-state").textContent = "";
  for (const name of ["rate", "first", "forced", "masked", "compile", "tokens"]) byId(`m-${name}`).textContent = "–";
}

function setRunning(isRunning) {
  byId("run").disabled = isRunning;
  byId("stop").disabled = !isRunning;
  if (isRunning) byId("state").textContent = "running…";
  byId("output").setAttribute("aria-busy", String(isRunning));
}

let isDrawn = true;

function showEvent(run, form) {
  inspector.vocabularySize = run.vocabularySize;
  for (const details of run.tokens) tokens.add(details);
  if (!isDrawn) return;
  isDrawn = false;
  requestAnimationFrame(() => {
    isDrawn = true;
    showProgress(run, form);
  });
}

function showProgress(run, form) {
  const figures = run.meter.figures();
  byId("m-rate").textContent = figures.rate === null ? "–" : figures.rate.toFixed(figures.rate < 100 ? 1 : 0);
  byId("m-first").textContent = milliseconds(figures.firstToken);
  byId("m-forced").textContent = percent(figures.forced);
  byId("m-masked").textContent = percent(figures.masked);
  byId("m-compile").textContent = milliseconds(figures.compile);
  byId("m-tokens").textContent = figures.tokens ? count(figures.tokens) : "–";
  const box = byId("tokens");
  if (box.scrollHeight > box.clientHeight && running) box.scrollTop = box.scrollHeight;
  if (!run.hasDetails) box.textContent = run.text || run.calls.map((call) => call.text).join("\n");
  showValue(run, form);
}

function showValue(run, form) {
  if (run.calls.length) value.showValues(run.calls.map((call) => ({ title: call.name, root: call.reader.root, schema: parametersOf(call.name, form) })));
  else if (run.reader && !run.reader.failed) value.showValues([{ title: "", root: run.reader.root, schema: JSON.parse(form.source) }]);
  else value.showText(run.text);
}

function parametersOf(name, form) {
  const tools = JSON.parse(form.source).map((tool) => tool.function ?? tool);
  return tools.find((tool) => tool.name === name)?.parameters ?? {};
}

const ENDS = {
  stop: "complete",
  tool_calls: "complete",
  length: "ended at max tokens",
  constraint_limit: "ended at a limit of the constraint",
};

function showEnd(run, form) {
  showProgress(run, form);
  tokens.selectMostMasked();
  const prompt = run.usage ? `, prompt of ${count(run.usage.prompt_tokens)}${cachedOf(run.usage)}` : "";
  byId("state").textContent = `${ENDS[run.finishReason] ?? run.finishReason}: ${count(run.usage?.completion_tokens ?? run.meter.numTokens)} tokens${prompt}`;
  byId("object-state").textContent = run.reader || run.calls.length ? "typed, as the schema says" : "text";
  byId("copy").hidden = false;
  byId("copy").onclick = () => copy(byId("copy"), run.calls.length ? run.calls.map((call) => call.text).join("\n") : run.text);
}

function cachedOf({ prompt_tokens_details: details }) {
  return details?.cached_tokens ? `, ${count(details.cached_tokens)} of them known` : "";
}

async function copy(button, text) {
  const before = button.textContent;
  await navigator.clipboard.writeText(text).then(
    () => (button.textContent = "Copied"),
    () => (button.textContent = "No access to the clipboard"),
  );
  setTimeout(() => (button.textContent = before), 1500);
}

// -- the server

async function connect() {
  try {
    const [models, version] = await Promise.all([get("v1/models"), get("version")]);
    const [model] = models.data;
    server = { model: model.id };
    byId("server").textContent = `${model.id} · ${count(model.max_model_len)} tokens · ${version.version}`;
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    byId("server").textContent = error.status === 401 ? "an API key is needed" : error.message;
    if (error.status === 401) askForKey();
  }
}

async function loadLibrary() {
  const grammars = await get("playground/grammars").catch(() => []);
  examples = { ...EXAMPLES, grammar: [...EXAMPLES.grammar, ...ofLibrary(grammars)] };
  if (kind() === "grammar") showKind();
}

function askForKey() {
  byId("key-button").hidden = false;
  byId("key").value = key.get();
  if (!byId("key-dialog").open) byId("key-dialog").showModal();
}

// -- everything wired

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!byId("run").disabled) start(formState());
});
byId("form").addEventListener("change", (event) => {
  if (event.target.name === "kind") showKind();
  if (event.target.id === "example") {
    const index = Number(event.target.value);
    kept[kind()] = stateOf(examples[kind()][index], index);
    showState();
  }
  if (event.target.id === "language") {
    kept.grammar.language = event.target.value;
    editor.setLanguage(event.target.value, LABELS.grammar[2]);
  }
});
byId("prompt").addEventListener("input", () => (kept[kind()].prompt = byId("prompt").value));
byId("stop").addEventListener("click", () => running?.abort());
byId("error-go").addEventListener("click", () => editor.goToError());
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
byId("show-request").addEventListener("click", () => {
  const request = checkedRequest(formState());
  if (!request) return;
  byId("request-text").textContent = asCurl(new URL(request.path, location.href).href, request.body, key.get() !== "");
  byId("request-dialog").showModal();
});
byId("copy-request").addEventListener("click", () => copy(byId("copy-request"), byId("request-text").textContent));
byId("key-button").addEventListener("click", askForKey);
byId("key-dialog").addEventListener("close", () => {
  if (byId("key-dialog").returnValue !== "save") return;
  key.set(byId("key").value.trim());
  connect();
});

startTheme(byId("theme"));
showKind();
connect();
loadLibrary();
