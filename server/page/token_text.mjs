/** Tokens as people read them. */

import { count } from "./meters.mjs";

const SIGNS = { " ": "␣", "\n": "↵", "\r": "␍", "\t": "⇥", "": "∅" };

/** A token on its own: white space and what cannot be seen is shown as signs. */
export function spelled(token) {
  if (token === null) return "end of text";
  if (token === "") return SIGNS[""];
  return token.replaceAll(/^ +| +$|[\n\r\t]/g, (run) => [...run].map((char) => SIGNS[char]).join(""));
}

/** What a kind means, in a sentence. A forced text can often be spelled by several tokens, long ones and short ones. */
export function kindTold({ kind, num_allowed: allowed }, vocabularySize) {
  const share = `${count(allowed)} of ${count(vocabularySize)} tokens`;
  if (kind === "forced") return allowed === 1 ? "The only token that could follow." : `Only one text could follow; ${share} begin it, long and short ones.`;
  if (kind === "constrained") return `The constraint left ${share} to choose from.`;
  return allowed >= vocabularySize ? "Nothing was masked." : `${share} were allowed, as inside a string.`;
}

/** What holds for all candidates that die with their first byte, which is most of them; null when there is none. */
export function commonReason(candidates) {
  const first = candidates.find(({ allowed, dies_at: at, expected }) => !allowed && at === 0 && expected);
  return first ? `What is masked cannot begin here: the constraint wants ${first.expected}` : null;
}

/** Why a candidate was masked; null when the common reason says it. */
export function reasonTold({ token, reason, dies_at: at, expected }, hasCommon = false) {
  if (at === undefined || at === null || token === null) return reason;
  if (at === 0 && hasCommon) return null;
  const wanted = expected ? `; expected ${expected}` : "";
  const [fits, wrong] = cut(token, at);
  return fits ? `“${spelled(fits)}” fits, then “${wrong}” cannot follow${wanted}` : `“${wrong}” cannot follow here${wanted}`;
}

/** The text before a byte, and the character which that byte is in. */
function cut(token, at) {
  let [num, fits] = [0, ""];
  for (const char of token) {
    num += new TextEncoder().encode(char).length;
    if (num > at) return [fits, spelled(char)];
    fits += char;
  }
  return [fits, ""];
}
