import { parseResource } from "@gen-operator/runtime/cel";
import { findExpressionProblem } from "@gen-operator/schema/cel";
import { SchemaError, type ResourceDefinition, type Schema, type ValidationRule } from "@gen-operator/runtime/codegen";
import { assert, suite } from "../../support/suite.js";

const TEXT: Schema = { type: "string" };
const INT: Schema = { type: "integer" };

function definitionOf(spec: Schema, root: Schema = {}): ResourceDefinition {
  const names = { group: "example.com", version: "v1", apiVersion: "example.com/v1", kind: "Thing", plural: "things" };
  const schema: Schema = { type: "object", properties: { spec, metadata: { type: "object" } }, ...root };
  return { ...names, scope: "Cluster", hasStatusSubresource: true, isCustom: true, schema };
}

/** Returns what parse finds wrong with a spec, as `path: message`. */
function problemsOf(definition: ResourceDefinition, spec: unknown): string[] {
  try {
    parseResource(definition, { apiVersion: "example.com/v1", kind: "Thing", metadata: { name: "x" }, spec });
    return [];
  } catch (error) {
    if (!(error instanceof SchemaError)) throw error;
    return error.problems.map(({ path, message }) => `${path}: ${message}`);
  }
}

/** Returns the problems of a spec with fields of these schemas and one rule. */
function check(
  rule: ValidationRule | string,
  spec: Record<string, unknown>,
  properties: NonNullable<Schema["properties"]>,
) {
  const rules = [typeof rule === "string" ? { rule } : rule];
  return problemsOf(definitionOf({ type: "object", properties, "x-kubernetes-validations": rules }), spec);
}

suite("validation rule", (test) => {
  const limits = { min: INT, max: { ...INT, default: 3 } };

  test("is evaluated after defaulting", () => {
    assert.equal(check("self.min <= self.max", { min: 3 }, limits), []);
    assert.equal(check("self.min <= self.max", { min: 4 }, limits), ["spec: failed rule: self.min <= self.max"]);
  });

  test("reads the largest int64 as int", () => {
    const spec = { min: 2 ** 63, max: -(2 ** 63) };
    for (const rule of ["self.min == 9223372036854775807", "self.min - 1 > self.max + 1", "self.max < 0"])
      assert.equal(check(rule, spec, limits), []);
  });

  test("reports its message at its fieldPath", () => {
    const rule = { rule: "self.min <= self.max", message: " min is above max\n", fieldPath: ".min" };
    assert.equal(check(rule, { min: 4 }, limits), ["spec.min: min is above max"]);
  });

  test("reports its messageExpression, or its message if that fails, is empty, or has several lines", () => {
    const rule = { rule: "false", message: "no" };
    const say = (messageExpression: string) => check({ ...rule, messageExpression }, { min: 4 }, limits);
    assert.equal(say("'min is ' + string(self.min)"), ["spec: min is 4"]);
    for (const wrong of ["''", "'a\\nb'", "self.other", "1 +"]) assert.equal(say(wrong), ["spec: no"]);
  });

  test("reports an error if it cannot be evaluated", () => {
    assert.equal(check("self.min > 1", {}, limits), ["spec: no such key: min evaluating rule: self.min > 1"]);
    assert.equal(check("10 / self.min > 1", { min: 0 }, limits).length, 1);
  });

  test("is not evaluated if the schema is not met", () => {
    assert.equal(check("self.min > 1", { min: "1" }, limits), ["spec.min: must be integer, is string"]);
  });

  test("is evaluated for every item, value, branch, and embedded resource", () => {
    const rules = [{ rule: "self != 'a'", message: "is a" }];
    const item = { ...TEXT, "x-kubernetes-validations": rules };
    const pod = {
      type: "object",
      "x-kubernetes-embedded-resource": true,
      "x-kubernetes-preserve-unknown-fields": true,
    } as const;
    const definition = definitionOf({
      type: "object",
      properties: {
        list: { type: "array", items: item },
        map: { type: "object", additionalProperties: item },
        pod: {
          ...pod,
          "x-kubernetes-validations": [
            { rule: "self.kind == 'Pod' && self.metadata.name != ''", message: "is no Pod" },
          ],
        },
      },
      allOf: [
        { properties: { list: { "x-kubernetes-validations": [{ rule: "self.size() < 3", message: "is long" }] } } },
      ],
    });
    assert.equal(
      problemsOf(definition, {
        list: ["a", "b", "a"],
        map: { "x.y": "a", z: "b" },
        pod: { apiVersion: "v1", kind: "Service", metadata: { name: "web" } },
      }).sort(),
      ["spec.list: is long", "spec.list[0]: is a", "spec.list[2]: is a", "spec.map[x.y]: is a", "spec.pod: is no Pod"],
    );
  });

  test("reads apiVersion, kind, and metadata.name, and no other metadata", () => {
    const rule = (text: string): Schema => ({ "x-kubernetes-validations": [{ rule: text, message: "no" }] });
    const spec: Schema = { type: "object", properties: {} };
    assert.equal(problemsOf(definitionOf(spec, rule("self.metadata.name == 'x' && self.kind == 'Thing'")), {}), []);
    assert.equal(problemsOf(definitionOf(spec, rule("has(self.metadata.labels)")), {}), ["<root>: no"]);
  });

  test("is skipped if it uses oldSelf, unless optionalOldSelf is set", () => {
    assert.equal(check("self.min == oldSelf.min", { min: 1 }, limits), []);
    const rule = { rule: "oldSelf.hasValue() || self.min == 1", message: "starts at 1", optionalOldSelf: true };
    assert.equal(check(rule, { min: 1 }, limits), []);
    assert.equal(check(rule, { min: 2 }, limits), ["spec: starts at 1"]);
  });

  test("accesses fields by escaped names", () => {
    const names = ["a-b", "a.b", "a/b", "a__b", "namespace", "if"];
    const rule =
      "self.a__dash__b + self.a__dot__b + self.a__slash__b + self.a__underscores__b + self.__namespace__ + self.__if__ == 6";
    assert.equal(
      check(
        rule,
        Object.fromEntries(names.map((name) => [name, 1])),
        Object.fromEntries(names.map((name) => [name, INT])),
      ),
      [],
    );
  });

  test("reads a null field as absent, and a null map value as present", () => {
    const nullable = { ...TEXT, nullable: true };
    assert.equal(check("!has(self.a)", { a: null }, { a: nullable }), []);
    const map: Schema = { type: "object", additionalProperties: nullable };
    assert.equal(check("'k' in self.a && has(self.a.k) && self.a.k == null", { a: { k: null } }, { a: map }), []);
  });

  test("is skipped if it cannot be compiled", () => {
    assert.equal(check("Foo{a: self.min} == Foo{}", {}, limits), []);
  });
});

