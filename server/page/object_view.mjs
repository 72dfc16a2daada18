/** The value while it is written: a typed tree of JSON, with the fields that are still to come; or plain text. */

import { element } from "./dom.mjs";
import { childSchema, membersOf, resolved, typeLabel } from "./outline.mjs";

const MAX_WAITING = 40; // fields shown before they come, in one object

export class ObjectView {
  constructor(box) {
    this.box = box;
  }

  clear() {
    this.box.replaceChildren(element("p", "empty", "The typed value fills in here."));
  }

  showText(text) {
    this.box.replaceChildren(element("div", "plain", text));
  }

  /**
   * parts: [{title, root, schema, path}], each a tree of JsonReader (or null) and what is known of it; fields: the details of values
   * by path, to which `path` leads.
   */
  showValues(parts, fields = new Map()) {
    const shown = parts.flatMap(({ title, root, schema, path = [] }) => {
      const tree = element("ul", "tree");
      tree.append(...(root ? rowsOf(root, schema, { schema, fields }, path) : [waitingRow("", schema, schema)]));
      return title ? [element("p", "call", title), tree] : [tree];
    });
    this.box.replaceChildren(...shown);
  }
}

/** The rows of a whole value: of an object its members. */
function rowsOf(node, schema, whole, path) {
  return node.type === "object" ? childRows(node, schema, whole, path) : [rowOf(node, schema, whole, path)];
}

function childRows(node, schema, whole, path) {
  const rows = node.children.map((child) => rowOf(child, childSchema(schema, whole.schema, child.key), whole, [...path, child.key]));
  return [...rows, ...waitingOf(node, schema, whole.schema)];
}

// As deep as what was generated, which the engine's limit on nesting bounds.
function rowOf(node, schema, whole, path) {
  const row = element("li");
  const line = element("div", "line");
  if (node.key !== null) line.append(element("span", "key", String(node.key)));
  line.append(valueOf(node), element("span", "type", typeOf(node, schema, whole.schema)));
  const field = whole.fields.get(JSON.stringify(path));
  if (field?.strained) line.append(strainOf(field));
  row.append(line);
  if (node.type === "object" || node.type === "array") {
    const tree = element("ul", "tree");
    tree.append(...childRows(node, schema, whole, path));
    if (tree.children.length) row.append(tree);
  }
  return row;
}

/** The mark of a value that the constraint decided against the model. */
function strainOf(field) {
  const mark = element("span", "strained", "strained");
  mark.title = `The constraint left ${(100 * field.kept_mass).toPrecision(2)} % of what the model would have written here.`;
  return mark;
}

function valueOf(node) {
  const text = { object: node.children.length || node.isOpen ? "" : "{}", array: `[${node.children.length}]`, string: JSON.stringify(node.text) }[node.type];
  const shown = node.type === "string" && node.isOpen ? text.slice(0, -1) : (text ?? node.text);
  const value = element("span", `v-${node.type}`, shown);
  value.classList.toggle("open", node.isOpen && node.type !== "object" && node.type !== "array");
  return value;
}

function typeOf(node, schema, root) {
  const known = resolved(schema, root);
  return Object.keys(known).length ? typeLabel(schema, root) : node.type;
}

function waitingOf(node, schema, root) {
  if (node.type !== "object" || !node.isOpen) return [];
  const present = new Set(node.children.map((child) => child.key));
  const last = node.children.length ? membersOf(schema, root).findIndex(({ name }) => name === node.children.at(-1).key) : -1;
  const coming = membersOf(schema, root).filter(({ name, isRequired }, index) => !present.has(name) && (index > last || isRequired));
  return coming.slice(0, MAX_WAITING).map((member) => waitingRow(member.name, member.schema, root, member.isRequired));
}

function waitingRow(name, schema, root, isRequired = true) {
  const row = element("li", "waiting");
  const line = element("div", "line");
  line.append(element("span", "key", name), element("span", "dots", "···"));
  line.append(element("span", "type", `${typeLabel(schema, root)}${isRequired ? "" : ", optional"}`));
  row.append(line);
  return row;
}
