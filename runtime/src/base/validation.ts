// Checks of what users state; code without types states anything.
import { findWrongRequirements, hasFormat } from "@gen-operator/schema";

/** The values of options by their names, with the least and the greatest number that each may be. */
interface NumberOptions {
  readonly [option: string]: readonly [value: unknown, least?: number, most?: number];
}

/** Throws unless each of these options is left out, or a number that it may be; Infinity is a number, NaN is none. */
export function checkNumbers(owner: string, options: NumberOptions): void {
  requireNumbers(owner, Object.fromEntries(Object.entries(options).filter(([, [value]]) => value !== undefined)));
}

/** Throws unless each of these options is a number that it may be. */
export function requireNumbers(owner: string, options: NumberOptions): void {
  for (const [option, [value, least = -Infinity, most = Infinity]] of Object.entries(options)) {
    if (typeof value === "number" && value >= least && value <= most) continue;
    const range = most < Infinity ? `${least} to ${most}` : `${least} or more`;
    const needed = least === -Infinity ? "a number" : range;
    throw new RangeError(`${owner} has ${describe(value)} for ${option}; it needs ${needed}`);
  }
}

/** Throws unless each of these options is left out, or a whole number that it may be, or Infinity. */
export function checkCounts(owner: string, options: NumberOptions): void {
  checkNumbers(owner, options);
  for (const [option, [value]] of Object.entries(options)) {
    if (value === undefined || value === Infinity || Number.isInteger(value)) continue;
    throw new RangeError(`${owner} has ${describe(value)} for ${option}; it needs a whole number`);
  }
}

/** Throws unless each of these options is left out, or a function. */
export function checkFunctions(owner: string, options: { readonly [option: string]: unknown }): void {
  requireFunctions(owner, Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined)));
}

/** Throws unless each of these options is a function. */
export function requireFunctions(owner: string, options: { readonly [option: string]: unknown }): void {
  for (const [option, value] of Object.entries(options))
    if (typeof value !== "function")
      throw new TypeError(`${owner} has ${describe(value)} for ${option}; it needs a function`);
}

/** Throws if these are no names of namespaces: the API server would answer as if there were nothing in them. */
export function checkNamespaces(owner: string, namespaces: readonly string[] | undefined): void {
  if (namespaces === undefined) return;
  if (!Array.isArray(namespaces))
    throw new TypeError(`the namespaces of ${owner} must be an array, but are ${describe(namespaces)}`);
  if (namespaces.length === 0)
    throw new TypeError(`${owner} has an empty list of namespaces; name at least one, or leave the list out`);
  // A DNS label (1.36, ValidateNamespaceName).
  const isName = (each: unknown) => typeof each === "string" && hasFormat(each, "k8s-short-name");
  const wrong = namespaces.findIndex((each) => !isName(each));
  if (wrong === -1) return;
  throw new TypeError(`${describe(namespaces[wrong])} is not a valid namespace name (namespaces of ${owner})`);
}

/** Tells whether an API server accepts a text as a label selector. */
export function isLabelSelector(selector: string): boolean {
  return findWrongRequirements(selector).length === 0;
}

/** Names a value that an option has, for an error. */
export function describe(value: unknown): string {
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
