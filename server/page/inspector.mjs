/** One token: what it was chosen from, and what was masked and why. */

import { percent } from "./meters.mjs";
import { element } from "./dom.mjs";
import { commonReason, kindTold, reasonTold, spelled } from "./token_text.mjs";

const NEGLIGIBLE = 0.005; // a share that the model would hardly have taken: whether it was masked matters to nobody

const SMALLEST = 1e-6; // what the server rounds shares to; none is quite 0

export class Inspector {
  constructor(box, place) {
    [this.box, this.place] = [box, place];
    this.vocabularySize = 0;
  }

  clear() {
    this.box.replaceChildren(element("p", "empty", "What the model wanted to say, and what it was allowed to."));
    this.place.textContent = "";
  }

  show(details, index, total) {
    this.place.textContent = `${index + 1} of ${total}`;
    this.box.replaceChildren(this.#facts(details), ...this.#candidates(details));
  }

  #facts(details) {
    const facts = element("div", "facts");
    const big = element("p", "big");
    big.append(element("code", details.kind, spelled(details.token)), element("span", "", details.kind));
    facts.append(big, element("p", "", kindTold(details, this.vocabularySize)));
    const numbers = element("dl", "numbers");
    const add = (name, value) => {
      const pair = element("div");
      pair.append(element("dt", "", name), element("dd", "", value));
      numbers.append(pair);
    };
    if (details.probability === null) facts.append(element("p", "", "The model was not asked."));
    else add("the model gave it", percent(details.probability || SMALLEST));
    if (details.kept_mass !== null) add("kept mass", percent(details.kept_mass || SMALLEST));
    if (details.place) add("in the value", details.place);
    if (details.paths.length) add("in the constraint", details.paths.slice(0, 4).join(", "));
    add("id", String(details.id));
    facts.append(numbers);
    return facts;
  }

  #candidates({ id, candidates }) {
    if (!candidates.length) return [];
    const list = element("ul", "candidates");
    const common = commonReason(candidates);
    const title = element("div", "title");
    title.append(element("h3", "", "What the model would have said"));
    if (common) title.append(element("p", "", common));
    list.append(...candidates.map((candidate) => this.#candidate(candidate, candidate.id === id, common)));
    return [title, list];
  }

  #candidate(candidate, isChosen, common) {
    const row = element("li", isChosen ? "chosen" : candidate.allowed ? "allowed" : "masked");
    const bar = element("span", "bar");
    row.classList.toggle("negligible", candidate.probability < NEGLIGIBLE && !isChosen);
    bar.style.setProperty("--share", String(candidate.probability));
    const verdict = isChosen ? "✓ chosen" : candidate.allowed ? "allowed" : "✕ masked";
    row.append(
      element("code", "", spelled(candidate.token)),
      bar,
      element("span", "share", percent(candidate.probability || SMALLEST)),
      element("span", "verdict", verdict),
    );
    const reason = candidate.allowed ? null : reasonTold(candidate, common !== null);
    if (reason) row.append(element("span", "why", reason));
    return row;
  }
}
