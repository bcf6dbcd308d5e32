import { yamlOf } from "#apiserver/http/representation.js";
import fc from "../../../support/fast-check.js";
import { parse } from "yaml";
import type { JsonObject } from "#apiserver/json.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

const TEXTS = [
  "yes",
  "on",
  "1_000",
  "0755",
  "0x1f",
  "1:30",
  "1.5e3",
  "2020-01-01",
  "2020-01-01T00:00:00Z",
  "~",
  "",
  "null",
  "y",
  "N",
  "=",
  "<<",
];
const MORE_TEXTS = [
  ".inf",
  ".nan",
  "+1",
  "1e3",
  "a\tb",
  "a\u0085b",
  "\ufeffx",
  " x",
  "x ",
  "a: b",
  "a #b",
  "- a",
  "*a",
  "&a",
  "!a",
  "a\n",
  "a\nb",
  "\n",
  "..",
];

// A dot is a text to Go, and a number to the library that reads here.
const text = fc
  .oneof(fc.constantFrom(...TEXTS, ...MORE_TEXTS), fc.string({ unit: "grapheme" }))
  .filter((one) => one !== ".");
const object = fc.dictionary(
  text.filter((key) => key !== "__proto__"),
  fc.oneof(text, fc.integer(), fc.boolean(), fc.constant(null), fc.array(text), fc.constant({})),
  { noNullPrototype: true },
);

suite("YAML response", (test) => {
  test("parses to the same value as the JSON response in YAML 1.1 and 1.2", () => {
    fc.assert(
      fc.property(object, (value) => {
        const written = yamlOf({ value } as JsonObject);
        assert.equal(parse(written, { version: "1.1", merge: false }), { value });
        assert.equal(parse(written, { version: "1.2" }), { value });
      }),
      { numRuns: runs(300) },
    );
  });

  test("writes dots unquoted and doubles apostrophes", () => {
    assert.is(yamlOf({ ".": ".", a: "it's: b" }), ".: .\na: 'it''s: b'\n");
  });

  test("sorts keys and writes repeated values without aliases", () => {
    const same = { a: {} };
    assert.is(yamlOf({ z: same, b: [same, same] }), "b:\n- a: {}\n- a: {}\nz:\n  a: {}\n");
  });
});
