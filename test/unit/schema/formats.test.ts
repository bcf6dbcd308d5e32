import { hasFormat, isKnownFormat } from "@gen-operator/schema";
import { assert, suite } from "../../support/suite.js";

/** Texts that kube-apiserver 1.36 accepts and refuses. */
const TEXTS: { readonly [format: string]: { readonly has: readonly string[]; readonly lacks: readonly string[] } } = {
  duration: {
    has: ["0", "-0", "1h30m", "1.5h", "-2s", "3 weeks", "10 secondos", "1 moon 2 days", "99999999999h", "1µs", "1μs"],
    lacks: ["", "1", "1 moon", "9223372036854775808 s", "h", "1.5.h2"],
  },
  hostname: {
    has: ["a", "a-b", "a.example", "a-b-c.example", "ö.example"],
    lacks: ["", "a-b-c", "a.e", "-a", "a_b", "a.example.", `${"a".repeat(64)}.example`],
  },
  uri: { has: ["ftp:", "/a b", "*", "http://"], lacks: ["a", "http://[", "http://a/%zz", "/a%zz", "http://a\u0001"] },
  ipv4: { has: ["10.0.0.1", "010.0.0.001", "::ffff:1.2.3.4"], lacks: ["10.0.0", "10.0.0.256", "::1"] },
  ipv6: { has: ["::1"], lacks: ["fe80::1%eth0", "10.0.0.1"] },
  cidr: { has: ["10.0.0.0/8", "::/0"], lacks: ["10.0.0.0/33", "10.0.0.0"] },
  byte: { has: ["YQ==", "YWI="], lacks: ["", "YQ", "Y Q=", "YW\nI=", "YQ==\n"] },
  "date-time": {
    has: ["2026-11-24T15:00:00Z", "2026-11-24t15:00:00.5+01:00"],
    lacks: ["2026-11-24", "2026-02-30T00:00:00Z"],
  },
  uuid: { has: ["f47ac10b-58cc-4372-a567-0e02b2c3d479"], lacks: ["f47ac10b"] },
};

suite("string format", (test) => {
  for (const [format, { has, lacks }] of Object.entries(TEXTS))
    test(`accepts and rejects the same strings as kube-apiserver: ${format}`, () => {
      assert.equal(
        has.filter((text) => hasFormat(text, format) !== true),
        [],
      );
      assert.equal(
        lacks.filter((text) => hasFormat(text, format) !== false),
        [],
      );
    });

  test("is not validated if unknown", () => {
    assert.is(hasFormat("anything", "color"), undefined);
    assert.is(isKnownFormat("color"), false);
  });

  test("is known only for its type, which is string by default", () => {
    assert.equal(
      [isKnownFormat("date"), isKnownFormat("date", "string"), isKnownFormat("date", "object")],
      [true, true, false],
    );
    assert.equal(
      [isKnownFormat("int64"), isKnownFormat("int64", "integer"), isKnownFormat("int64", "number")],
      [false, true, false],
    );
  });
});
