import fc from "../../../support/fast-check.js";
import { applyDefaults, dropNulls, pruneUnknownFields } from "#schema/definitions/structural-schema.js";
import { validateCustomResource } from "#apiserver/registry/custom-rules.js";
import type { JsonObject } from "#apiserver/json.js";
import type { RawSchema } from "#generator/model/project-model.js";
import { parseResource, type SchemaError } from "#runtime/api/define-resource.js";
import { customDefinition } from "../../../support/kinds/kind-definitions.js";
import { runs } from "../../../support/runs.js";
import { assert, suite } from "../../../support/suite.js";

const identity = { apiVersion: "example.com/v1", kind: "Thing", metadata: { name: "a", namespace: "b" } };
const text = { type: "string" };

function definitionOf(spec: object, others: object = {}) {
  const openAPIV3Schema = { type: "object", properties: { spec, ...others } };
  const version = { name: "v1", schema: { openAPIV3Schema }, subresources: {} };
  const names = { kind: "Thing", plural: "things" };
  return customDefinition({
    spec: { group: "example.com", scope: "Namespaced", names, versions: [version] },
  } as unknown as Parameters<typeof customDefinition>[0]);
}

const parseSpec = (schema: object, spec: unknown): unknown =>
  (parseResource(definitionOf(schema), { ...identity, spec }) as unknown as { spec: unknown }).spec;

function problemsOf(schema: object, spec: unknown): readonly string[] {
  try {
    parseSpec(schema, spec);
    return [];
  } catch (error) {
    return (error as SchemaError).problems.map(({ path, message }) => `${path} ${message}`);
  }
}

/** Fails unless the CPU time of a call grows at most linearly with its size. */
function assertLinear(call: (size: number) => void): void {
  const cpuMs = (size: number) => {
    const start = process.cpuUsage();
    call(size);
    const { user, system } = process.cpuUsage(start);
    return (user + system) / 1000;
  };
  const [few, many] = [cpuMs(20_000), cpuMs(80_000)];
  // Twice the growth of the size; less than 50 ms is noise.
  assert.ok(many <= 8 * Math.max(few, 50), `${few} ms of CPU for 20,000, ${many} ms for 80,000`);
}

