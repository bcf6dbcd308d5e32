import { didYouMean } from "../diagnostic.js";
import { CONDITION_NAMES, type ConditionWord } from "./workflow-spec.js";
import type { YamlPath } from "./yaml/yaml-document.js";

type Hint = { readonly hint: string };

/** The words that are conditions. */
const WORDS: readonly ConditionWord[] = ["ready", "bound", "deleted", "crdPresent"];

/** How conditions with arguments are written. */
const EXAMPLES: ReadonlyMap<string, string> = new Map([
  ["condition", '{ condition: { type: Ready, status: "True" } }'],
  ["fieldEquals", "{ fieldEquals: { path: status.phase, value: Running } }"],
  ["not", "{ not: crdPresent }"],
  ["when", "{ when: primary.spec.enabled === true }"],
  ["function", "{ function: isReady }"],
]);

const EXISTING_EXAMPLE = `{ when: 'live.metadata.annotations?.["example.com/adopt"] === "true"' }`;

/** Returns what to write in place of a text that is no condition; undefined if a path does not lead to a condition. */
export function hintForWord(path: YamlPath, text: unknown): Hint | undefined {
  const name = conditionAt(path);
  if (name === undefined || typeof text !== "string") return undefined;
  const isWhenOfExisting = name === "existing" && text === "when";
  const example = isWhenOfExisting ? EXISTING_EXAMPLE : EXAMPLES.get(text);
  if (example !== undefined) return { hint: `write ${name}: ${example}` };
  if (name === "existing") return undefined;
  if (path.includes("eventSources")) return didYouMean(text, ["crdPresent"]);
  const meant = didYouMean(text, WORDS);
  if (meant !== undefined) return meant;
  return /^[a-z][A-Za-z0-9]{0,62}$/.test(text)
    ? { hint: `write a function of conditions.ts as { function: ${text} }` }
    : { hint: "write an expression as { when: … }, in quotes if it contains a comma, a brace, a hash or a colon" };
}

/** Returns what to write in place of a key that no condition has; undefined if a path does not lead to a condition. */
export function hintForKey(path: YamlPath, key: string, stated: object): Hint | undefined {
  const name = conditionAt(path);
  if (name === undefined) return undefined;
  if (name !== "existing" && key !== "crdPresent" && WORDS.some((word) => word === key))
    return { hint: `it takes no arguments: write ${name}: ${key}` };
  const isSplit = Object.hasOwn(stated, "when");
  return isSplit
    ? { hint: "put an expression that contains a comma, a brace, a hash or a colon into quotes" }
    : undefined;
}

function conditionAt(path: YamlPath): string | undefined {
  return [...CONDITION_NAMES, "existing"].find((name) => name === path.at(-1));
}
