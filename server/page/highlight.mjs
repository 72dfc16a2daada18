/** Source text as spans {text, kind}, for the editor. Kinds: name, string, number, word, mark, comment, group, "" (plain). */

const LANGUAGES = {
  json: /(?<name>"(?:[^"\\\n]|\\.)*"(?=\s*:))|(?<string>"(?:[^"\\\n]|\\.)*"?)|(?<number>-?\d[\d.eE+-]*)|(?<word>true|false|null)|(?<mark>[{}[\],:])/g,
  regex: /(?<string>\\(?:[xu][0-9A-Fa-f]+|[pP]\{[^}]*\}|.))|(?<name>\[\^?\]?(?:[^\]\\]|\\.)*\]?)|(?<group>\(\?(?:[:=!]|<[=!]|P?<\w+>)|[()])|(?<number>\{\d*,?\d*\}|[*+?])|(?<mark>[|^$.])/g,
  gbnf: /(?<comment>#[^\n]*)|(?<string>"(?:[^"\\\n]|\\.)*"?|\[(?:[^\]\\\n]|\\.)*\]?)|(?<name>[A-Za-z][\w-]*(?=\s*::=))|(?<mark>::=|[|()])|(?<number>\{\d*,?\d*\}|[*+?])/g,
  lark: /(?<comment>\/\/[^\n]*|#[^\n]*)|(?<string>"(?:[^"\\\n]|\\.)*"?i?|\/(?:[^/\\\n]|\\.)+\/[a-z]*)|(?<name>^[?!]?\w+(?=[^:\n]*:))|(?<word>%\w+)|(?<mark>->|\.\.|[:|()[\]])|(?<number>~\s*\d+|[*+?])/gm,
  ebnf: /(?<comment>\(\*[\s\S]*?\*\)|#[^\n]*)|(?<string>"[^"\n]*"?|'[^'\n]*'?|\[(?:[^\]\\\n]|\\.)*\]?)|(?<name>[A-Za-z][\w-]*(?=\s*(?:::=|=)))|(?<mark>::=|[=|(),;])|(?<number>[*+?])/g,
};

export function spans(text, language) {
  const pattern = LANGUAGES[language];
  if (!pattern) return [{ text, kind: "" }];
  const found = [];
  let at = 0;
  for (const match of text.matchAll(pattern)) {
    if (match.index > at) found.push({ text: text.slice(at, match.index), kind: "" });
    const kind = Object.keys(match.groups).find((name) => match.groups[name] !== undefined);
    found.push({ text: match[0], kind });
    at = match.index + match[0].length;
  }
  if (at < text.length) found.push({ text: text.slice(at), kind: "" });
  return found;
}

/** The same spans, cut where a range begins and ends; the parts inside have isMarked. */
export function marked(found, range) {
  if (!range) return found;
  const parts = [];
  let at = 0;
  for (const span of found) {
    const cuts = [0, range.start - at, range.end - at, span.text.length];
    const inside = cuts.map((cut) => Math.min(Math.max(cut, 0), span.text.length));
    for (let k = 0; k < 3; k += 1) {
      if (inside[k + 1] > inside[k]) {
        parts.push({ text: span.text.slice(inside[k], inside[k + 1]), kind: span.kind, isMarked: k === 1 });
      }
    }
    at += span.text.length;
  }
  return parts;
}