suite("parse", (test) => {
  const valid: [title: string, schema: object, value: unknown][] = [
    ["the anchors \\A and \\z in a pattern", { ...text, pattern: "\\Aa+\\z" }, "aa"],
    ["the class \\pL in a pattern", { ...text, pattern: "^\\pL$" }, "é"],
    ["the class \\p{L} in a pattern", { ...text, pattern: "^\\p{L}$" }, "é"],
    ["a POSIX class in a pattern", { ...text, pattern: "^[[:alnum:]]+$" }, "a1"],
    ["a quoted literal in a pattern", { ...text, pattern: "^\\Qa.b\\E$" }, "a.b"],
    ["a code point in a pattern", { ...text, pattern: "^\\x{41}$" }, "A"],
    ["a bell escape in a pattern", { ...text, pattern: "^\\a$" }, "\u0007"],
    ["an emoji for a dot in a pattern", { ...text, pattern: "^.$" }, "😀"],
    ["a flag in a pattern", { ...text, pattern: "(?i)^on$" }, "ON"],
    ["an object listed in the enum", { type: "object", properties: { a: text }, enum: [{ a: "b" }] }, { a: "b" }],
    ["an array listed in the enum", { type: "array", items: text, enum: [["a"], ["b"]] }, ["b"]],
    ["a multiple of 0.1", { type: "number", multipleOf: 0.1 }, 0.3],
    ["null for a nullable field", { type: "object", properties: { a: { ...text, nullable: true } } }, { a: null }],
    [
      "one matching alternative of oneOf",
      { type: "object", properties: { a: text, b: text }, oneOf: [{ required: ["a"] }, { required: ["b"] }] },
      { b: "x" },
    ],
    ["a lower-case class name in a pattern", { ...text, pattern: "^\\p{greek}$" }, "α"],
    ["a long class name in a pattern", { ...text, pattern: "^\\p{Lowercase_Letter}$" }, "a"],
    ["an IPv4-mapped IPv6 address for format ipv4", { ...text, format: "ipv4" }, "::ffff:1.2.3.4"],
    ["a scheme alone for format uri", { ...text, format: "uri" }, "ftp:"],
    ["a path with a space for format uri", { ...text, format: "uri" }, "/a b"],
    ["an email address with a quoted local part", { ...text, format: "email" }, '"a b"@c'],
    ["an integer at the integral part of a fractional minimum", { type: "number", minimum: 0.5 }, 0],
    ["a fraction above the minimum", { type: "number", minimum: 0.5 }, 0.6],
    [
      "an int-or-string that matches the other constraints",
      { "x-kubernetes-int-or-string": true, not: { enum: [1] } },
      2,
    ],
    ["the maximum int64, rounded to 2^63", { type: "integer", format: "int64" }, 2 ** 63],
    ["the minimum int64", { type: "integer" }, -(2 ** 63)],
    ["the maximum int64 above a minimum", { type: "integer", minimum: 2 ** 62 }, 2 ** 63],
    ["the maximum int64 listed in the enum", { type: "integer", enum: [2 ** 63] }, 2 ** 63],
    ["the maximum int64 for an int-or-string", { "x-kubernetes-int-or-string": true }, 2 ** 63],
    ["the minimum int64 for an int-or-string", { "x-kubernetes-int-or-string": true }, -(2 ** 63)],
    [
      "2^53 + 1, rounded to an exclusive minimum",
      { type: "integer", minimum: 2 ** 53, exclusiveMinimum: true },
      2 ** 53,
    ],
    [
      "-2^53 - 1, rounded to an exclusive maximum",
      { type: "integer", maximum: -(2 ** 53), exclusiveMaximum: true },
      -(2 ** 53),
    ],
    ["2^53 + 1 as a multiple of 3, although its rounded value is none", { type: "integer", multipleOf: 3 }, 2 ** 53],
    [
      "distinct set items that round to the same number",
      { type: "array", "x-kubernetes-list-type": "set", items: { type: "integer" } },
      [2 ** 53, 2 ** 53],
    ],
    ["a free-form object", { type: "object", "x-kubernetes-preserve-unknown-fields": true }, { a: [{ b: null }] }],
  ];
  for (const [title, schema, value] of valid)
    test(`accepts ${title}`, () => assert.equal(problemsOf(schema, value), []));

  const intOrString = { "x-kubernetes-int-or-string": true };
  const invalid: [title: string, schema: object, value: unknown, path: string][] = [
    ["a bad escape in a URL", { ...text, format: "uri" }, "http://a/%zz", "spec"],
    ["a line break in base64", { ...text, format: "byte" }, "YQ==\n", "spec"],
    ["an int-or-string excluded by not", { "x-kubernetes-int-or-string": true, not: { enum: [1] } }, 1, "spec"],
    [
      "an int-or-string that violates allOf",
      { "x-kubernetes-int-or-string": true, allOf: [{ minimum: 2 }] },
      1,
      "spec",
    ],
    [
      "an int-or-string that violates the allOf beside its alternatives",
      {
        "x-kubernetes-int-or-string": true,
        allOf: [{ anyOf: [{ type: "integer" }, { type: "string" }] }, { pattern: "^a" }],
      },
      "b",
      "spec",
    ],
    ["every integer, if the minimum is a fraction", { type: "integer", minimum: 0.5 }, 3, "spec"],
    ["every integer, if the maximum exceeds int64", { type: "integer", maximum: 2 ** 63 }, 3, "spec"],
    ["every integral number, if the maximum exceeds int64", { type: "number", maximum: 2 ** 63 }, 3, "spec"],
    [
      "an integer that is not a multiple of the integral part of a fractional multipleOf",
      { type: "number", multipleOf: 2.5 },
      5,
      "spec",
    ],
    [
      "an unknown field of an object without properties, which the API server drops",
      { type: "object" },
      { a: 1 },
      "spec.a",
    ],
    [
      "an unknown field of an array item without properties",
      { type: "array", items: { type: "object", nullable: true } },
      [null, { a: 1 }],
      "spec[1].a",
    ],
    [
      "an unknown field of a map value without properties",
      { type: "object", additionalProperties: { type: "object", properties: {} } },
      { b: { a: 1 } },
      "spec.b.a",
    ],
    [
      "a missing required field that is named like an inherited member",
      { type: "object", required: ["toString"], properties: { toString: text } },
      {},
      "spec.toString",
    ],
    ["an int-or-string above its maximum", { ...intOrString, maximum: 5 }, 6, "spec"],
    ["a fraction for an int-or-string", intOrString, 1.5, "spec"],
    [
      "an embedded resource without kind",
      { type: "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true },
      { apiVersion: "v1" },
      "spec.kind",
    ],
    [
      "a duplicate item of a set",
      { type: "array", items: text, "x-kubernetes-list-type": "set" },
      ["a", "b", "a"],
      "spec[2]",
    ],
    [
      "a duplicate key of a map list",
      {
        type: "array",
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["a"],
        items: { type: "object", required: ["a"], properties: { a: text, b: text } },
      },
      [
        { a: "x", b: "1" },
        { a: "x", b: "2" },
      ],
      "spec[1]",
    ],
    ["null for a nullable field whose enum lacks null", { ...text, nullable: true, enum: ["a"] }, null, "spec"],
    [
      "null for a nullable field whose enum contains null",
      { ...text, nullable: true, enum: ["a", null] },
      null,
      "spec",
    ],
    ["null in an array", { type: "array", items: text }, [null], "spec[0]"],
    ["an invalid date-time", { ...text, format: "date-time" }, "yesterday", "spec"],
    ["a number above int64", { type: "integer" }, 2 ** 63 + 2048, "spec"],
    ["a number below int64", { type: "integer" }, -(2 ** 63) - 2048, "spec"],
    ["the maximum int64 for an int32", { type: "integer", format: "int32" }, 2 ** 63, "spec"],
    ["the maximum int64 above a maximum", { type: "integer", maximum: 2 ** 62 }, 2 ** 63, "spec"],
    ["a number above int32", { type: "integer", format: "int32" }, 2 ** 31, "spec"],
    [
      "a value that matches both alternatives of oneOf",
      { type: "object", properties: { a: text, b: text }, oneOf: [{ required: ["a"] }, { required: ["b"] }] },
      { a: "x", b: "x" },
      "spec",
    ],
    [
      "a value excluded by not",
      { type: "object", properties: { a: text }, not: { required: ["a"] } },
      { a: "x" },
      "spec",
    ],
    ["an unknown field", { type: "object", properties: { a: text } }, { b: 1 }, "spec.b"],
    [
      "a field called __proto__",
      { type: "object", properties: { a: text } },
      JSON.parse('{"__proto__":{}}'),
      "spec.__proto__",
    ],
    ["NaN", { type: "number" }, NaN, "spec"],
    ["a Date", { ...text, format: "date-time" }, new Date(0), "spec"],
  ];
  for (const [title, schema, value, path] of invalid)
    test(`rejects ${title}`, () => {
      const problems = problemsOf(schema, value);
      assert.ok(
        problems.some((problem) => problem.startsWith(`${path} `)),
        problems.join("; "),
      );
    });

  for (const pattern of ["^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "(x+x+)+y", "^([a-zA-Z0-9]+\\s?)+$"])
    test(`matches ${pattern} in time linear in the length of the string`, () =>
      assertLinear((length) => assert.is(problemsOf({ ...text, pattern }, `${"a".repeat(length)}!`).length, 1)));

  test("applies defaults from the root down, also within defaults, and does not modify the input", () => {
    const inner = { type: "object", properties: { port: { type: "integer", default: 80 } } };
    const list = { type: "array", items: inner };
    const schema = {
      type: "object",
      properties: { inner: { ...inner, default: {} }, list, other: inner, name: { ...text, default: "x" } },
    };
    const given = Object.freeze({ list: Object.freeze([Object.freeze({})]), name: null });
    assert.equal(parseSpec(schema, given), { list: [{ port: 80 }], name: "x", inner: { port: 80 } });
    assert.equal(given, { list: [{}], name: null });
  });

  test("returns separate copies of a default value", () => {
    const schema = { type: "object", properties: { list: { type: "array", items: text, default: ["a"] } } };
    const [one, two] = [parseSpec(schema, {}), parseSpec(schema, {})] as { list: string[] }[];
    one?.list.push("b");
    assert.equal(two?.list, ["a"]);
  });

  test("drops null for a field that is not nullable, as the API server does", () => {
    const schema = { type: "object", properties: { a: text, b: { ...text, nullable: true } } };
    assert.equal(parseSpec(schema, { a: null, b: null }), { b: null });
  });

  test("requires a name, and the namespace of a namespaced kind unless an option sets it", () => {
    const definition = definitionOf({ type: "object" });
    const placed = parseResource(definition, { ...identity, metadata: { name: "a" } }, { namespace: "c" });
    assert.equal(placed.metadata, { name: "a", namespace: "c" });
    assert.throws(() => parseResource(definition, { ...identity, metadata: { name: "a" } }), "metadata.namespace");
    assert.throws(() => parseResource(definition, { ...identity, metadata: { generateName: "a-" } }), "metadata.name");
  });

  test("validates the name with the schema of the kind", () => {
    const metadata = { type: "object", properties: { name: { ...text, maxLength: 3 } } };
    const definition = definitionOf({ type: "object" }, { metadata });
    assert.is(parseResource(definition, identity).metadata.name, "a");
    const long = { ...identity, metadata: { name: "long", namespace: "b" } };
    assert.throws(() => parseResource(definition, long), "metadata.name: must have at most 3 characters");
  });

  test("validates metadata types, accepts null that a server drops, and fields of newer servers", () => {
    const definition = definitionOf({ type: "object" });
    const parse = (metadata: object) =>
      parseResource(definition, { ...identity, metadata: { ...identity.metadata, ...metadata } });
    const taken = { creationTimestamp: null, labels: null, ownerReferences: [], newField: { a: 1 }, generation: 3 };
    assert.equal(parse(taken).metadata, { ...identity.metadata, ...taken } as object);
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: "a" };
    for (const [metadata, problem] of [
      [{ labels: { a: 1 } }, "metadata.labels.a: must be string, is number"],
      [{ annotations: ["a"] }, "metadata.annotations: must be object, is array"],
      [{ finalizers: "a" }, "metadata.finalizers: must be array, is string"],
      [{ ownerReferences: [owner] }, "metadata.ownerReferences[0].uid: is required"],
      [
        { ownerReferences: [{ ...owner, uid: "1", controller: "yes" }] },
        "metadata.ownerReferences[0].controller: must be",
      ],
      [{ managedFields: [{ fieldsV1: "{}" }] }, "metadata.managedFields[0].fieldsV1: must be object, is string"],
      [{ generation: "1" }, "metadata.generation: must be integer, is string"],
    ] as const)
      assert.throws(() => parse(metadata), problem);
  });

  test("validates name, labels, annotations and finalizers as the API server does", () => {
    const parse = (metadata: object) =>
      parseResource(definitionOf({ type: "object" }), { ...identity, metadata: { ...identity.metadata, ...metadata } });
    const taken = { labels: { "a.b/c": "", d: "E-1" }, annotations: { "A.b/c": "any text" }, finalizers: ["a.b/c"] };
    assert.equal(parse(taken).metadata, { ...identity.metadata, ...taken });
    for (const [metadata, problem] of [
      [{ name: "A" }, "metadata.name: a lowercase RFC 1123 subdomain"],
      [{ namespace: "a.b" }, "metadata.namespace: must not contain dots"],
      [{ labels: { "a/b/c": "" } }, "metadata.labels[a/b/c]: a valid label key"],
      [{ labels: { "A.b/c": "" } }, "metadata.labels[A.b/c]: prefix part"],
      [{ labels: { a: "b c" } }, "metadata.labels[a]: a valid label must"],
      [{ annotations: { "": "" } }, "metadata.annotations[]: name part must be non-empty"],
      [{ annotations: { a: "b".repeat(262_144) } }, "metadata.annotations: must have at most 262144 bytes"],
      [{ finalizers: ["a b"] }, "metadata.finalizers[0]: name part"],
      [{ generation: -1 }, "metadata.generation: must be at least 0"],
    ] as const)
      assert.throws(() => parse(metadata), problem);
  });

  test("validates type and metadata of an embedded resource as the API server does", () => {
    const embedded = { type: "object", "x-kubernetes-embedded-resource": true };
    const open = { ...embedded, "x-kubernetes-preserve-unknown-fields": true };
    const item = { type: "array", items: { ...embedded, properties: { spec: { type: "object" } } } };
    const object = { apiVersion: "v1", kind: "ConfigMap" };
    const taken = { ...object, metadata: { name: "A_b", labels: null, newField: 1 } };
    assert.equal(problemsOf(open, taken), []);
    assert.equal(problemsOf(item, [taken, object]), []);
    for (const [resource, problem] of [
      [{ ...object, metadata: "a" }, "spec.metadata must be object, is string"],
      [{ ...object, metadata: { labels: { a: 1 } } }, "spec.metadata.labels.a must be string, is number"],
      [{ ...object, metadata: { labels: { a: "b c" } } }, "spec.metadata.labels[a] a valid label must"],
      [{ ...object, metadata: { name: "a/b" } }, "spec.metadata.name may not contain '/'"],
      [{ ...object, apiVersion: "a/b/c" }, "spec.apiVersion must be VERSION or GROUP/VERSION"],
      [{ ...object, kind: "Config_Map" }, "spec.kind a DNS-1035 label must"],
    ] as const) {
      const starts = (problems: readonly string[], start: string) => problems.some((each) => each.startsWith(start));
      assert.ok(starts(problemsOf(open, resource), problem), problemsOf(open, resource).join("; "));
      assert.ok(starts(problemsOf(item, [resource]), problem.replace("spec", "spec[0]")), problem);
    }
  });

  test("accepts unknown fields of items of a list that preserves them, as the API server does", () => {
    const open = { type: "array", "x-kubernetes-preserve-unknown-fields": true };
    const declared = { type: "object", properties: { a: { type: "object", properties: { b: text } } } };
    const list = (items: object) => ({ type: "object", properties: { list: { ...open, items } } });
    for (const [items, value] of [
      [declared, [{ a: { b: "x" }, c: 1 }]],
      [{ type: "object" }, [{ c: 1 }]],
      [{ type: "array", items: declared }, [[{ a: { b: "x" }, c: 1 }]]],
    ] as const)
      assert.equal(problemsOf(list(items), { list: value }), []);
    assert.equal(problemsOf(list(declared), { list: [{ a: { c: 1 } }] }), [
      "spec.list[0].a.c is not a field of the schema",
    ]);
  });

  test("validates owner references as the API server does", () => {
    const owner = { apiVersion: "v1", kind: "ConfigMap", name: "a", uid: "1", controller: true };
    const problemsOfOwners = (...ownerReferences: readonly object[]): readonly string[] => {
      try {
        parseResource(definitionOf({}), { ...identity, metadata: { ...identity.metadata, ownerReferences } });
        return [];
      } catch (error) {
        return (error as SchemaError).problems.map(({ path, message }) => `${path} ${message}`);
      }
    };
    for (const others of [[], [owner], [{ ...owner, uid: "2", controller: false }]])
      assert.equal(problemsOfOwners(owner, ...others), []);
    const at = "metadata.ownerReferences[0]";
    for (const [reference, problem] of [
      [{ kind: "" }, `${at}.kind must not be empty`],
      [{ name: "" }, `${at}.name must not be empty`],
      [{ uid: "" }, `${at}.uid must not be empty`],
      [{ apiVersion: "" }, `${at}.apiVersion must be VERSION or GROUP/VERSION`],
      [{ apiVersion: "a/b/c" }, `${at}.apiVersion must be VERSION or GROUP/VERSION`],
      [{ kind: "Event" }, `${at} must not be an Event, which cannot own objects`],
    ] as const)
      assert.equal(problemsOfOwners({ ...owner, ...reference }), [problem]);
    assert.equal(problemsOfOwners(owner, { ...owner, uid: "2" }), [
      "metadata.ownerReferences[1].controller must be true for at most one owner",
    ]);
  });

  test("validates the fields of the scale subresource as the API server does", () => {
    const scale = {
      specReplicasPath: ".spec.replicas",
      statusReplicasPath: ".status.replicas",
      labelSelectorPath: ".status.selector",
    };
    const open = { "x-kubernetes-preserve-unknown-fields": true };
    const definition = { ...definitionOf(open, { status: open }), scale };
    const problemsIn = (object: object): readonly string[] => {
      try {
        parseResource(definition, { ...identity, ...object });
        return [];
      } catch (error) {
        return (error as SchemaError).problems.map(({ path, message }) => `${path} ${message}`);
      }
    };
    for (const object of [
      {},
      { spec: {} },
      { spec: null },
      { spec: { replicas: 0 }, status: { replicas: 2 ** 31 - 1, selector: "" } },
      { status: null },
    ])
      assert.equal(problemsIn(object), [], JSON.stringify(object));
    const shows = "as the subresource scale shows it";
    for (const [object, ...problems] of [
      [{ spec: { replicas: -1 } }, `spec.replicas must be at least 0, ${shows}, is -1`],
      [{ spec: { replicas: 2 ** 31 } }, `spec.replicas must be at most 2147483647, ${shows}, is 2147483648`],
      [{ spec: { replicas: null } }, `spec.replicas must be an integer, ${shows}, is null`],
      [{ spec: { replicas: "1" } }, `spec.replicas must be an integer, ${shows}, is "1"`],
      [{ spec: { replicas: 1.5 } }, `spec.replicas must be an integer, ${shows}, is 1.5`],
      [{ spec: [] }, `spec.replicas must be an object, ${shows}, is another value`],
      [
        { spec: { replicas: -1 }, status: { replicas: -2, selector: 5 } },
        `spec.replicas must be at least 0, ${shows}, is -1`,
        `status.replicas must be at least 0, ${shows}, is -2`,
        `status.selector must be a string, ${shows}, is 5`,
      ],
    ] as const)
      assert.equal(problemsIn(object), problems);
    // What the schema refuses is said once.
    const typed = { ...definitionOf({ type: "object", properties: { replicas: { type: "integer" } } }), scale };
    assert.throws(
      () => parseResource(typed, { ...identity, spec: { replicas: "x" } }),
      (error: Error) => (error as SchemaError).problems.length === 1,
    );
  });

  test("validates the root with its type and metadata", () => {
    const rootOf = (schema: object) => {
      const definition = definitionOf({ type: "object" });
      return { ...definition, schema: { ...definition.schema, ...schema } } as typeof definition;
    };
    const kind = { properties: { kind: { ...text, enum: ["Other"] } } };
    assert.throws(() => parseResource(rootOf(kind), identity), 'kind: must be one of "Other"');
    const version = { properties: { apiVersion: { ...text, pattern: "^v1$" } } };
    assert.throws(() => parseResource(rootOf(version), identity), "apiVersion: must match ^v1$");
    assert.equal(parseResource(rootOf({ minProperties: 3 }), identity).kind, "Thing");
    assert.throws(() => parseResource(rootOf({ maxProperties: 2 }), identity), "must have at most 2 fields, has 3");
    assert.equal(parseResource(rootOf({ anyOf: [{ required: ["metadata"] }] }), identity).kind, "Thing");
  });

  for (const format of [
    "uri",
    "email",
    "hostname",
    "ipv4",
    "cidr",
    "byte",
    "duration",
    "date-time",
    "rgbcolor",
    "isbn",
  ])
    test(`validates format ${format} in time linear in the length of the string`, () => {
      for (const unit of ["1", "a.", "1s", " ", "0"])
        assertLinear((count) => void problemsOf({ ...text, format }, `${unit.repeat(count)}!`));
    });

  test("accepts deeply nested values and cycles in fields with preserved unknown fields", () => {
    const schema = { type: "object", "x-kubernetes-preserve-unknown-fields": true };
    let deep: object = {};
    for (let level = 0; level < 100_000; level++) deep = { deep };
    assert.equal(problemsOf(schema, deep), []);
    const cycle: { self?: object } = {};
    cycle.self = cycle;
    assert.equal(problemsOf(schema, cycle), []);
  });
});

const scalar: fc.Arbitrary<RawSchema> = fc.oneof(
  fc.record(
    { type: fc.constant("string"), minLength: fc.nat(3), pattern: fc.constantFrom("^a", "b$", "^[ab]*$") },
    { requiredKeys: ["type"] },
  ),
  fc.record(
    { type: fc.constant("string"), nullable: fc.boolean(), enum: fc.constant(["a", "b"]) },
    { requiredKeys: ["type"] },
  ),
  fc.record(
    {
      type: fc.constantFrom("integer", "number"),
      minimum: fc.nat(3),
      maximum: fc.nat(9),
      exclusiveMinimum: fc.boolean(),
    },
    { requiredKeys: ["type"] },
  ),
  fc.constant({ type: "boolean" }),
  fc.constant({ "x-kubernetes-int-or-string": true }),
  fc.constantFrom<RawSchema>(
    { type: "string", default: "a" },
    { type: "integer", default: 3 },
    { type: "string", nullable: true, default: "b" },
  ),
);

const structural = fc.letrec<{ schema: RawSchema }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    scalar,
    tie("schema").map((items): RawSchema => ({ type: "array", items, maxItems: 2 })),
    tie("schema").map((additionalProperties): RawSchema => ({ type: "object", additionalProperties })),
    fc
      .record({
        properties: fc.dictionary(fc.constantFrom("a", "b", "c", "toString"), tie("schema"), {
          minKeys: 1,
          noNullPrototype: true,
        }),
        required: fc.subarray(["a", "b"]),
        isOpen: fc.boolean(),
        alternative: fc.boolean(),
      })
      .map(({ properties, required, isOpen, alternative }): RawSchema => ({
        type: "object",
        properties,
        required: required.filter((name) => Object.hasOwn(properties, name)),
        ...(isOpen ? { "x-kubernetes-preserve-unknown-fields": true } : {}),
        ...(alternative ? { anyOf: [{ required: ["a"] }, { required: ["c"] }] } : {}),
      })),
  ),
})).schema;

