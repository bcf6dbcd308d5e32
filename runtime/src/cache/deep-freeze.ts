import { completeObject } from "../decode/deferred-members.js";

/** Freezes a JSON value with all its parts, unless it is frozen already; what was not parsed of it is. */
export function deepFreeze(value: unknown): void {
  if (typeof value !== "object" || value === null || Object.isFrozen(value)) return;
  completeObject(value);
  freezeAll(value);
}

function freezeAll(value: object): void {
  Object.freeze(value);
  for (const name in value) {
    const part = (value as { readonly [name: string]: unknown })[name];
    if (typeof part === "object" && part !== null && !Object.isFrozen(part)) freezeAll(part);
  }
}
