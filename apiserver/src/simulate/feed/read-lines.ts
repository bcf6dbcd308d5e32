const NEWLINE = 10;

/** Yields the lines of a stream of bytes; what follows the last newline is dropped, as it was cut off. */
export async function* readLines(stream: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let pending: Buffer[] = [];
  for await (const chunk of stream) {
    let start = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, start)) {
      pending.push(chunk.subarray(start, end));
      start = end + 1;
      const line = Buffer.concat(pending).toString();
      pending = [];
      if (line !== "") yield line;
    }
    if (start < chunk.length) pending.push(chunk.subarray(start));
  }
}
