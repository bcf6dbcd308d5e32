// The writes and deletions of this process, so that those of another process under the same field manager can be told from them. All times of
// writes are those of the API server, in seconds, as `managedFields` have them: the clock of this machine says nothing about them.
import { systemClock } from "../base/wait.js";
import type { Connection } from "./connection.js";

const SLOTS = 4_096;
// Until when the API server may execute a request whose answer is lost: it gives up after one minute.
const LOST_ANSWER_SECONDS = 120;
// Where a proxy or another API server states the time of an answer.
const TOLERANCE_SECONDS = 5;
const SUBRESOURCE = /\/(status|scale|finalize|eviction|binding|ephemeralcontainers|resize|token|approval)$/;
const TIME = '"time":"';
const TIME_LENGTH = "2026-01-01T00:00:00Z".length;
const NEVER = 0xffff_ffff;
// How many deletions are remembered of a connection, and for how long.
const MAX_DELETIONS = 1_000;
const DELETIONS_MS = 60_000;

/** An answer to a request, as far as it tells a time. */
interface DatedAnswer {
  readonly status: number;
  /** The header `Date`. */
  readonly date?: unknown;
  readonly body?: Buffer;
}

/**
 * The writes of this process to one API server, by the path of their object. It keeps the time of the latest one for each of a fixed number of
 * slots, which objects share by a hash: a write of another process may be missed, but none of this process is taken for one of another.
 */
export class OwnWrites {
  readonly #latest = new Uint32Array(SLOTS);
  readonly #underWay = new Uint32Array(SLOTS);
  #time = 0;
  #timedAt = 0;

  /** Takes the time that an answer states. */
  noteDate(date: unknown): void {
    if (typeof date === "string") this.#noteTime(secondsOf(date));
  }

  /** The time of the API server; undefined before it has stated one. */
  get time(): number | undefined {
    if (this.#time === 0) return undefined;
    return this.#time + Math.floor((performance.now() - this.#timedAt) / 1_000);
  }

  /** Begins a request that may change something; the returned function ends it, without an answer if that is lost. */
  begin(path: string): (answer?: DatedAnswer) => void {
    const slot = slotOf(objectPathIn(path));
    this.#underWay[slot]!++;
    return (answer) => {
      this.#underWay[slot]!--;
      const stated = answer && Math.max(secondsOf(answer.date), newestTimeIn(answer.body));
      if (stated !== undefined && stated > 0) this.#noteTime(stated);
      // An answer of 500 or above may be that of a gateway that gave up.
      const isKnown = stated !== undefined && stated > 0 && answer!.status < 500;
      const now = this.time;
      const latest = isKnown ? stated : now === undefined ? NEVER : now + LOST_ANSWER_SECONDS;
      this.#latest[slot] = Math.max(this.#latest[slot]!, latest);
    };
  }

  /** Tells whether a write at a time is none of this process: neither to any of these paths, nor to one that shares a slot with it. */
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

/** Returns a time as seconds; 0 if the text is none. */
export function secondsOf(text: unknown): number {
  return typeof text === "string" ? Math.floor((Date.parse(text) || 0) / 1_000) : 0;
}

/** Returns the newest time in the managed fields of an answer: that of a write is not older than the answer says. */
function newestTimeIn(body: Buffer | undefined): number {
  let newest = "";
  for (let at = body?.indexOf(TIME) ?? -1; at !== -1; at = body!.indexOf(TIME, at + TIME.length)) {
    const time = body!.toString("latin1", at + TIME.length, at + TIME.length + TIME_LENGTH);
    if (time > newest) newest = time;
  }
  return secondsOf(newest);
}

// A path of a collection stays: of an object that is created in it, the name is not in the path.
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

/** Returns the writes of this process to a server, shared by all its clients until each has called `release`. */
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

// By the connection, which all clients of one operator share. Times in the order of the deletions.
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

/** Tells whether a client of this process deleted the object at a path within the last minute, and forgets that. */
export function takeDeletion(connection: Connection, path: string, now = systemClock.now()): boolean {
  const known = deletions.get(connection);
  const time = known?.get(path);
  known?.delete(path);
  return time !== undefined && now - time <= DELETIONS_MS;
}
