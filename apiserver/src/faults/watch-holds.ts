import type { StreamConnection } from "../http/stream-connection.js";
import { matchesPath, type HeldWatches } from "./faults.js";

interface Hold {
  path: string | RegExp | undefined;
  releases: (() => void)[];
}

/** Keeps watches silent, those that are open and those that are opened meanwhile. */
export class WatchHolds {
  readonly #holds = new Set<Hold>();

  /** Holds the given streams, and from now on every new one at the path. */
  add(path: string | RegExp | undefined, streams: readonly StreamConnection[]): HeldWatches {
    const hold: Hold = { path, releases: streams.map((stream) => stream.hold()) };
    this.#holds.add(hold);
    const release = (): void => this.#release(hold);
    return { release, [Symbol.dispose]: release };
  }

  /** Holds a new stream if that is wanted at its path. */
  admit(stream: StreamConnection, path: string): void {
    for (const hold of this.#holds) if (matchesPath(path, hold.path)) hold.releases.push(stream.hold());
  }

  clear(): void {
    for (const hold of this.#holds) this.#release(hold);
  }

  #release(hold: Hold): void {
    if (this.#holds.delete(hold)) for (const release of hold.releases) release();
  }
}