/** Fails if work takes more than three times as long, for each unit, with eight times as many. */
function assertLinear(count: number, work: (count: number) => void): void {
  const cpuOf = (size: number) => {
    const start = process.cpuUsage();
    work(size);
    return process.cpuUsage(start).user;
  };
  const leastOf = (size: number) => Math.min(...Array.from({ length: 3 }, () => cpuOf(size)));
  // The first calls are compiled.
  cpuOf(count / 8);
  const [few, many] = [leastOf(count / 8), leastOf(count)];
  assert.ok(many < 3 * 8 * few, `${few} µs for an eighth, ${many} µs for all`);
}

suite("cost limit of a rule", (test) => {
  const numbers: Schema = { type: "array", items: INT };
  const TOO_COSTLY = /operation cancelled: actual cost limit exceeded/;
  const digits = Array.from({ length: 400 }, (_, index) => index);

  // A million steps take a second, and more where other tests run beside this one.
  test.thorough(
    "stops nested loops, also where errors are absorbed",
    () => {
      const rule = "self.n.exists(x, self.n.exists(y, self.n.exists(z, 1 / 0 > 0))) || true";
      assert.match(check(rule, { n: digits }, { n: numbers })[0] ?? "", TOO_COSTLY);
    },
    { timeoutMs: 60_000 },
  );

  test("stops comparisons of large values in a loop", () => {
    const rule = "self.n.all(x, self.list == self.list)";
    const spec = { n: digits, list: Array.from({ length: 20_000 }, () => "text") };
    assert.match(check(rule, spec, { n: numbers, list: { type: "array", items: TEXT } })[0] ?? "", TOO_COSTLY);
  });

  test.thorough("stops growing strings", () => {
    const grown = ".replace('a', self.text)";
    const rule = `self.text${grown}${grown}${grown}.size() > 0`;
    assert.match(check(rule, { text: "a".repeat(1000) }, { text: TEXT })[0] ?? "", TOO_COSTLY);
    const loop = "self.n.all(x, self.text.split('').size() > 0)";
    const spec = { n: digits, text: "a".repeat(100_000) };
    assert.match(check(loop, spec, { n: numbers, text: TEXT })[0] ?? "", TOO_COSTLY);
  });

  test("allows a pattern with nested quantifiers on 200000 characters, which takes linear time", () => {
    assertLinear(200_000, (count) => {
      const spec = { text: `${"a".repeat(count)}b` };
      assert.equal(check("!self.text.matches('^(a+)+$')", spec, { text: TEXT }), []);
    });
  });

  test("allows processing a list of 100000 items, which takes linear time", () => {
    assertLinear(100_000, (count) => {
      const spec = { n: Array.from({ length: count }, (_, index) => index) };
      assert.equal(check("self.n.map(x, x + 1).filter(x, x > 5)[0] == 6", spec, { n: numbers }), []);
    });
  });
});

