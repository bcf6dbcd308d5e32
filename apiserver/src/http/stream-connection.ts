import { setImmediate } from "../real-time.js";
import type { Status } from "../errors/status-error.js";
import type { StreamSink } from "../read/stream-sink.js";

/** A client that has not taken this much of what happened since is disconnected; it starts again from where it was. */
const MAX_QUEUED_BYTES = 64 * 1024 * 1024;
const WRITE_BYTES = 256 * 1024;

/** Where the lines go: a response, or a WebSocket. */
export interface StreamTarget {
  readonly destroyed: boolean;
  write(chunk: Buffer, written?: () => void): boolean;
  end(): void;
  destroy(): void;
  on(event: "drain" | "close", listener: () => void): void;
}

/** Comes between the lines of a watch and its connection. */
export interface LineFilter {
  /** Takes a line; what becomes of it goes to `emit`, at once, later or never. */
  take(line: Buffer): void;
  /** Emits what is kept back: the watch ends. */
  flush(): void;
}

/**
 * Writes the lines of one watch to one response.
 *
 * Lines that arrive in the same turn of the event loop leave in one write. A slow client is waited for, up to a bound.
 */
export class StreamConnection implements StreamSink {
  readonly #response: StreamTarget;
  #initial: Iterator<Buffer> | undefined;
  #queued: Buffer[] = [];
  #queuedBytes = 0;
  #isScheduled = false;
  #isBlocked = false;
  #hasEnded = false;
  #cutsNextLine = false;
  #holds = 0;
  #filters: LineFilter[] = [];

  constructor(response: StreamTarget) {
    this.#response = response;
    response.on("drain", () => {
      this.#isBlocked = false;
      this.#flush();
    });
  }

  sendLazily(lines: Iterable<Buffer>): void {
    if (this.#filters.length > 0) {
      for (const line of lines) this.send(line);
      return;
    }
    this.#initial = lines[Symbol.iterator]();
    this.#schedule();
  }

  send(line: Buffer): void {
    const [first] = this.#filters;
    if (first === undefined) this.#queue(line);
    else first.take(line);
  }

  /** Sends every line from now on through a filter, until the returned function is called; the oldest filter comes first. */
  filter(create: (emit: (line: Buffer) => void) => LineFilter): () => void {
    const filter: LineFilter = create((line) => {
      const next = this.#filters[this.#filters.indexOf(filter) + 1];
      if (next === undefined) this.#queue(line);
      else next.take(line);
    });
    this.#filters.push(filter);
    return () => {
      filter.flush();
      this.#filters = this.#filters.filter((other) => other !== filter);
    };
  }

  #queue(line: Buffer): void {
    if (this.#hasEnded) return;
    this.#queued.push(line);
    this.#queuedBytes += line.length;
    if (this.#queuedBytes > MAX_QUEUED_BYTES) this.#response.destroy();
    else this.#schedule();
  }

  /** Ends with an event that says why. */
  fail(status: Status): void {
    this.send(Buffer.from(`{"type":"ERROR","object":${JSON.stringify(status)}}\n`));
    this.end();
  }

  end(): void {
    for (const filter of this.#filters) filter.flush();
    this.#hasEnded = true;
    this.#schedule();
  }

  /** Breaks the connection; what has not been written is lost. */
  abort(): void {
    this.#response.destroy();
  }

  /** Writes nothing more until the returned function is called. */
  hold(): () => void {
    this.#holds++;
    return () => {
      this.#holds--;
      this.#schedule();
    };
  }

  /** Breaks the connection in the middle of a line: of the next event, or of one that never was. */
  cut(options: { at: "now" | "next-event" }): void {
    this.#cutsNextLine = true;
    // No filter keeps it back: a dead watch breaks as well.
    if (options.at === "now")
      this.#queue(Buffer.from('{"type":"MODIFIED","object":{"kind":"Cut","metadata":{"name":"in-the-middle"}}}\n'));
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isBlocked || this.#holds > 0) return;
    this.#isScheduled = true;
    setImmediate(() => {
      this.#isScheduled = false;
      this.#flush();
    });
  }

  #flush(): void {
    while (!this.#isBlocked && this.#holds === 0 && !this.#response.destroyed) {
      const chunk = this.#take();
      if (chunk === undefined) {
        if (this.#hasEnded) this.#response.end();
        return;
      }
      if (this.#cutsNextLine) return this.#writeHalf(chunk);
      this.#isBlocked = !this.#response.write(chunk);
    }
  }

  #take(): Buffer | undefined {
    const chunks: Buffer[] = [];
    let bytes = 0;
    while (bytes < WRITE_BYTES) {
      const line = this.#nextLine();
      if (line === undefined) break;
      chunks.push(line);
      bytes += line.length;
    }
    if (chunks.length === 0) return undefined;
    return chunks.length === 1 ? chunks[0] : Buffer.concat(chunks, bytes);
  }

  #nextLine(): Buffer | undefined {
    if (this.#initial !== undefined) {
      const next = this.#initial.next();
      if (next.done !== true) return next.value;
      this.#initial = undefined;
      return this.#nextLine();
    }
    return this.#nextQueued();
  }

  #nextQueued(): Buffer | undefined {
    if (this.#queued.length === 0) return undefined;
    const lines = this.#queued.length === 1 ? this.#queued[0] : Buffer.concat(this.#queued, this.#queuedBytes);
    this.#queued = [];
    this.#queuedBytes = 0;
    return lines;
  }

  #writeHalf(chunk: Buffer): void {
    const end = chunk.indexOf("\n");
    this.#response.write(chunk.subarray(0, Math.max(1, end >> 1)), () => this.#response.destroy());
  }
}
