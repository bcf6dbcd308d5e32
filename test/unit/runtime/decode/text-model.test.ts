import fc from "fast-check";
import { endOfString } from "#runtime/decode/json-scanner.js";
import { LONGEST_BYTES, TextModel } from "#runtime/decode/text-model.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

// Strings that look like the structure around them, that begin alike, and that are longer than what is compared at once.
const text = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.stringMatching(/^[{}[\]",:\\ ]{0,6}$/),
  fc.stringMatching(/^a{0,10}[\\"é]{0,3}$/),
  fc.constantFrom("", "a", "ab", "abcdefgh", "abcdefghijkl", '"', "\\", "\\\\", "\u007f\u0000", "😀"),
);
const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { depthSize: "small" },
    text,
    fc.constantFrom(0, 1, 12, true, null),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.array(fc.tuple(text, tie("value")), { maxLength: 4 }).map((members) => Object.fromEntries(members)),
  ),
})).value;
const indent = fc.constantFrom(0, 2);

const STRING = /"(?:[^"\\]|\\.)*"/gs;

/** What is left of a text without what its strings say. */
function skeletonOf(json: string): string {
  return json.replace(STRING, '""');
}

/** Writes a value with other strings, one after the other, in the place of its own. */
function withStrings(any: unknown, strings: readonly string[], space: number): string {
  let next = 0;
  return JSON.stringify(any, undefined, space).replace(STRING, (own) =>
    strings.length === 0 ? own : JSON.stringify(strings[next++ % strings.length]),
  );
}

function stringsOf(bytes: Buffer, start: number) {
  const strings = [];
  for (let at = bytes.indexOf(0x22, start); at !== -1; at = bytes.indexOf(0x22, strings.at(-1)!.end))
    strings.push({ start: at, end: endOfString(bytes, at) });
  return strings;
}

function modelOf(json: string, before = ""): TextModel {
  const bytes = Buffer.from(before + json);
  const model = new TextModel();
  model.take(bytes, { start: before.length, end: bytes.length }, stringsOf(bytes, before.length));
  return model;
}

const matches = (model: TextModel, json: string) => {
  const bytes = Buffer.from(json);
  return model.matches(bytes, { start: 0, end: bytes.length });
};

suite("text model", (test) => {
  test("texts match if they are equal but for what their strings say", () => {
    const pair = fc.tuple(value, indent, fc.array(text, { maxLength: 5 }), fc.option(value), fc.boolean());
    fc.assert(
      fc.property(pair, fc.array(text, { maxLength: 3 }), ([any, space, strings, other, isCut], earlier) => {
        const json = JSON.stringify(any, undefined, space);
        const model = modelOf(json, "  ");
        // What was compared before must leave no trace.
        matches(model, withStrings(any, earlier, space));
        const compared = other === null ? withStrings(any, strings, space) : JSON.stringify(other, undefined, space);
        assert.is(matches(model, compared), skeletonOf(compared) === skeletonOf(json));
        // Not a whole text, as far as a text can end there.
        if (isCut) assert.is(matches(model, `${json}}`), false);
      }),
      { numRuns: runs(3000) },
    );
  });

  test("every place outside of strings is found again", () => {
    const before = "x: ";
    fc.assert(
      fc.property(value, indent, fc.array(text, { minLength: 1, maxLength: 5 }), (any, space, strings) => {
        const json = JSON.stringify(any, undefined, space);
        const other = Buffer.from(before + withStrings(any, strings, space));
        const model = modelOf(json);
        matches(model, withStrings(any, ["before", ...strings], space));
        assert.ok(model.matches(other, { start: before.length, end: other.length }));
        const [bytes, own] = [Buffer.from(json), stringsOf(Buffer.from(json), 0)];
        const isInside = (at: number) => own.some(({ start, end }) => at > start && at < end);
        for (let at = 0; at < bytes.length; at++)
          if (!isInside(at)) assert.is(other[model.placeOf(at)], bytes[at], `${json} at ${at}`);
        assert.is(model.placeOf(bytes.length), other.length);
      }),
      { numRuns: runs(1000) },
    );
  });

  test("a string that is not said to vary may not", () => {
    const bytes = Buffer.from('{"a":"b","c":"d"}');
    const model = new TextModel();
    model.take(bytes, { start: 0, end: bytes.length }, [{ start: 13, end: 16 }]);
    assert.equal([matches(model, '{"a":"b","c":"xyz"}'), matches(model, '{"a":"x","c":"d"}')], [true, false]);
    assert.is(matches(model, '{"a":"b","x":"d"}'), false);
  });

  test("texts of any length are compared, but for those that are too long", () => {
    const textOf = (length: number) => JSON.stringify(["a".repeat(length - 4)]);
    const lengths = [5, 30_000, LONGEST_BYTES, 6];
    for (const own of lengths)
      for (const other of lengths) assert.ok(matches(modelOf(textOf(own)), textOf(other)), `${other} as ${own}`);
    assert.is(matches(modelOf(textOf(5)), textOf(LONGEST_BYTES + 1)), false);
  });
});
