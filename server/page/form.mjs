/** The form: what is chosen and written in it, kept for each kind of constraint. */

import { byId, element } from "./dom.mjs";
import { Editor } from "./editor.mjs";
import { EXAMPLES, ofLibrary } from "./examples.mjs";

const LABELS = {
  schema: ["JSON Schema", "json", 14],
  regex: ["Regular expression", "regex", 3],
  grammar: ["Grammar", "gbnf", 14],
  choices: ["Choices, one a line", "plain", 5],
  tools: ["Tools, as JSON", "json", 14],
};
const NUMBERS = { temperature: "temperature", topP: "top-p", topK: "top-k", minP: "min-p", seed: "seed", maxTokens: "max-tokens" };
const CHOSEN = { endpoint: "endpoint", toolChoice: "tool-choice" };

export class RequestForm {
  #editor = new Editor(byId("editor"), () => this.#edit({ source: this.#editor.text }));
  #examples = EXAMPLES;
  #kept = Object.fromEntries(Object.keys(EXAMPLES).map((kind) => [kind, startOf(EXAMPLES[kind][0])]));
  #onEdit;

  /** onEdit() is called when something is not any more as it was. */
  constructor(onEdit) {
    this.#onEdit = onEdit;
    byId("form").addEventListener("change", (event) => this.#change(event.target));
    byId("prompt").addEventListener("input", () => this.#edit({ prompt: byId("prompt").value }));
    byId("system").addEventListener("input", () => this.#edit({ system: byId("system").value }));
    byId("turns").addEventListener("input", (event) => this.#editTurn(event.target));
    for (const id of Object.values(NUMBERS)) byId(id).addEventListener("input", onEdit);
    byId("add-system").addEventListener("click", () => {
      this.#showSystem(true);
      byId("system").focus();
    });
    byId("start-over").addEventListener("click", () => this.#startOver());
    byId("undo").addEventListener("click", () => this.#choose(this.#one.example));
    this.#show();
  }

  get kind() {
    return new FormData(byId("form")).get("kind");
  }

  get #one() {
    return this.#kept[this.kind];
  }

  get #example() {
    return this.#examples[this.kind].find(({ name }) => name === this.#one.example);
  }

  /** {kind, kept, all}: all that is written. */
  get whole() {
    return { kind: this.kind, kept: this.#kept, all: this.#all };
  }

  /** {kind, one, all}: what is to be seen. */
  get shown() {
    return { kind: this.kind, one: this.#one, all: this.#all };
  }

  /** Puts back what `whole` or `shown` gave. */
  fill({ kind, kept = {}, one = kept[kind], all }) {
    for (const [name, state] of Object.entries({ ...kept, [kind]: one })) this.#kept[name] = { ...this.#kept[name], ...state };
    for (const [name, id] of Object.entries({ ...NUMBERS, ...CHOSEN })) if (name in all) byId(id).value = all[name] ?? "";
    if ("details" in all) byId("details").checked = all.details;
    byId("form").querySelector(`input[value="${kind}"]`).checked = true;
    this.#show();
  }

  /** What `requestOf` asks for, without the model. */
  get request() {
    const { source, language, system, turns, prompt } = this.#one;
    return { kind: this.kind, source: this.kind === "free" ? "" : source, language, system, turns: structuredClone(turns), prompt, ...this.#all };
  }

  /** Grammars of the library are examples too. */
  addLibrary(grammars) {
    this.#examples = { ...EXAMPLES, grammar: [...EXAMPLES.grammar, ...ofLibrary(grammars)] };
    if (this.kind === "grammar") this.#showExamples();
  }

  /** The reply to `request`, and what was asked, become earlier turns. */
  takeTurn(request, { text, calls }) {
    const reply = calls.length
      ? [{ role: "assistant", content: "", tool_calls: calls.map(callOf) }, ...calls.map((call, index) => ({ role: "tool", tool_call_id: callOf(call, index).id, content: "" }))]
      : [{ role: "assistant", content: text }];
    const asked = request.prompt === "" ? [] : [{ role: "user", content: request.prompt }];
    const isEdited = this.#one.prompt !== request.prompt;
    this.#edit({ turns: [...request.turns, ...asked, ...reply], prompt: isEdited ? this.#one.prompt : "" });
    this.#showTurns();
    byId("prompt").value = this.#one.prompt;
    (byId("turns").querySelector("textarea.result:placeholder-shown") ?? byId("prompt")).focus();
  }

  markError(range) {
    this.#editor.markError(range);
  }

  goToError() {
    this.#editor.goToError();
  }

  get #all() {
    const number = (id) => (byId(id).value === "" ? null : Number(byId(id).value));
    const numbers = Object.entries(NUMBERS).map(([name, id]) => [name, number(id)]);
    const chosen = Object.entries(CHOSEN).map(([name, id]) => [name, byId(id).value]);
    return { ...Object.fromEntries([...numbers, ...chosen]), details: byId("details").checked };
  }

  #edit(changes) {
    this.#kept[this.kind] = { ...this.#one, ...changes };
    this.#showWhetherEdited();
    this.#onEdit();
  }

  #change(target) {
    if (target.name === "kind") this.#show();
    else if (target.id === "example") this.#choose(target.value);
    else if (target.id === "language") {
      this.#edit({ language: target.value });
      this.#editor.setLanguage(target.value, LABELS.grammar[2]);
    } else if (target.id === "endpoint") this.#showConversation();
    this.#onEdit();
  }

  #choose(name) {
    this.#kept[this.kind] = startOf(this.#examples[this.kind].find((example) => example.name === name));
    this.#show();
    this.#onEdit();
  }

  #startOver() {
    const first = this.#one.turns.find(({ role }) => role === "user");
    this.#edit({ turns: [], prompt: first?.content ?? this.#one.prompt });
    this.#show();
    byId("prompt").focus();
  }

  #editTurn(area) {
    const turns = this.#one.turns.map((turn, index) => (index === Number(area.dataset.index) ? { ...turn, content: area.value } : turn));
    this.#edit({ turns });
  }

  // -- from the state to the page

  #show() {
    const { kind } = this;
    byId("source-field").hidden = kind === "free";
    byId("language-field").hidden = kind !== "grammar";
    byId("tool-choice-field").hidden = kind !== "tools";
    byId("endpoint-field").hidden = kind === "tools";
    byId("language").value = this.#one.language ?? "gbnf";
    if (kind !== "free") {
      const [label, language, rows] = LABELS[kind];
      byId("source-label").textContent = label;
      this.#editor.text = this.#one.source;
      this.#editor.setLanguage(kind === "grammar" ? byId("language").value : language, rows);
    }
    byId("prompt").value = this.#one.prompt;
    this.#showExamples();
    this.#showConversation();
  }