const json = fc.letrec<{ value: unknown }>((tie) => ({
  value: fc.oneof(
    { maxDepth: 3, withCrossShrink: true },
    fc.constantFrom("", "a", "b", "ab", "c", 0, 1, 3, 7, 1.5, true, null),
    fc.array(tie("value"), { maxLength: 3 }),
    fc.dictionary(fc.constantFrom("a", "b", "c", "toString"), tie("value"), { maxKeys: 3, noNullPrototype: true }),
  ),
})).value;

suite("parse compared with the API server", (test) => {
  test("agrees on which objects are valid and on the stored object", () => {
    let accepted = 0;
    fc.assert(
      fc.property(structural, json, (spec, value) => {
        const schema = { type: "object", properties: { spec } } as unknown as JsonObject;
        const object = structuredClone({ ...identity, spec: value }) as unknown as JsonObject;
        const unknown = pruneUnknownFields(schema, object);
        dropNulls(schema, object);
        applyDefaults(schema, object);
        const isValid = unknown.length === 0 && validateCustomResource(schema, object).length === 0;
        const problems = problemsOf(spec, value);
        assert.is(problems.length === 0, isValid, problems.join("; "));
        if (!isValid) return;
        accepted++;
        assert.equal(parseSpec(spec, value), object["spec"]);
      }),
      { numRuns: runs(6000) },
    );
    assert.ok(accepted > runs(400), `only ${accepted} of the cases were valid`);
  });
});
