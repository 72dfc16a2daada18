/** One run: events of a stream in, what is shown of them out. */

import { JsonReader } from "./json_reader.mjs";
import { Meter } from "./meters.mjs";

/**
 * Follows one output. `tokens` are the details that came with the last event, each with `place`; `text` all of the content; `calls`
 * [{id, name, text, reader}]; `reader` reads the content when `isJson`.
 */
export class Run {
  text = "";
  calls = [];
  tokens = [];
  fields = new Map(); // path as JSON -> {probability, constrained_probability, kept_mass, strained}; of calls it begins with their number
  finishReason = null;
  usage = null;
  vocabularySize = 0;
  hasDetails = false; // then the reader is fed by tokens, which never lag behind, else by the content

  constructor({ isJson, started }) {
    this.reader = isJson ? new JsonReader() : null;
    this.meter = new Meter(started);
  }

  read(event, now) {
    this.tokens = [];
    if (event.usage) this.usage = event.usage;
    if (event.maskwright) {
      this.hasDetails = true;
      this.vocabularySize = event.maskwright.vocabulary_size;
      this.meter.head(event.maskwright);
    }
    for (const choice of event.choices) this.#readChoice(choice);
    this.meter.tokens(this.tokens, now);
  }

  finish() {
    this.reader?.finish();
    for (const call of this.calls) call.reader.finish();
  }

  #readChoice(choice) {
    if (choice.maskwright) this.#readTokens(choice.maskwright.tokens ?? []);
    for (const field of choice.maskwright?.fields ?? []) this.fields.set(JSON.stringify(field.path), field);
    const delta = choice.delta ?? { content: choice.text };
    if (delta.content) {
      this.text += delta.content;
      if (!this.hasDetails) this.reader?.feed(delta.content);
    }
    for (const part of delta.tool_calls ?? []) this.#readCall(part);
    if (choice.finish_reason) this.finishReason = choice.finish_reason;
  }

  #readTokens(tokens) {
    for (const token of tokens) {
      this.tokens.push({ ...token, place: this.reader && !this.reader.failed ? this.reader.path : null });
      this.reader?.feed(token.text);
    }
  }

  #readCall({ index, id, function: called }) {
    this.calls[index] ??= { id: "", name: "", text: "", reader: new JsonReader() };
    const call = this.calls[index];
    if (id) call.id = id;
    if (called.name) call.name = called.name;
    call.text += called.arguments ?? "";
    call.reader.feed(called.arguments ?? "");
  }
}
