/** From what is on the page to what is sent. */

const CANDIDATES = 8;

/**
 * {path, body} of a form {kind, source, language, toolChoice, system, turns, prompt, endpoint, model, temperature, topP, topK, minP, seed, maxTokens,
 * details}. `source` has been checked to be JSON where it has to be. Empty numbers are left out.
 */
export function requestOf(form) {
  const isChat = form.endpoint === "chat" || form.kind === "tools";
  const body = {
    model: form.model,
    ...(isChat ? { messages: messagesOf(form) } : { prompt: form.prompt }),
    ...constraintOf(form),
    ...given({
      max_tokens: form.maxTokens,
      temperature: form.temperature,
      top_p: form.topP,
      top_k: form.topK,
      min_p: form.minP,
      seed: form.seed,
    }),
    stream: true,
    stream_options: { include_usage: true },
  };
  if (form.details) body.maskwright = { version: 1, tokens: true, fields: true, candidates: Math.min(CANDIDATES, form.maxCandidates ?? CANDIDATES) };
  return { path: isChat ? "v1/chat/completions" : "v1/completions", body };
}

/** The last message is the prompt; after the result of a function there need be none. */
function messagesOf({ system, turns, prompt }) {
  const isAsked = prompt !== "" || turns.at(-1)?.role !== "tool";
  return [...(system ? [{ role: "system", content: system }] : []), ...turns, ...(isAsked ? [{ role: "user", content: prompt }] : [])];
}

export function constraintOf({ kind, source, language, toolChoice }) {
  switch (kind) {
    case "schema":
      return { response_format: { type: "json_schema", json_schema: { name: "playground", schema: JSON.parse(source), strict: true } } };
    case "regex":
      return { response_format: { type: "regex", pattern: source.replace(/\n+$/, "") } };
    case "grammar":
      return { response_format: { type: "grammar", syntax: language, grammar: source } };
    case "choices":
      return { response_format: { type: "choice", choice: source.split("\n").filter((line) => line !== "") } };
    case "tools":
      return { tools: JSON.parse(source).map(wrapped), tool_choice: toolChoice };
    default:
      return {};
  }
}

/** A command that sends the same request. */
export function asCurl(url, body, hasKey) {
  const key = hasKey ? ' \\\n  -H "Authorization: Bearer $MASKWRIGHT_API_KEY"' : "";
  const text = JSON.stringify(body, null, 2).replaceAll("'", "'\\''");
  return `curl -N ${url}${key} \\\n  -H "Content-Type: application/json" \\\n  -d '${text}'`;
}

function wrapped(tool) {
  return tool !== null && typeof tool === "object" && "function" in tool ? tool : { type: "function", function: tool };
}

function given(options) {
  return Object.fromEntries(Object.entries(options).filter(([, value]) => value !== null && value !== undefined && !Number.isNaN(value)));
}
