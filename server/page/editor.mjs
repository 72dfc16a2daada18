/** A textarea with line numbers and colours: the colours are painted below it, its own text is clear. */

import { marked, spans } from "./highlight.mjs";

export class Editor {
  #area;
  #paint;
  #gutter;
  #box;
  #language = null;
  #range = null; // of an error

  constructor(box, onInput) {
    this.#box = box;
    this.#area = box.querySelector("textarea");
    this.#paint = box.querySelector(".paint");
    this.#gutter = box.querySelector(".gutter");
    this.#area.addEventListener("input", () => {
      this.markError(null);
      onInput();
    });
    this.#area.addEventListener("scroll", () => this.#follow());
  }

  get text() {
    return this.#area.value;
  }

  set text(value) {
    this.#area.value = value;
    this.#area.scrollTop = 0;
    this.#area.scrollLeft = 0;
    this.markError(null);
  }

  setLanguage(language, rows) {
    this.#language = language;
    this.#area.rows = rows;
    this.#draw();
  }

  /** Underline a range {start, end} and its line's number; null: nothing is wrong. */
  markError(range) {
    this.#range = range;
    this.#box.classList.toggle("wrong", range !== null);
    this.#area.toggleAttribute("aria-invalid", range !== null);
    if (range) this.#area.setAttribute("aria-describedby", "error");
    else this.#area.removeAttribute("aria-describedby");
    this.#draw();
  }

  /** Put the caret where the error is. */
  goToError() {
    if (!this.#range) return;
    this.#area.focus();
    this.#area.setSelectionRange(this.#range.start, this.#range.start);
    const line = this.#area.value.slice(0, this.#range.start).split("\n").length;
    this.#area.scrollTop = Math.max(0, (line - 4) * 20);
  }

  #draw() {
    const painted = marked(spans(this.text, this.#language), this.#range).map(({ text, kind, isMarked }) => {
      const part = document.createElement(isMarked ? "mark" : "span");
      part.textContent = text;
      if (kind) part.classList.add(`s-${kind}`);
      return part;
    });
    this.#paint.replaceChildren(...painted, "\n");
    const wrong = this.#range ? this.text.slice(0, this.#range.start).split("\n").length : 0;
    const numbers = this.text.split("\n").flatMap((_, index) => {
      const number = document.createElement("span");
      number.textContent = String(index + 1);
      number.classList.toggle("wrong", index + 1 === wrong);
      return [number, "\n"];
    });
    this.#gutter.replaceChildren(...numbers);
    this.#follow();
  }

  #follow() {
    const { scrollLeft, scrollTop, clientHeight } = this.#area;
    this.#paint.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
    this.#gutter.style.height = `${clientHeight}px`;
    this.#gutter.scrollTop = scrollTop;
  }
}
