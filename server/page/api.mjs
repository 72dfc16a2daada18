/** This server's endpoints, as the page uses them. */

import { EventSplitter } from "./sse.mjs";

const KEY = "maskwright-key";

export const key = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: (value) => (value ? sessionStorage.setItem(KEY, value) : sessionStorage.removeItem(KEY)),
};

/** An answer of the server that is an error object: {message, code, param, path, line, …}. */
export class ApiError extends Error {
  constructor(error, status) {
    super(error.message);
    this.error = error;
    this.status = status;
  }
}

/** The JSON of a GET. Raises ApiError. */
export async function get(path) {
  return (await asked(path, {})).json();
}

/** The events of a POST, one by one, until `signal` says otherwise. Raises ApiError, also for an error that ends the stream. */
export async function* stream(path, body, signal) {
  const answer = await asked(path, { method: "POST", body: JSON.stringify(body), signal });
  const splitter = new EventSplitter();
  for await (const text of pieces(answer.body.pipeThrough(new TextDecoderStream()))) {
    for (const data of splitter.feed(text)) {
      if (data === "[DONE]") return;
      const event = JSON.parse(data);
      if (event.error) throw new ApiError(event.error, answer.status);
      yield event;
    }
  }
}

async function* pieces(readable) {
  const reader = readable.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function asked(path, options) {
  const headers = { "Content-Type": "application/json" };
  if (key.get()) headers.Authorization = `Bearer ${key.get()}`;
  let answer;
  try {
    answer = await fetch(path, { ...options, headers });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ApiError({ message: "the server does not answer; is it running?", code: "no_connection" }, 0);
  }
  if (answer.ok) return answer;
  const told = await answer.json().catch(() => null);
  throw new ApiError(told?.error ?? { message: `the server answered with status ${answer.status}`, code: null }, answer.status);
}
