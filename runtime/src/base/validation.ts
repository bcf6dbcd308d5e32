// Validation of options. Types do not protect JavaScript users, so every value is checked.
import { findWrongRequirements, hasFormat } from "@gen-operator/schema";

/** The values of options by name, with the minimum and maximum of each. */
interface NumberOptions {
  readonly [option: string]: readonly [value: unknown, least?: number, most?: number];
}

/** Throws unless each option is undefined or a number in its range. Infinity is accepted, NaN is not. */
export function checkNumbers(owner: string, options: NumberOptions): void {
  requireNumbers(owner, Object.fromEntries(Object.entries(options).filter(([, [value]]) => value !== undefined)));
}

/** Throws unless each option is a number in its range. */
export function requireNumbers(owner: string, options: NumberOptions): void {
  for (const [option, [value, least = -Infinity, most = Infinity]] of Object.entries(options)) {
    if (typeof value === "number" && value >= least && value <= most) continue;
    const range = most < Infinity ? `${least} to ${most}` : `${least} or more`;
    const needed = least === -Infinity ? "a number" : range;
    throw new RangeError(`${owner} has ${describe(value)} for ${option}; it needs ${needed}`);
  }
}

/** Throws unless each option is undefined, an integer in its range, or Infinity. */
export function checkCounts(owner: string, options: NumberOptions): void {
  checkNumbers(owner, options);
  for (const [option, [value]] of Object.entries(options)) {
    if (value === undefined || value === Infinity || Number.isInteger(value)) continue;
    throw new RangeError(`${owner} has ${describe(value)} for ${option}; it needs a whole number`);
  }
}

/** Throws unless each option is undefined or a function. */
export function checkFunctions(owner: string, options: { readonly [option: string]: unknown }): void {
  requireFunctions(owner, Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)));
}

/** Throws unless each option is a function. */
export function requireFunctions(owner: string, options: { readonly [option: string]: unknown }): void {
  for (const [option, value] of Object.entries(options))
    if (typeof value !== "function")
      throw new TypeError(`${owner} has ${describe(value)} for ${option}; it needs a function`);
}

/** Throws if a namespace name is invalid. The API server would respond as if such a namespace were empty. */
export function checkNamespaces(owner: string, namespaces: readonly string[] | undefined): void {
  if (namespaces === undefined) return;
  if (!Array.isArray(namespaces))
    throw new TypeError(`the namespaces of ${owner} must be an array, but are ${describe(namespaces)}`);
  if (namespaces.length === 0)
    throw new TypeError(`${owner} has an empty list of namespaces; name at least one, or leave the list out`);
  // A DNS label (Kubernetes 1.36, ValidateNamespaceName).
  const isName = (each: unknown) => typeof each === "string" && hasFormat(each, "k8s-short-name");
  const wrong = namespaces.findIndex((each) => !isName(each));
  if (wrong === -1) return;
  throw new TypeError(`${describe(namespaces[wrong])} is not a valid namespace name (namespaces of ${owner})`);
}

/** Returns whether the API server accepts a string as a label selector. */
export function isLabelSelector(selector: string): boolean {
  return findWrongRequirements(selector).length === 0;
}

/** Formats the value of an option for an error message. */
export function describe(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
