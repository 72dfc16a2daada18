/** What a JSON Schema says about the shape of a value, for showing fields before they are written. Nothing here decides anything. */

const MAX_STEPS = 32; // of references followed one after another

/** The schema with its reference followed and its `allOf` looked into, as far as an outline needs it. */
export function resolved(schema, root) {
  let found = schema;
  for (let step = 0; step < MAX_STEPS && typeof found?.$ref === "string"; step += 1) found = atPointer(root, found.$ref);
  if (found === null || typeof found !== "object") return {};
  const parts = (Array.isArray(found.allOf) ? found.allOf : []).slice(0, MAX_STEPS);
  if (!parts.length) return found;
  const properties = {};
  for (const part of parts) {
    const inner = typeof part?.$ref === "string" ? atPointer(root, part.$ref) : part;
    Object.assign(properties, inner?.properties);
  }
  return { ...found, properties: { ...properties, ...found.properties } };
}

/** The schemas of the members of an object: [{name, schema, isRequired}], in the order in which they are declared. */
export function membersOf(schema, root) {
  const found = resolved(schema, root);
  const required = new Set(Array.isArray(found.required) ? found.required : []);
  return Object.entries(found.properties ?? {}).map(([name, member]) => ({ name, schema: member, isRequired: required.has(name) }));
}

/** The schema of one child of a container; {} when nothing is said about it. */
export function childSchema(schema, root, key) {
  const found = resolved(schema, root);
  if (typeof key === "number") return found.prefixItems?.[key] ?? (isSchema(found.items) ? found.items : {});
  return found.properties?.[key] ?? (isSchema(found.additionalProperties) ? found.additionalProperties : {});
}

/** What a value is, in a few words: `integer 0…150`, `"en" | "fr"`, `string date`. */
export function typeLabel(schema, root) {
  const found = resolved(schema, root);
  if ("const" in found) return JSON.stringify(found.const);
  if (Array.isArray(found.enum)) return shortened(found.enum.map((value) => JSON.stringify(value)));
  const choices = found.anyOf ?? found.oneOf;
  if (Array.isArray(choices)) return shortened(choices.map((choice) => String(resolved(choice, root).type ?? resolved(choice, root).const ?? "…")));
  const type = Array.isArray(found.type) ? found.type.join(" | ") : (found.type ?? (found.properties ? "object" : "any"));
  return [type, boundsOf(found), found.format ?? ""].filter(Boolean).join(" ");
}

function boundsOf({ type, minimum, maximum, minLength, maxLength, minItems, maxItems }) {
  const [low, high] = type === "array" ? [minItems, maxItems] : type === "string" ? [minLength, maxLength] : [minimum, maximum];
  return low === undefined && high === undefined ? "" : `${low ?? ""}…${high ?? ""}`;
}

function shortened(options) {
  const text = options.slice(0, 4).join(" | ");
  return options.length > 4 ? `${text} | …` : text;
}

function isSchema(value) {
  return value !== null && typeof value === "object" && !Array.isArray(value);
}

function atPointer(root, reference) {
  if (!reference.startsWith("#")) return {};
  let found = root;
  for (const part of reference.slice(1).split("/").slice(1)) {
    const key = part.replaceAll("~1", "/").replaceAll("~0", "~");
    if (found === null || typeof found !== "object" || !Object.hasOwn(found, key)) return {};
    found = found[key];
  }
  return found;
}
