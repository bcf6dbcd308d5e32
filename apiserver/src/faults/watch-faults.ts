import { clearTimeout, setTimeout } from "../clock.js";
import type { LineFilter, StreamConnection } from "../http/stream-connection.js";
import { type AskedFor, type DisturbedWatches, type FaultScope, isInScope } from "./fault-injection.js";

/** How the events of a watch are disturbed. */
export type Disturbance = "hold" | "silence" | "duplicate" | "reorder";

interface ActiveDisturbance {
  readonly how: Disturbance;
  readonly scope: FaultScope;
  readonly releases: (() => void)[];
}

type Emit = (line: Buffer) => void;

// How long reordering waits for a second event before it sends the first one alone.
const LONELY_MS = 50;
const NOT_EVENTS = ['{"type":"BOOKMARK"', '{"type":"ERROR"'];

/** Disturbs open watches and those that are opened later. */
export class WatchFaults {
  readonly #active = new Set<ActiveDisturbance>();

  /** Disturbs the given streams and every new one in the scope. */
  add(how: Disturbance, scope: FaultScope, streams: readonly StreamConnection[]): DisturbedWatches {
    const active: ActiveDisturbance = { how, scope, releases: streams.map((stream) => disturb(stream, how)) };
    this.#active.add(active);
    const release = (): void => this.#release(active);
    return { release, [Symbol.dispose]: release };
  }

  /** Disturbs a new stream if it is in the scope of an active disturbance. */
  admit(stream: StreamConnection, asked: AskedFor): void {
    for (const { how, scope, releases } of this.#active)
      if (isInScope(scope, asked)) releases.push(disturb(stream, how));
  }

  clear(): void {
    for (const active of this.#active) this.#release(active);
  }

  #release(active: ActiveDisturbance): void {
    if (this.#active.delete(active)) for (const release of active.releases) release();
  }
}

function disturb(stream: StreamConnection, how: Disturbance): () => void {
  switch (how) {
    case "hold":
      return stream.hold();
    case "silence":
      // The lost events make the watch useless, so a release does not restore it.
      stream.filter(() => ({ take: () => undefined, flush: () => undefined }));
      return () => undefined;
    case "duplicate":
      return stream.filter(duplicating);
    case "reorder":
      return stream.filter(reordering);
  }
}

function duplicating(emit: Emit): LineFilter {
  return {
    take(line) {
      emit(line);
      if (isEvent(line)) emit(line);
    },
    flush: () => undefined,
  };
}

function reordering(emit: Emit): LineFilter {
  let kept: { line: Buffer; timer: NodeJS.Timeout } | undefined;
  const flush = (): void => {
    if (kept === undefined) return;
    const { line, timer } = kept;
    clearTimeout(timer);
    kept = undefined;
    emit(line);
  };
  return {
    take(line) {
      if (isEvent(line) && kept === undefined) {
        kept = { line, timer: setTimeout(flush, LONELY_MS) };
        return;
      }
      // A bookmark guarantees that all earlier events were delivered.
      if (!isEvent(line)) flush();
      emit(line);
      flush();
    },
    flush,
  };
}

function isEvent(line: Buffer): boolean {
  return !NOT_EVENTS.some((head) => line.toString("latin1", 0, head.length) === head);
}
