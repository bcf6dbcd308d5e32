// https://kubernetes.io/docs/tasks/extend-kubernetes/custom-resources/custom-resource-definitions/#field-names-in-cel
import { RESERVED_WORDS } from "./reserved-words.js";

const ESCAPABLE = /^[a-zA-Z_][a-zA-Z0-9_./-]*$/;

// What stands for a value or an operator cannot follow a dot.
const UNNAMEABLE: ReadonlySet<string> = new Set(["true", "false", "null", "in"]);

const ESCAPES: { readonly [part: string]: string } = {
  __: "__underscores__",
  ".": "__dot__",
  "-": "__dash__",
  "/": "__slash__",
};

/** Tells whether a rule may also call a field by its own name, although the name is a word that CEL keeps for itself. */
export function isPlainlyNamed(name: string): boolean {
  return RESERVED_WORDS.has(name) && !UNNAMEABLE.has(name);
}

/** Returns what a rule calls a field of a schema; undefined if no rule can name it. */
export function escapeName(name: string): string | undefined {
  if (RESERVED_WORDS.has(name)) return `__${name}__`;
  if (!ESCAPABLE.test(name)) return undefined;
  return name.replace(/__|[./-]/g, (part) => ESCAPES[part] ?? part);
}
