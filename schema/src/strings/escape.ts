// Escapes strings for messages: as Go string literals, as kube-apiserver quotes values, and for terminals and logs. Names, messages, and fields of
// custom resources are untrusted: control characters in them can move the cursor, change the text direction, or forge a log line.

// C0 and C1 controls, line and paragraph separators, bidirectional formatting characters, and zero-width characters.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const INVISIBLE_IN_JSON = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Escapes all control and invisible characters, including line feeds, as in `\u001b`. */
export function printableLine(text: string): string {
  return text.replace(INVISIBLE, escapeCodeUnit);
}

/** Escapes all control and invisible characters except line feeds and tabs. */
export function printableText(text: string): string {
  return text.replace(INVISIBLE, (character) =>
    character === "\n" || character === "\t" ? character : escapeCodeUnit(character),
  );
}

/** Escapes the characters of a JSON document that are valid in JSON but interpreted by terminals. The document remains equivalent. */
export function printableJson(json: string): string {
  return json.replace(INVISIBLE_IN_JSON, escapeCodeUnit);
}

function escapeCodeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The maximum length of a string in a log line or an error message. */
export const MOST_CHARACTERS = 4096;

/** Truncates a string to at most MOST_CHARACTERS characters and appends the number of omitted ones: `… 900 more`. */
export function truncateText(text: string): string {
  if (text.length <= MOST_CHARACTERS) return text;
  // If the text has been truncated before, add its count.
  const [suffix, before] = /\u2026 (\d+) more$/.exec(text.slice(-40)) ?? ["", "0"];
  const whole = text.slice(0, text.length - suffix.length);
  const most = MOST_CHARACTERS - 40;
  // Do not split a surrogate pair.
  const end = /[\ud800-\udbff]/.test(whole.charAt(most - 1)) ? most - 1 : most;
  return `${whole.slice(0, end)}… ${whole.length - end + Number(before)} more`;
}

const GO_ESCAPES: Record<string, string> = {
  '"': '\\"',
  "\\": "\\\\",
  "\u0007": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
};

/** Formats a string as a Go string literal, as Kubernetes quotes values in messages. */
export function quote(text: string): string {
  return `"${text.replace(/["\\]|\p{C}|(?! )\p{Z}/gu, escapeForGo)}"`;
}

function escapeForGo(character: string): string {
  const named = GO_ESCAPES[character];
  if (named !== undefined) return named;
  const code = character.codePointAt(0) as number;
  if (code < 0x80) return `\\x${code.toString(16).padStart(2, "0")}`;
  return code < 0x10000 ? `\\u${code.toString(16).padStart(4, "0")}` : `\\U${code.toString(16).padStart(8, "0")}`;
}
