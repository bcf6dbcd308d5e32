import { hash } from "node:crypto";
import { runtimeTypes } from "./runtime-symbols.js";

/** The longest name of a type; deeply nested schemas exceed any limit that a reader would set. */
const MAX_NAME_LENGTH = 100;

/** Returns the words of a name in PascalCase; what is inside a word keeps its case. */
export function pascalCase(text: string): string {
  // Most names are one word.
  if (/^[A-Za-z0-9]*$/.test(text)) return text.charAt(0).toUpperCase() + text.slice(1);
  return text
    .split(/[^A-Za-z0-9]+/)
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join("");
}

/** Returns a name in camelCase: `WebPage` becomes `webPage`, `HTTPRoute` becomes `httpRoute`. */
export function camelCase(text: string): string {
  return pascalCase(text).replace(/^[A-Z]+(?=[A-Z][a-z]|[0-9]|$)|^[A-Z]/, (start) => start.toLowerCase());
}

/** Returns a name in kebab-case: `WebPage` becomes `web-page`, `HTTPRoute` becomes `http-route`. */
export function kebabCase(text: string): string {
  return text
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replace(/([A-Z]+)([A-Z][a-z])/g, "$1-$2")
    .replace(/[^A-Za-z0-9]+/g, "-")
    .replace(/^-+|-+$/g, "")
    .toLowerCase();
}

// Names of objects are made of it, such as that of a Service, which is 63 characters long at most.
const MAX_OPERATOR_NAME_LENGTH = 50;

/** Returns the name of the operator that a package holds, a DNS label: `@acme/Page_Operator` is `page-operator`. */
export function operatorNameOf(packageName: string): string {
  const name = kebabCase(packageName.slice(packageName.lastIndexOf("/") + 1));
  // A Service must not begin with a digit.
  const label = /^[a-z]/.test(name) ? name : `operator-${name}`;
  return label.slice(0, MAX_OPERATOR_NAME_LENGTH).replace(/-+$/, "");
}

/**
 * Returns the name of the class of a kind.
 *
 * A kind may start in lower case, and could then be a reserved word; it may have hyphens; or it may be called like a type that generated files import or name.
 */
export function classNameOf(kind: string): string {
  const name = pascalCase(kind);
  return IMPORTED.has(name) ? `${name}Resource` : name;
}

/** The types of the language that generated files and stubs name. */
const OF_THE_LANGUAGE = [
  "AbortSignal",
  "Awaited",
  "Error",
  "Exclude",
  "Extract",
  "Map",
  "NonNullable",
  "Object",
  "Omit",
  "Partial",
  "Promise",
  "ReadonlyArray",
  "ReadonlyMap",
  "Record",
];

const IMPORTED: ReadonlySet<string> = new Set([...runtimeTypes, ...OF_THE_LANGUAGE]);

/** Hands out names that are unique within a file and depend on nothing but the path that each one stands for. */
export class NameAllocator {
  readonly #taken: Set<string>;

  constructor(reserved: Iterable<string>) {
    this.#taken = new Set(reserved);
  }

  /** Returns `preferred`, or a name with a hash of `path` if that is too long or belongs to another path. */
  allocate(preferred: string, path: readonly string[]): string {
    const isFree = preferred.length <= MAX_NAME_LENGTH && !this.#taken.has(preferred);
    const name = isFree ? preferred : `${preferred.slice(0, MAX_NAME_LENGTH - 9)}_${hashOf(path)}`;
    this.#taken.add(name);
    return name;
  }
}

function hashOf(path: readonly string[]): string {
  return hash("sha256", JSON.stringify(path), "hex").slice(0, 8);
}
