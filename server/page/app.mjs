/** The page: what is asked, what comes, and where it is shown. */

import { ApiError, get, key, stream } from "./api.mjs";
import { byId } from "./dom.mjs";
import { frame, jsonError, placed } from "./error_place.mjs";
import { RequestForm } from "./form.mjs";
import { Inspector } from "./inspector.mjs";
import { count, milliseconds, percent } from "./meters.mjs";
import { ObjectView } from "./object_view.mjs";
import { asCurl, requestOf } from "./request.mjs";
import { Run } from "./run.mjs";
import { keep, linkOf, readLink, recall } from "./state.mjs";
import { startTheme } from "./theme.mjs";
import { TokenList } from "./token_list.mjs";

const LINK_DELAY = 300; // ms after the last edit; browsers refuse to change the address for every letter

const form = new RequestForm(edited);
const inspector = new Inspector(byId("inspector"), byId("inspector-place"));
const tokens = new TokenList(byId("tokens"), byId("ribbon"), (details, index, total) => inspector.show(details, index, total));
const value = new ObjectView(byId("object"));

let server = { model: null };
let running = null; // an AbortController
let maxCandidates;
let linkTimer;

function asked() {
  return { ...form.request, model: server.model, maxCandidates };
}

// -- what is kept, and shared

function edited() {
  keep(form.whole, location.hash);
  clearTimeout(linkTimer);
  linkTimer = setTimeout(updateLink, LINK_DELAY);
}

/** The address becomes a link to what is shown. */
function updateLink() {
  clearTimeout(linkTimer);
  history.replaceState(null, "", linkOf(form.shown));
  keep(form.whole, location.hash);
}

/** A link that came from elsewhere goes before what this tab has kept; one that the tab made itself may lag behind. */
function restore() {
  const kept = recall();
  const isOwn = kept !== null && kept.fragment === location.hash;
  hideError();
  try {
    const linked = isOwn ? null : readLink(location.hash);
    if (kept) form.fill(kept);
    if (linked) form.fill(linked);
    keep(form.whole, location.hash);
  } catch {
    if (kept) form.fill(kept);
    showError({ title: "This link cannot be read", reason: "It was cut off, or made by another version of this page.", instead: "ask for the link again" }, {});
  }
}

/** The request, or null when the text in the editor is not even JSON: then that is shown. */
function checkedRequest(asked) {
  const wrong = asked.kind === "schema" || asked.kind === "tools" ? jsonError(asked.source) : null;
  const notList = asked.kind === "tools" && !wrong && !Array.isArray(JSON.parse(asked.source));
  if (wrong) showError(wrong, asked);
  else if (notList) showError({ title: "These are no tools", reason: "a list of functions is expected", instead: "[{\"name\": …, \"parameters\": …}]" }, asked);
  else return requestOf(asked);
  return null;
}

// -- errors

function showError(told, asked) {
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
  byId("error-frame").textContent = told.line ? frame(asked.source, told.line, told.column) : "";
  form.markError(told.range ?? null);
  view("results");
}

function hideError() {
  byId("error").hidden = true;
  form.markError(null);
}

/** Where there is no room for both, the request or its results are shown; where there is, the beginning of the results. */
function view(name) {
  byId("main").dataset.view = name;
  for (const button of document.querySelectorAll(".views button")) button.setAttribute("aria-pressed", String(button.dataset.view === name));
  byId("results").scrollTop = 0;
  scrollTo(0, 0);
}

// -- a run

async function start(asked) {
  const request = checkedRequest(asked);
  if (!request) return;
  clearResults();
  view("results");
  running = new AbortController();
  setRunning(true);
  const run = new Run({ isJson: asked.kind === "schema", started: performance.now() });
  try {
    for await (const event of stream(request.path, request.body, running.signal)) {
      run.read(event, performance.now());
      showEvent(run, asked);
    }
    run.finish();
    showEnd(run, asked);
  } catch (error) {
    if (error.name === "AbortError") byId("state").textContent = "stopped";
    else if (!(error instanceof ApiError)) throw error;
    else if (error.error.param === "maskwright.candidates" && maxCandidates === undefined) {
      maxCandidates = error.error.limit;
      await start({ ...asked, maxCandidates });
    } else {
      byId("state").textContent = run.meter.numTokens ? "failed" : "";
      showError(placed(error.error, asked), asked);
      if (error.status === 401) askForKey();
    }
  } finally {
    if (!run.meter.numTokens && run.text === "" && byId("tokens").childElementCount === 0) stage("empty");
    setRunning(false);
  }
}

