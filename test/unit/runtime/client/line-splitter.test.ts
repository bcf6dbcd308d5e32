import { LineSplitter } from "#runtime/client/transport.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

suite("LineSplitter", (test) => {
  test("rejects a line above the limit before its end arrives, and counts each line separately", () => {
    const splitter = new LineSplitter({ maxBytes: 10, createError: () => new Error("too long") });
    const split = (text: string) => [...splitter.split(Buffer.from(text))].map(String);
    for (let round = 0; round < 3; round++) {
      assert.equal(split("01234"), []);
      assert.equal(split("56789"), []);
      assert.equal(split("\n012345678\n"), ["0123456789", "012345678"]);
    }
    assert.equal(split("a\n0123456789"), ["a"]);
    assert.throws(() => split("0"), /^too long$/);
  });

  test("returns the same lines however the bytes are split into chunks", () => {
    const text = fc.array(fc.constantFrom("a", "ä", "€", "😀", "\n", "\n", "{}", ""), { maxLength: 40 });
    const cuts = fc.array(fc.nat({ max: 80 }), { maxLength: 12 });
    fc.assert(
      fc.property(text, cuts, (parts, positions) => {
        const bytes = Buffer.from(parts.join(""));
        const splitter = new LineSplitter({ maxBytes: 1_000, createError: () => new Error("too long") });
        const lines: string[] = [];
        let start = 0;
        for (const position of [...positions.filter((cut) => cut < bytes.length).sort((a, b) => a - b), bytes.length]) {
          // A chunk is a view of memory that the transport reuses for nothing else.
          for (const line of splitter.split(Buffer.from(bytes.subarray(start, position))))
            lines.push(line.toString("utf8"));
          start = position;
        }
        const expected = bytes.toString("utf8").split("\n");
        // What follows the last line feed is no line yet.
        expected.pop();
        assert.equal(
          lines,
          expected.filter((line) => line !== ""),
        );
      }),
      { numRuns: 500 },
    );
  });
});
