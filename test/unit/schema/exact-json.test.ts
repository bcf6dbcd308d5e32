import { exactJson, int64Json, int64Number, parseExactJson } from "#schema/index.js";
import { assert, suite } from "../../support/suite.js";

suite("exact JSON", (test) => {
  test("parses an int64 beyond 2^53 as bigint, and other numbers as number", () => {
    const texts = [
      "9007199254740992",
      "9007199254740993",
      "-9007199254740993",
      "9223372036854775807",
      "-9223372036854775808",
    ];
    for (const text of texts) assert.is(parseExactJson(text), BigInt(text));
    for (const text of [
      ...["0", "-0", "1.5", "9007199254740991", "-9007199254740991"],
      ...[
        "9223372036854775808",
        "-9223372036854775809",
        "18446744073709551615",
        "9007199254740993.0",
        "9007199254740993e0",
      ],
    ])
      assert.is(parseExactJson(text), Number(text), text);
  });

  test("keeps digits in strings and keys", () => {
    const text =
      '{"9007199254740993":"9007199254740993, 9007199254740993","a\\\\":["\\\"",9007199254740993],"__proto__":1}';
    const value = parseExactJson(text) as { "a\\": unknown[] };
    assert.equal(Object.keys(value), ["9007199254740993", "a\\", "__proto__"]);
    assert.equal(value["a\\"], ['"', 9007199254740993n]);
    assert.is(exactJson(value), text);
  });

  test("throws for invalid JSON", () => {
    for (const text of ["[9007199254740993", "{9007199254740993}", "-", "[9007199254740993,]"])
      assert.throws(() => parseExactJson(text), /JSON/);
  });

  test("parses a string of a million characters", () => {
    const text = JSON.stringify({ a: '\\"'.repeat(500_000) }).replace("}", ',"b":9007199254740993}');
    assert.is((parseExactJson(text) as { b: bigint }).b, 9007199254740993n);
  });

  test("serializes a number as the nearest int64", () => {
    assert.is(
      int64Json([2 ** 63, -(2 ** 63), 2 ** 53, 1e17, 1.5, 1e19]),
      "[9223372036854775807,-9223372036854775808,9007199254740992,100000000000000000,1.5,10000000000000000000]",
    );
    assert.is(int64Json({ a: 9007199254740993n }), '{"a":9007199254740993}');
    assert.is(int64Number(2n ** 63n - 1n), 2 ** 63 - 1024);
  });
});
