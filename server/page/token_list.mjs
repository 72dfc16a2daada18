/** The output, token by token. One token at a time can be focused; arrow keys walk. */


export class TokenList {
  #list;
  #ribbon;
  #onPoint;
  #items = []; // {element, bar, details}
  #selected = -1;

  /** onPoint(details, index, count) is called for the token that is to be looked at. */
  constructor(list, ribbon, onPoint) {
    [this.#list, this.#ribbon, this.#onPoint] = [list, ribbon, onPoint];
    list.addEventListener("pointerover", (event) => this.#point(this.#indexOf(event.target)));
    list.addEventListener("pointerleave", () => this.#point(this.#selected));
    list.addEventListener("click", (event) => this.select(this.#indexOf(event.target)));
    list.addEventListener("focusin", (event) => this.select(this.#indexOf(event.target)));
    list.addEventListener("keydown", (event) => this.#walk(event));
    ribbon.addEventListener("click", (event) => this.select([...ribbon.children].indexOf(event.target)));
  }

  get length() {
    return this.#items.length;
  }

  clear() {
    this.#items = [];
    this.#selected = -1;
    this.#list.replaceChildren();
    this.#ribbon.replaceChildren();
  }

  /** details: {token, text, kind, kept_mass, …} and `place`, where in a JSON value it stands. */
  add(details) {
    const element = document.createElement("span");
    element.className = `token ${details.kind} fresh`;
    element.setAttribute("role", "option");
    element.setAttribute("aria-selected", "false");
    element.tabIndex = this.#items.length ? -1 : 0;
    element.append(...shown(details));
    const masked = details.kept_mass === null ? 0 : 1 - details.kept_mass;
    element.style.setProperty("--masked", String(Math.sqrt(masked))); // small shares are to be seen too
    element.setAttribute("aria-label", `${JSON.stringify(details.token ?? "")}, ${details.kind}, ${(100 * masked).toFixed(1)} % masked`);
    element.title = "";
    const bar = document.createElement("i");
    bar.style.setProperty("--masked", String(Math.sqrt(masked)));
    this.#list.append(element);
    this.#ribbon.append(bar);
    this.#items.push({ element, bar, details });
    if (this.#selected < 0) this.#point(this.#items.length - 1);
  }

  select(index) {
    if (index < 0 || index >= this.#items.length) return;
    this.#mark(this.#selected, false);
    this.#selected = index;
    this.#mark(index, true);
    this.#point(index);
  }

  /** The token where the constraint kept the model from most. */
  selectMostMasked() {
    const masses = this.#items.map(({ details }) => (details.kept_mass === null ? 0 : 1 - details.kept_mass));
    const most = Math.max(...masses);
    if (this.#selected < 0 && masses.length) this.select(most > 0.001 ? masses.indexOf(most) : 0);
  }

  #mark(index, isOn) {
    const item = this.#items[index];
    if (!item) return;
    item.element.setAttribute("aria-selected", String(isOn));
    item.element.tabIndex = isOn ? 0 : -1;
    item.bar.classList.toggle("on", isOn);
    if (isOn && index > 0) this.#items[0].element.tabIndex = -1;
  }

  #point(index) {
    if (index >= 0) this.#onPoint(this.#items[index].details, index, this.#items.length);
  }

  #indexOf(target) {
    const element = target.closest?.(".token");
    return element ? this.#items.findIndex((item) => item.element === element) : -1;
  }

  #walk(event) {
    const from = Math.max(this.#selected, 0);
    const last = this.#items.length - 1;
    const to = { ArrowRight: from + 1, ArrowLeft: from - 1, ArrowDown: from + 10, ArrowUp: from - 10, Home: 0, End: last }[event.key];
    if (to === undefined || last < 0) return;
    event.preventDefault();
    this.#items[Math.min(Math.max(to, 0), last)].element.focus();
  }
}

/** The characters, with a sign where there would be nothing to see. */
function shown({ token, text }) {
  if (text === "") return [sign(token === "" || token === null ? "∅" : "…")];
  const parts = text.split(/(\n)/).filter(Boolean);
  return parts.flatMap((part) => (part === "\n" ? [sign("↵"), "\n"] : /^ +$/.test(part) ? [sign("␣".repeat(part.length))] : [part]));
}

function sign(text) {
  const element = document.createElement("span");
  element.className = "sign";
  element.textContent = text;
  return element;
}

