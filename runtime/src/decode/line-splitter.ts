const NEWLINE = 0x0a;

/** How long a line may be. One that arrives in a single chunk is not refused: it is in memory already. */
export interface LineLimit {
  readonly maxBytes: number;
  /** Returns what is thrown if a line is longer. */
  createError(): Error;
}

/** Cuts a stream of bytes into lines; a line is a view of the chunk it came in, or a copy if it came in several. */
export class LineSplitter {
  readonly #limit: LineLimit;
  #parts: Buffer[] = [];
  /** Of the parts. */
  #bytes = 0;

  constructor(limit: LineLimit) {
    this.#limit = limit;
  }

  /**
   * Returns the lines that `chunk` completes, one by one; all of them have to be asked for before the next chunk. Throws if the line that it
   * begins or goes on with is too long.
   */
  *split(chunk: Buffer): Generator<Buffer, void> {
    let start = 0;
    for (let newline = chunk.indexOf(NEWLINE); newline !== -1; newline = chunk.indexOf(NEWLINE, start)) {
      let line = chunk.subarray(start, newline);
      start = newline + 1;
      if (this.#parts.length > 0) {
        line = Buffer.concat([...this.#parts, line]);
        this.#parts = [];
        this.#bytes = 0;
      }
      if (line.length > 0) yield line;
    }
    if (start === chunk.length) return;
    this.#bytes += chunk.length - start;
    if (this.#bytes > this.#limit.maxBytes) throw this.#limit.createError();
    this.#parts.push(chunk.subarray(start));
  }
}
