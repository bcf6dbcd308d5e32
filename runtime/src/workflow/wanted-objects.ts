// Which objects the dependents want in one reconcile, and which they had deleted: only then can it be said what is left of an earlier one.
// It is kept by the context, of which there is one for each reconcile, so that drivers keep nothing.

import { originOf } from "./step.js";

interface Seen {
  readonly wanted: Map<string, Set<string>>;
  /** Which dependent wants an object, whatever its kind. */
  readonly claims: Map<string, string>;
  readonly removed: Map<string, Promise<unknown>>;
}

const seenIn = new WeakMap<object, Seen>();

function seenOf(context: object): Seen {
  const origin = originOf(context);
  let seen = seenIn.get(origin);
  if (seen === undefined) {
    seen = { wanted: new Map(), claims: new Map(), removed: new Map() };
    seenIn.set(origin, seen);
  }
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

/** Notes that a dependent wants an object, unless another one does; returns which does. `object` tells it from those of all kinds. */
export function claim(context: object, dependent: string, object: string): string {
  const { claims } = seenOf(context);
  const first = claims.get(object) ?? dependent;
  claims.set(object, first);
  return first;
}

/** Tells whether an object is wanted by another dependent than this one. */
export function isClaimedByOther(context: object, dependent: string, object: string): boolean {
  const first = seenIn.get(originOf(context))?.claims.get(object);
  return first !== undefined && first !== dependent;
}

/** Notes that the object with this uid is deleted, or untied, which is so as soon as `removal` is settled. */
export function noteRemoved(context: object, uid: string | undefined, removal: Promise<unknown>): void {
  if (uid !== undefined) seenOf(context).removed.set(uid, removal);
}

/** Returns the removal of the object with this uid; undefined if there was none. */
export function removalOf(context: object, uid: string | undefined): Promise<unknown> | undefined {
  return uid === undefined ? undefined : seenIn.get(originOf(context))?.removed.get(uid);
}
