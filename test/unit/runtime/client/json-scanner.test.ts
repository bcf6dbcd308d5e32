import fc from "../../../support/fast-check.js";
import {
  endOfValue,
  firstMember,
  isEndOfObject,
  nextMember,
  peekIdentity,
  valueOfMember,
} from "#runtime/client/object-decoder.js";
import { itemsOf, metadataOf } from "#runtime/client/pager.js";
import { isReadRight } from "../../../support/runtime/json-names.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

// Strings that look like the structure around them, and long ones, which are scanned in another way.
const nasty = fc.oneof(
  fc.stringMatching(/^[{}[\]",:\\a ]{0,12}$/),
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.stringMatching(/^[{}"\\]{0,6}$/).map((text) => text.repeat(30)),
  fc.constantFrom("items", "metadata", '"items":[', "}]}", "\\", '\\"', "x".repeat(63), `${"x".repeat(62)}\\`),
);
const json = fc.jsonValue({ maxDepth: 4, stringUnit: "grapheme" });
const value = fc.oneof(json, nasty, fc.dictionary(nasty.filter(isReadRight), fc.oneof(nasty, json)), fc.array(nasty));
const object = fc.dictionary(nasty.filter(isReadRight), value, { noNullPrototype: true });
const indent = fc.constantFrom(0, 2);

/** Writes a list with its members in this order; Go sorts those of custom resources, so that the items stand before the metadata. */
function pageOf(members: Record<string, unknown>, order: readonly string[], space: number): Buffer {
  return Buffer.from(JSON.stringify(Object.fromEntries(order.map((name) => [name, members[name]])), undefined, space));
}

suite("JSON scanner", (test) => {
  test("finds the end of any value, regardless of the content of its strings", () => {
    fc.assert(
      fc.property(value, indent, nasty, (any, space, behind) => {
        const text = JSON.stringify(any, undefined, space);
        const bytes = Buffer.from(`${text},${JSON.stringify(behind)}}`);
        assert.is(endOfValue(bytes, 0), Buffer.byteLength(text));
      }),
      { numRuns: runs(2000) },
    );
  });

  test("finds all members of an object in order", () => {
    fc.assert(
      fc.property(object, indent, (any, space) => {
        const bytes = Buffer.from(JSON.stringify(any, undefined, space));
        const found: [string, unknown][] = [];
        const parse = (start: number, end: number) => JSON.parse(bytes.toString("utf8", start, end)) as unknown;
        for (let key = firstMember(bytes, 0); !isEndOfObject(bytes, key);) {
          const value = valueOfMember(bytes, key);
          const end = endOfValue(bytes, value);
          found.push([parse(key, endOfValue(bytes, key)) as string, parse(value, end)]);
          key = nextMember(bytes, end);
        }
        assert.equal(found, Object.entries(JSON.parse(JSON.stringify(any)) as object));
      }),
      { numRuns: runs(1000) },
    );
  });
});

suite("list page", (test) => {
  test("returns the items and metadata that JSON.parse returns, in any member order", () => {
    const orders = fc.shuffledSubarray(["kind", "items", "metadata", "extra"], { minLength: 4 });
    const members = fc.record({ items: fc.array(object, { maxLength: 6 }), extra: value });
    fc.assert(
      fc.property(members, orders, indent, ({ items, extra }, order, space) => {
        const metadata = { resourceVersion: "12", continue: "next" };
        const page = pageOf({ kind: "PageList", metadata, items, extra }, order, space);
        assert.equal(metadataOf(page), metadata);
        const found: unknown[] = [];
        for (const { start, end } of itemsOf(page)) {
          found.push(JSON.parse(page.toString("utf8", start, end)));
          // Decoding moves bytes within the item.
          page.fill(0x7d, start, end);
        }
        assert.equal(found, JSON.parse(JSON.stringify(items)));
      }),
      { numRuns: runs(1000) },
    );
  });

  test("has no items if items is null, and no token if continue is empty", () => {
    const page = Buffer.from('{"items":null,"metadata":{"continue":"","resourceVersion":"3"}}\n');
    assert.equal([...itemsOf(page)], []);
    assert.equal(metadataOf(page), { resourceVersion: "3" });
  });

  test("throws an error for a list without a resourceVersion", () => {
    assert.throws(() => metadataOf(Buffer.from('{"items":[]}')), "a list states no version");
  });
});

suite("peekIdentity", (test) => {
  test("reads key and version with members in struct order and in sorted order", () => {
    const managedFields = [{ manager: "x", fieldsV1: { "f:name": {}, "f:resourceVersion": {} } }];
    const struct = { name: "a", namespace: "x", uid: "u", resourceVersion: "7", labels: { name: "no" }, managedFields };
    const sorted = { labels: { name: "no" }, managedFields, name: "a", namespace: "x", resourceVersion: "7" };
    for (const metadata of [struct, sorted]) {
      const line = Buffer.from(JSON.stringify({ spec: { metadata: { name: "no" } }, metadata }));
      assert.equal(peekIdentity(line), { key: "x/a", version: "7" });
    }
    assert.equal(peekIdentity(Buffer.from('{"metadata":{"name":"a","resourceVersion":"7"}}')), {
      key: "a",
      version: "7",
    });
    assert.is(peekIdentity(Buffer.from('{"metadata":{"name":"a"}}')), undefined);
  });
});
