import { decodeText } from "#generator/read/project-files.js";
import { assert, suite } from "../../../support/suite.js";

suite("decodeText", (test) => {
  const UTF_8 = "save the file as UTF-8";
  const cases: readonly (readonly [title: string, bytes: Buffer, place: string, hint?: string])[] = [
    ["Latin-1", Buffer.from("a: b\nc: caf\u00e9\n", "latin1"), "2:7 0xe9"],
    ["UTF-16", Buffer.from("\ufeffa: b", "utf16le"), "1:1 0xff", "save the file as UTF-8 instead of UTF-16"],
    ["a truncated character at the end", Buffer.from("\u00e4\n\u20ac").subarray(0, 5), "2:1 0xe2"],
    ["a truncated character within a line", Buffer.from([0x61, 0xe2, 0x82, 0x0a]), "1:2 0xe2"],
    [
      "an invalid byte after multi-byte characters",
      Buffer.concat([Buffer.from("\u{1f600}\u00e4"), Buffer.from([0xc0])]),
      "1:4 0xc0",
    ],
    ["a surrogate", Buffer.from([0xed, 0xa0, 0x80]), "1:1 0xed"],
  ];
  for (const [title, bytes, place, hint = UTF_8] of cases)
    test(`reports ${title} at its line and column`, () => {
      const found = decodeText("a.yaml", bytes);
      if (typeof found === "string") throw new Error(`read as ${found}`);
      const byte = /0x[0-9a-f]{2}/.exec(found.message)?.[0];
      assert.is(`${found.position?.line}:${found.position?.column} ${byte}`, place);
      assert.is(found.hint, hint);
    });

  test("returns UTF-8 text without the byte order mark", () => {
    assert.is(decodeText("a.yaml", Buffer.from("\ufeffä €\ufffd")), "ä €\ufffd");
    assert.is(decodeText("a.yaml", Buffer.alloc(0)), "");
  });
});
