const NEWLINE = 0x0a;

/** Cuts a stream of bytes into lines; a line is a view of the chunk it came in, or a copy if it came in several. */
export class LineSplitter {
  #parts: Buffer[] = [];

  /** Calls `onLine` for each line that `chunk` completes. */
  push(chunk: Buffer, onLine: (line: Buffer) => void): void {
    let start = 0;
    for (;;) {
      const newline = chunk.indexOf(NEWLINE, start);
      if (newline === -1) break;
      let line = chunk.subarray(start, newline);
      if (this.#parts.length > 0) {
        line = Buffer.concat([...this.#parts, line]);
        this.#parts = [];
      }
      if (line.length > 0) onLine(line);
      start = newline + 1;
    }
    if (start < chunk.length) this.#parts.push(chunk.subarray(start));
  }

  /** Whether the stream ended in the middle of a line. */
  get hasRest(): boolean {
    return this.#parts.length > 0;
  }
}
