import type { ListOptions } from "../decode/options/list-options.js";
import { badRequest, plainError } from "../errors/status-error.js";

/** Fails for a resourceVersion that is no number of 64 bits. */
export function checkResourceVersion({ resourceVersion, isWatch }: ListOptions): void {
  if (resourceVersion === "" || isUint64(resourceVersion)) return;
  const text = invalidResourceVersionText(resourceVersion);
  // A watch fails with the bare text and without a reason.
  throw isWatch ? plainError(text) : badRequest(`invalid resource version: ${text}`);
}

/** Tells whether a text is a number of 64 bits without a sign. */
export function isUint64(text: string): boolean {
  return /^\d{1,20}$/.test(text) && BigInt(text) < 2n ** 64n;
}

/** Returns what Kubernetes says about a resourceVersion that is no number of 64 bits. */
export function invalidResourceVersionText(given: string): string {
  const quoted = JSON.stringify(given);
  const problem = /^\d+$/.test(given) ? "value out of range" : "invalid syntax";
  return `resourceVersion: Invalid value: ${quoted}: strconv.ParseUint: parsing ${quoted}: ${problem}`;
}
