// Which objects the dependents want in one reconcile, and which they had deleted: only then can it be said what is left of an earlier one.
// It is kept by the context, of which there is one for each reconcile, so that drivers keep nothing.

import { originOf } from "./step.js";

interface Seen {
  readonly wanted: Map<string, Set<string>>;
  readonly removed: Set<string>;
}

const seenIn = new WeakMap<object, Seen>();

function seenOf(context: object): Seen {
  const origin = originOf(context);
  let seen = seenIn.get(origin);
  if (seen === undefined) seenIn.set(origin, (seen = { wanted: new Map(), removed: new Set() }));
  return seen;
}

/** Notes that a dependent wants the object with this id. */
export function noteWanted(context: object, dependent: string, id: string): void {
  const { wanted } = seenOf(context);
  const ids = wanted.get(dependent);
  if (ids === undefined) wanted.set(dependent, new Set([id]));
  else ids.add(id);
}

/** Returns the ids of the objects that a dependent wants; undefined if none was noted. */
export function wantedBy(context: object, dependent: string): ReadonlySet<string> | undefined {
  return seenIn.get(originOf(context))?.wanted.get(dependent);
}

/** Notes that the object with this uid was deleted, or untied. */
export function noteRemoved(context: object, uid: string | undefined): void {
  if (uid !== undefined) seenOf(context).removed.add(uid);
}

/** Tells whether an object was deleted, or untied. */
export function wasRemoved(context: object, uid: string | undefined): boolean {
  return uid !== undefined && seenIn.get(originOf(context))?.removed.has(uid) === true;
}
