// Tracks the writes and deletions of this process, to distinguish them from those of another process with the same field manager. Times of writes are
// on the clock of the API server, in seconds, like those in `managedFields`: the local clock may differ.
import { systemClock } from "../base/wait.js";
import type { Connection } from "./connection.js";

const SLOTS = 4_096;
// How long the API server may execute a request whose response was lost. Its own timeout is one minute.
const LOST_ANSWER_SECONDS = 120;
// Tolerance for the case that a proxy or another API server has set the time of a response.
const TOLERANCE_SECONDS = 5;
const SUBRESOURCE = /\/(status|scale|finalize|eviction|binding|ephemeralcontainers|resize|token|approval)$/;
const TIME = '"time":"';
const TIME_LENGTH = "2026-01-01T00:00:00Z".length;
const NEVER = 0xffff_ffff;
// How many deletions are stored per connection, and for how long.
const MAX_DELETIONS = 1_000;
const DELETIONS_MS = 60_000;

/** The parts of a response that contain times. */
interface DatedAnswer {
  readonly status: number;
  /** The `Date` header. */
  readonly date?: unknown;
  readonly body?: Buffer;
}

/**
 * The writes of this process to one API server, by path of the object. Stores the time of the latest write in a fixed number of slots, which objects
 * share by hash: a write of another process may be missed, but a write of this process is never mistaken for one of another process.
 */
export class OwnWrites {
  readonly #latest = new Uint32Array(SLOTS);
  readonly #underWay = new Uint32Array(SLOTS);
  #time = 0;
  #timedAt = 0;

  /** Records the time of a response. */
  noteDate(date: unknown): void {
    if (typeof date === "string") this.#noteTime(secondsOf(date));
  }

  /** The time on the clock of the API server, or undefined before the first response. */
  get time(): number | undefined {
    if (this.#time === 0) return undefined;
    return this.#time + Math.floor((performance.now() - this.#timedAt) / 1_000);
  }

  /** Begins a write request. The returned function ends it; call it without a response if the response was lost. */
  begin(path: string): (answer?: DatedAnswer) => void {
    const slot = slotOf(objectPathIn(path));
    this.#underWay[slot]!++;
    return (answer) => {
      this.#underWay[slot]!--;
      const stated = answer && Math.max(secondsOf(answer.date), newestTimeIn(answer.body));
      if (stated !== undefined && stated > 0) this.#noteTime(stated);
      // A response with status 500 or above may be the timeout of a gateway.
      const isKnown = stated !== undefined && stated > 0 && answer!.status < 500;
      const now = this.time;
      const latest = isKnown ? stated : now === undefined ? NEVER : now + LOST_ANSWER_SECONDS;
      this.#latest[slot] = Math.max(this.#latest[slot]!, latest);
    };
  }

  /** Returns whether a write at this time was not sent by this process, neither to one of these paths nor to a path that shares a slot. */
  isForeign(paths: readonly string[], time: number): boolean {
    return paths
      .map(slotOf)
      .every((slot) => this.#underWay[slot] === 0 && time > this.#latest[slot]! + TOLERANCE_SECONDS);
  }

  #noteTime(seconds: number): void {
    if (!(seconds > 0) || seconds < (this.time ?? 0)) return;
    this.#time = seconds;
    this.#timedAt = performance.now();
  }
}

/** Parses a time into seconds since the epoch; 0 if it is invalid. */
export function secondsOf(text: unknown): number {
  return typeof text === "string" ? Math.floor((Date.parse(text) || 0) / 1_000) : 0;
}

/** Returns the newest time in the managed fields of a response. The write is at least as new as this. */
function newestTimeIn(body: Buffer | undefined): number {
  let newest = "";
  for (let at = body?.indexOf(TIME) ?? -1; at !== -1; at = body!.indexOf(TIME, at + TIME.length)) {
    const time = body!.toString("latin1", at + TIME.length, at + TIME.length + TIME_LENGTH);
    if (time > newest) newest = time;
  }
  return secondsOf(newest);
}

// The path of a collection is kept, because the path of a create request does not contain the name of the object.
function objectPathIn(path: string): string {
  return path.replace(/\?.*$/, "").replace(SUBRESOURCE, "");
}

/** FNV-1a */
function slotOf(path: string): number {
  let hash = 0x811c_9dc5;
  for (let at = 0; at < path.length; at++) hash = Math.imul(hash ^ path.charCodeAt(at), 0x0100_0193);
  return (hash >>> 0) % SLOTS;
}

const writesByServer = new Map<string, { readonly writes: OwnWrites; users: number }>();

/** Returns the writes of this process to a server. They are shared by all clients of the server until each has called `release`. */
export function acquireOwnWrites(server: string): { readonly writes: OwnWrites; release(): void } {
  const shared = writesByServer.get(server) ?? { writes: new OwnWrites(), users: 0 };
  shared.users++;
  writesByServer.set(server, shared);
  let isReleased = false;
  const release = () => {
    if (isReleased) return;
    isReleased = true;
    if (--shared.users === 0) writesByServer.delete(server);
  };
  return { writes: shared.writes, release };
}

// By connection, which all clients of an operator share. In order of the deletions.
const deletions = new WeakMap<Connection, Map<string, number>>();

/** Records that a client of this process deleted the object at a path. */
export function noteDeletion(connection: Connection, path: string, now = systemClock.now()): void {
  const known = deletions.get(connection) ?? new Map<string, number>();
  deletions.set(connection, known);
  known.delete(path);
  known.set(path, now);
  for (const [oldest, time] of known) {
    if (known.size <= MAX_DELETIONS && now - time <= DELETIONS_MS) break;
    known.delete(oldest);
  }
}

/** Returns whether a client of this process deleted the object at a path within the last minute, and drops the record. */
export function takeDeletion(connection: Connection, path: string, now = systemClock.now()): boolean {
  const known = deletions.get(connection);
  const time = known?.get(path);
  known?.delete(path);
  return time !== undefined && now - time <= DELETIONS_MS;
}
