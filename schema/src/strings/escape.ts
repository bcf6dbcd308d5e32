// Escapes strings for messages: as Go string literals, as kube-apiserver quotes values, and for terminals and logs. The names, messages and
// fields of custom resources are untrusted: they can move the cursor, reverse the reading order, or forge a log line.

// C0 and C1 controls, line and paragraph separators, marks that change the direction of writing or have no width.
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;
const INVISIBLE_IN_JSON = /[\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** Returns a text as one line in which every control and every invisible character is escaped: `\u001b`. */
export function printableLine(text: string): string {
  return text.replace(INVISIBLE, escapeCodeUnit);
}

/** Returns a text of several lines in which all but line feeds and tabs is escaped. */
export function printableText(text: string): string {
  return text.replace(INVISIBLE, (character) =>
    character === "\n" || character === "\t" ? character : escapeCodeUnit(character),
  );
}

/** Returns a JSON document with the characters escaped that JSON allows and a terminal obeys; it means the same. */
export function printableJson(json: string): string {
  return json.replace(INVISIBLE_IN_JSON, escapeCodeUnit);
}

function escapeCodeUnit(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

/** The maximum length of a string in a log line or an error message. */
export const MOST_CHARACTERS = 4096;

/** Returns the first 4096 characters of a text and how many are left out: `… 900 more`. */
export function truncateText(text: string): string {
  if (text.length <= MOST_CHARACTERS) return text;
  // A text that was truncated before keeps the true count.
  const [suffix, before] = /\u2026 (\d+) more$/.exec(text.slice(-40)) ?? ["", "0"];
  const whole = text.slice(0, text.length - suffix.length);
  const most = MOST_CHARACTERS - 40;
  // Half of a character beyond U+FFFF is none.
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

/** Writes text as a Go string literal, the way Kubernetes quotes values in messages. */
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