suite("optional in a rule", (test) => {
  const schema = {
    a: { type: "object", properties: { b: { type: "object", properties: { c: INT } } } },
    list: { type: "array", items: TEXT },
    text: TEXT,
  } as const;
  const spec = { a: { b: { c: 3 } }, list: ["x"], text: ".?b[?0]" };
  for (const rule of [
    "self.?a.b.c.orValue(1) == 3",
    "self.?a.?b.?c == optional.of(3)",
    "self.?missing.b.c.orValue(1) == 1",
    "has(self.?a.b) && !has(self.?missing.b)",
    "self.list[?0].orValue('') == 'x' && !self.list[?7].hasValue()",
    "self.?list[0].orValue('') == 'x'",
    "self.list[? self.list.size() - 1].value() == 'x'",
    "self.text == '.?b[?0]' // self.?a",
    "[?self.?missing, ?optional.of(self.a)].size() == 1",
    "self.list.first() == self.list.last() && !self.list.filter(x, false).first().hasValue()",
    "[self.list[?0], self.list[?7]].unwrapOpt() == optional.unwrap([optional.of('x')])",
    "type(self.?text) == optional_type && type(self.a) == map",
    "{?'x': self.?text, ?'y': self.list[?7], 'z': [?self.list[?0]][0]} == {'x': self.text, 'z': 'x'}",
  ])
    test(`evaluates to true: ${rule}`, () => assert.equal(check(rule, spec, { ...schema, missing: schema.a }), []));
});

suite("macro in a rule", (test) => {
  const schema = { l: { type: "array", items: INT }, m: { type: "object", additionalProperties: INT } } as const;
  for (const rule of [
    "self.m.all(k, v, k == 'a' && v == 1)",
    "self.l.exists(i, v, i == 1 && v == 5) && !self.l.exists(i, v, i == 0 && v == 5)",
    "self.l.existsOne(i, v, v > 3)",
    "self.l.transformList(i, v, v > 1, v * 10 + i) == [30, 51]",
    "self.m.transformMap(k, v, v + 1) == {'a': 2}",
    "self.m.transformMapEntry(k, v, {k + 'x': v}) == {'ax': 1}",
    "self.l.sortBy(x, -x) == [5, 3] && [{'n': 2}, {'n': 1}].sortBy(e, e.n)[0].n == 1",
    "optional.of(1).optMap(v, v + 1).value() == 2 && !optional.none().optMap(v, v + 1).hasValue()",
    "self.?m.a.optFlatMap(v, optional.ofNonZeroValue(v - 1)).orValue(7) == 7",
    "self.m.all(k, v, self.l.all(i, w, w > v + i - 5)) && self.l.all(x, self.l.all(i, y, i >= 0 || x == y))",
  ])
    test(`evaluates to true: ${rule}`, () => assert.equal(check(rule, { l: [3, 5], m: { a: 1 } }, schema), []));

  test.thorough("costs its iterations with two variables", () => {
    const n = Array.from({ length: 2_000 }, (_, index) => index);
    assert.equal(check("self.l.all(i, v, self.l.all(j, w, i + v + j + w >= 0))", { l: n }, schema), [
      "spec: operation cancelled: actual cost limit exceeded evaluating rule: self.l.all(i, v, self.l.all(j, w, i + v + j + w >= 0))",
    ]);
  });
});

suite("type in a rule", (test) => {
  for (const rule of [
    "type(ip(self.text)) == net.IP && net.IP != net.CIDR && type(net.IP) == type",
    "type(cidr(self.text + '/8')) == net.CIDR && type(self.text) == string",
    "type(quantity('1')) == type(quantity('2')) && type(quantity('1')) != map",
    "[self.text].exists(t, type(ip(t)) in [int, net.IP]) && matches(self.text, '^10')",
  ])
    test(`evaluates to true: ${rule}`, () => assert.equal(check(rule, { text: "10.0.0.1" }, { text: TEXT }), []));
});

suite("findExpressionProblem", (test) => {
  const said: readonly (readonly [string, string | RegExp])[] = [
    ["size(self.a, 1) == 1", "function size with 2 arguments is not supported"],
    ["self.map.all(k, v, w, v != k)", "function all with 4 arguments is not supported"],
    ["self.list.shuffle()", "function shuffle is not supported"],
    ["Foo{a: 1}", "type Foo is not supported"],
    ["self.a ==", /^cannot parse the expression: 1:\d/],
    [`${"(".repeat(20_000)}1${")".repeat(20_000)}`, "the expression is nested too deeply"],
  ];
  for (const [expression, problem] of said)
    test(`names the unsupported part of ${expression.slice(0, 40)}`, () => {
      const found = findExpressionProblem(expression) ?? "nothing";
      if (typeof problem === "string") assert.is(found, problem);
      else assert.match(found, problem);
    });

  test("returns undefined for supported expressions", () => {
    for (const expression of [
      "self.a == 1",
      "optional.none().hasValue()",
      "ip.isCanonical(self.ip)",
      "sets.contains([1], [1])",
      "self.a == 1 // as always",
      "self.?a.hasValue() // or not",
    ])
      assert.is(findExpressionProblem(expression), undefined);
  });
});
