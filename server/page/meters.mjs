/** The figures of one run, from the tokens as they come. Times are in milliseconds, of one clock. */

export class Meter {
  numTokens = 0;
  numForced = 0;
  #started;
  #first = null;
  #last = null;
  #numFirst = 0; // tokens that came together with the first
  #masked = 0;
  #numSampled = 0;
  #compileSeconds = null;

  constructor(started) {
    this.#started = started;
  }

  /** What the server tells once. */
  head({ constraint }) {
    this.#compileSeconds = constraint?.compile_seconds ?? null;
  }

  tokens(details, now) {
    if (!details.length) return;
    if (this.#first === null) {
      this.#first = now;
      this.#numFirst = details.length;
    }
    this.#last = now;
    this.numTokens += details.length;
    for (const { kind, kept_mass: kept } of details) {
      this.numForced += kind === "forced" ? 1 : 0;
      if (kept === null) continue;
      this.#masked += 1 - kept;
      this.#numSampled += 1;
    }
  }

  /** {tokens, rate (a second, after the first), firstToken (ms), forced (share), masked (mean share of probability), compile (ms)}; null = not known. */
  figures() {
    const seconds = (this.#last - this.#first) / 1000;
    return {
      tokens: this.numTokens,
      rate: seconds > 0 ? (this.numTokens - this.#numFirst) / seconds : null,
      firstToken: this.#first === null ? null : this.#first - this.#started,
      forced: this.numTokens ? this.numForced / this.numTokens : null,
      masked: this.#numSampled ? this.#masked / this.#numSampled : null,
      compile: this.#compileSeconds === null ? null : this.#compileSeconds * 1000,
    };
  }
}

export function milliseconds(value) {
  if (value === null) return "–";
  if (value >= 1000) return `${(value / 1000).toFixed(2)} s`;
  return value >= 10 ? `${value.toFixed(0)} ms` : `${value.toFixed(1)} ms`;
}

export function percent(share) {
  if (share === null) return "–";
  const value = share * 100;
  if (value === 0 || value === 100) return `${value} %`;
  if (value < 0.01) return "< 0.01 %";
  if (value > 99.99) return "> 99.99 %";
  return `${value.toFixed(value < 1 || value > 99 ? 2 : 1)} %`;
}

export function count(value) {
  return value.toLocaleString("en").replaceAll(",", "\u202f");
}