  #showExamples() {
    byId("example").replaceChildren(...this.#examples[this.kind].map(({ name }) => new Option(name)));
    byId("example").value = this.#one.example;
    this.#showWhetherEdited();
  }

  #showWhetherEdited() {
    const example = this.#example;
    const isEdited = example && Object.entries(startOf(example)).some(([name, value]) => JSON.stringify(value) !== JSON.stringify(this.#one[name]));
    byId("undo").hidden = !isEdited;
    byId("example-hint").textContent = example?.hint ?? "";
  }

  /** Completions have a prompt and nothing else. */
  #showConversation() {
    const isChat = this.kind === "tools" || byId("endpoint").value === "chat";
    byId("conversation").hidden = !isChat;
    this.#showSystem(this.#one.system !== "");
    this.#showTurns();
  }

  #showSystem(isShown) {
    byId("system").value = this.#one.system;
    byId("system-field").hidden = !isShown;
    byId("add-system").hidden = isShown;
  }

  #showTurns() {
    const { turns } = this.#one;
    byId("turns-field").hidden = !turns.length;
    byId("turns").replaceChildren(...turns.map((turn, index) => rowOf(turn, index, turns)));
  }
}

function startOf({ name, source, prompt, language = "gbnf" }) {
  return { example: name, source, prompt, language, system: "", turns: [] };
}

function callOf({ id, name, text }, index) {
  return { id: id || `call_${index}`, type: "function", function: { name, arguments: text } };
}

const WHO = { user: "You", assistant: "Reply" };

function rowOf(turn, index, turns) {
  const row = element("li", `turn ${turn.role}`);
  if (turn.tool_calls) {
    row.append(element("span", "who", "Call"), element("code", "", turn.tool_calls.map((call) => `${call.function.name}(${call.function.arguments})`).join("\n")));
    return row;
  }
  const label = element("label");
  const area = element("textarea", turn.role === "tool" ? "result" : "");
  area.rows = 1;
  area.value = turn.content;
  area.dataset.index = String(index);
  area.placeholder = turn.role === "tool" ? "What the function returned" : "Nothing";
  label.append(element("span", "who", WHO[turn.role] ?? `Result of ${nameOf(turn.tool_call_id, turns)}`), area);
  row.append(label);
  return row;
}

function nameOf(id, turns) {
  return turns.flatMap((turn) => turn.tool_calls ?? []).findLast((call) => call.id === id)?.function.name ?? id;
}