/** empty: nothing has come yet; begun: there is an output. */
function stage(name) {
  byId("results").dataset.stage = name;
  byId("empty").hidden = name !== "empty";
}

function clearResults() {
  hideError();
  tokens.clear();
  inspector.clear();
  value.clear();
  stage("begun");
  byId("copy").hidden = true;
  byId("next-turn").hidden = true;
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

function showEvent(run, asked) {
  inspector.vocabularySize = run.vocabularySize;
  for (const details of run.tokens) tokens.add(details);
  if (!isDrawn) return;
  isDrawn = false;
  requestAnimationFrame(() => {
    isDrawn = true;
    showProgress(run, asked);
  });
}

function showProgress(run, asked) {
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
  showValue(run, asked);
}

function showValue(run, asked) {
  if (run.calls.length) value.showValues(run.calls.map((call, index) => partOf(call, index, asked)), run.fields);
  else if (run.reader && !run.reader.failed) value.showValues([{ title: "", root: run.reader.root, schema: JSON.parse(asked.source) }], run.fields);
  else value.showText(run.text);
}

function partOf(call, index, asked) {
  return { title: call.name, root: call.reader.root, schema: parametersOf(call.name, asked), path: [index] };
}

function parametersOf(name, asked) {
  const tools = JSON.parse(asked.source).map((tool) => tool.function ?? tool);
  return tools.find((tool) => tool.name === name)?.parameters ?? {};
}

const ENDS = {
  stop: "complete",
  tool_calls: "complete",
  length: "ended at max tokens",
  constraint_limit: "ended at a limit of the constraint",
};

function showEnd(run, asked) {
  showProgress(run, asked);
  tokens.selectMostMasked();
  const prompt = run.usage ? `, prompt of ${count(run.usage.prompt_tokens)}${cachedOf(run.usage)}` : "";
  byId("state").textContent = `${ENDS[run.finishReason] ?? run.finishReason}: ${count(run.usage?.completion_tokens ?? run.meter.numTokens)} tokens${prompt}`;
  byId("object-state").textContent = run.reader || run.calls.length ? "as the schema types it" : "text";
  byId("next-turn").hidden = asked.kind !== "tools" && asked.endpoint !== "chat";
  byId("next-turn").onclick = () => {
    byId("next-turn").hidden = true;
    view("request");
    form.takeTurn(asked, run);
  };
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
  form.addLibrary(await get("playground/grammars").catch(() => []));
}

function askForKey() {
  byId("key-button").hidden = false;
  byId("key").value = key.get();
  if (!byId("key-dialog").open) byId("key-dialog").showModal();
}

// -- everything wired

byId("form").addEventListener("submit", (event) => {
  event.preventDefault();
  if (!byId("run").disabled) start(asked());
});
byId("form").addEventListener("change", (event) => {
  if (event.target.name === "kind" || event.target.id === "example") hideError();
});
byId("stop").addEventListener("click", () => running?.abort());
byId("error-go").addEventListener("click", () => {
  view("request");
  form.goToError();
});
for (const button of document.querySelectorAll(".views button")) button.addEventListener("click", () => view(button.dataset.view));
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("form").requestSubmit();
});
byId("link").addEventListener("click", () => {
  updateLink();
  copy(byId("link"), location.href);
});
byId("show-request").addEventListener("click", () => {
  const request = checkedRequest(asked());
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
addEventListener("hashchange", restore);

startTheme(byId("theme"));
restore();
connect();
loadLibrary();
