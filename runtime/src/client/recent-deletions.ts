import { systemClock } from "../base/clock.js";
import type { Connection } from "./connect/connection.js";

const HOLDS_MS = 60_000;
const CAPACITY = 1_000;

// By the connection, which all clients of one operator share. Times in the order of the deletions.
const deletions = new WeakMap<Connection, Map<string, number>>();

/** Records that a client of this process deleted the object at a path. */
export function noteDeletion(connection: Connection, path: string, now = systemClock.now()): void {
  const known = deletions.get(connection) ?? new Map<string, number>();
  deletions.set(connection, known);
  known.delete(path);
  known.set(path, now);
  for (const [oldest, time] of known) {
    if (known.size <= CAPACITY && now - time <= HOLDS_MS) break;
    known.delete(oldest);
  }
}

/** Tells whether a client of this process deleted the object at a path within the last minute, and forgets that. */
export function takeDeletion(connection: Connection, path: string, now = systemClock.now()): boolean {
  const known = deletions.get(connection);
  const time = known?.get(path);
  known?.delete(path);
  return time !== undefined && now - time <= HOLDS_MS;
}
