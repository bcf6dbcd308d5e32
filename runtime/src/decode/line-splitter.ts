const NEWLINE = 0x0a;

/** Cuts a stream of bytes into lines; a line is a view of the chunk it came in, or a copy if it came in several. */
export class LineSplitter {
  #parts: Buffer[] = [];

  /** Returns the lines that `chunk` completes, one by one; all of them have to be asked for before the next chunk. */
  *split(chunk: Buffer): Generator<Buffer, void> {
    let start = 0;
    for (let newline = chunk.indexOf(NEWLINE); newline !== -1; newline = chunk.indexOf(NEWLINE, start)) {
      let line = chunk.subarray(start, newline);
      start = newline + 1;
      if (this.#parts.length > 0) {
        line = Buffer.concat([...this.#parts, line]);
        this.#parts = [];
      }
      if (line.length > 0) yield line;
    }
    if (start < chunk.length) this.#parts.push(chunk.subarray(start));
  }
}
