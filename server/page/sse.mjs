/** Server-sent events out of text that comes in pieces, which may end anywhere. */

export class EventSplitter {
  #rest = "";

  /** The data of all events that `text` completes. Comments, such as keep-alives, are dropped. */
  feed(text) {
    const parts = (this.#rest + text).split(/\r?\n\r?\n/);
    this.#rest = parts.pop();
    return parts.map(dataOf).filter((data) => data !== null);
  }
}

function dataOf(event) {
  const lines = event.split(/\r?\n/).filter((line) => line.startsWith("data:"));
  return lines.length ? lines.map((line) => line.slice(5).replace(/^ /, "")).join("\n") : null;
}
