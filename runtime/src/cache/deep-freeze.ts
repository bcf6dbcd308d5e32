import { completeObject } from "../decode/deferred-members.js";

/** Freezes an object with its parts, unless it is frozen already; what was not parsed of it is. Dates, maps and other instances of classes are left alone. */
export function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  completeObject(value);
  freezePlain(value);
}

function freezePlain(value: object): void {
  const prototype: unknown = Object.getPrototypeOf(value);
  // The prototype of all objects has none itself.
  if (!Array.isArray(value) && prototype !== null && Object.getPrototypeOf(prototype) !== null) return;
  Object.freeze(value);
  for (const name in value) {
    const part = (value as { readonly [name: string]: unknown })[name];
    if (typeof part === "object" && part !== null && !Object.isFrozen(part)) freezePlain(part);
  }
}
