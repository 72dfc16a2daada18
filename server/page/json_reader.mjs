/** JSON that is still being written, as a tree of what is there so far. */

const ESCAPES = { b: "\b", f: "\f", n: "\n", r: "\r", t: "\t" };
const WHITE = /\s/;
const LITERAL = { t: "boolean", f: "boolean", n: "null" };

/**
 * `root` is the tree: nodes {type, key, text, children, isOpen}. A node's type is "object", "array", "string", "number",
 * "boolean" or "null"; `key` is its name or index in its container. Text that is not JSON sets `failed`.
 */
export class JsonReader {
  root = null;
  failed = false;
  #containers = [];
  #expects = "value"; // value | firstKey | key | colon | comma | end
  #string = null; // the string being read: {node, text, escape}; a name has no node
  #scalar = null; // the number or literal being read
  #key = null;

  feed(text) {
    for (const char of text) {
      if (this.failed) return;
      this.#read(char);
    }
  }

  /** No more text will come: a number at the top is complete. */
  finish() {
    if (this.#scalar) this.#endScalar();
  }

  /** The value that is being written, such as `$.languages[0]`; of a name, the object it is in. */
  get path() {
    let path = "$";
    for (const container of this.#containers) {
      const last = container.children.at(-1);
      const key = container.type === "array" ? (last?.isOpen ? last.key : container.children.length) : this.#keyIn(container);
      if (key === null) break;
      path += typeof key === "number" ? `[${key}]` : /^[A-Za-z_]\w*$/.test(key) ? `.${key}` : `[${JSON.stringify(key)}]`;
    }
    return path;
  }

  #keyIn(container) {
    const last = container.children.at(-1);
    if (last?.isOpen) return last.key;
    return container === this.#containers.at(-1) && !this.#string ? this.#key : null;
  }

  #read(char) {
    if (this.#string) return this.#readString(char);
    if (this.#scalar) {
      if (/[\w.+-]/.test(char)) {
        this.#scalar.text += char;
        return undefined;
      }
      this.#endScalar();
    }
    if (WHITE.test(char)) return undefined;
    const step = this.#steps[this.#expects];
    if (!step?.call(this, char)) this.failed = true;
    return undefined;
  }

  #steps = {
    value(char) {
      if (char === "]" && this.#containers.at(-1)?.type === "array" && !this.#containers.at(-1).children.length) return this.#close();
      if (char === '"') return this.#openString(this.#add("string"));
      if (char === "{" || char === "[") return this.#open(char);
      if (/[-\dtfn]/.test(char)) {
        this.#scalar = this.#add(LITERAL[char] ?? "number");
        this.#scalar.text = char;
        return true;
      }
      return false;
    },
    firstKey(char) {
      return char === "}" ? this.#close() : this.#steps.key.call(this, char);
    },
    key(char) {
      return char === '"' && this.#openString(null);
    },
    colon(char) {
      this.#expects = "value";
      return char === ":";
    },
    comma(char) {
      const container = this.#containers.at(-1);
      if (char === (container.type === "array" ? "]" : "}")) return this.#close();
      this.#expects = container.type === "array" ? "value" : "key";
      this.#key = null;
      return char === ",";
    },
    end() {
      return false;
    },
  };

  #add(type) {
    const container = this.#containers.at(-1);
    const key = !container ? null : container.type === "array" ? container.children.length : this.#key;
    const node = { type, key, text: "", children: [], isOpen: true };
    if (container) container.children.push(node);
    else this.root = node;
    this.#key = null;
    return node;
  }

  #open(char) {
    const node = this.#add(char === "{" ? "object" : "array");
    this.#containers.push(node);
    this.#expects = char === "{" ? "firstKey" : "value";
    return true;
  }

  #close() {
    this.#containers.pop().isOpen = false;
    this.#afterValue();
    return true;
  }

  #openString(node) {
    this.#string = { node, text: "", escape: null };
    return true;
  }

  #readString(char) {
    const string = this.#string;
    if (string.escape !== null) this.#readEscape(string, char);
    else if (char === "\\") string.escape = "";
    else if (char === '"') this.#endString(string);
    else string.text += char;
    if (string.node) string.node.text = string.text;
  }

  #readEscape(string, char) {
    if (string.escape === "" && char !== "u") {
      string.text += ESCAPES[char] ?? char;
      string.escape = null;
    } else {
      string.escape += char;
      if (string.escape.length === 5) {
        string.text += String.fromCharCode(Number.parseInt(string.escape.slice(1), 16));
        string.escape = null;
      }
    }
  }

  #endString(string) {
    this.#string = null;
    if (!string.node) {
      this.#key = string.text;
      this.#expects = "colon";
      return;
    }
    string.node.isOpen = false;
    this.#afterValue();
  }

  #endScalar() {
    this.#scalar.isOpen = false;
    this.#scalar = null;
    this.#afterValue();
  }

  #afterValue() {
    this.#expects = this.#containers.length ? "comma" : "end";
  }
}
