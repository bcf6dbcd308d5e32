import { readLines } from "#apiserver/simulate/feed/api-client.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

suite("readLines", (test) => {
  test("yields the same lines for any split into chunks, and drops an unterminated last line", () =>
    fc.assert(
      fc.asyncProperty(
        fc.array(fc.string({ unit: fc.constantFrom("ä", "€", "x", "😀"), minLength: 1 })),
        fc.array(fc.nat(40)),
        async (lines, cuts) => {
          const bytes = Buffer.from(lines.map((line) => `${line}\n`).join("") + "cut off");
          assert.equal(await collect(pieces(bytes, cuts)), lines);
        },
      ),
    ));
});

async function* pieces(bytes: Buffer, cuts: number[]): AsyncGenerator<Buffer> {
  let start = 0;
  for (const length of cuts) {
    yield bytes.subarray(start, start + length);
    start = Math.min(bytes.length, start + length);
  }
  yield bytes.subarray(start);
}

async function collect(stream: AsyncIterable<Buffer>): Promise<string[]> {
  const lines: string[] = [];
  for await (const line of readLines(stream)) lines.push(line);
  return lines;
}
