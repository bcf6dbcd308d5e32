import { parseExpression, type ProvenField } from "#generator/model/expression.js";
import fc from "../../../support/fast-check.js";
import { assert, suite } from "../../../support/suite.js";

function provenBy(text: string): readonly ProvenField[] {
  const parsed = parseExpression(text);
  if (parsed.kind === "problem") throw new Error(`${text}: ${parsed.message}`);
  return parsed.proves;
}

/** What is proven of each field, in few words. */
const wordsOf = (text: string) =>
  provenBy(text).map(({ path, without = [], equals }) => {
    const value = equals === undefined ? `not ${without.join(", ")}` : JSON.stringify(equals);
    return `${path.join(".")}: ${value}`;
  });

const PROVEN: readonly (readonly [expression: string, ...words: string[]])[] = [
  ["primary.spec.backup !== undefined", "spec.backup: not undefined"],
  ["undefined !== primary.spec.backup", "spec.backup: not undefined"],
  ["primary.spec.backup !== null", "spec.backup: not null"],
  ["primary.spec.backup != null", "spec.backup: not undefined, null"],
  ["primary.spec.backup != undefined", "spec.backup: not undefined, null"],
  ["(primary.spec?.backup)!.at !== undefined", "spec.backup.at: not undefined"],
  ["primary['spec'].backup?.['at'] !== undefined", "spec.backup.at: not undefined"],
  ["(primary.spec.backup as object) !== undefined", "spec.backup: not undefined"],
  ["primary.spec.isOn", "spec.isOn: not falsy"],
  ["!!primary.spec.host", "spec.host: not falsy"],
  ["Boolean(primary.spec.host)", "spec.host: not falsy"],
  ["primary.spec.isOn ?? false", "spec.isOn: not falsy"],
  ["primary.spec.mode === 'daily'", 'spec.mode: "daily"'],
  ["'daily' === primary.spec.mode", 'spec.mode: "daily"'],
  ["primary.spec.size === -1", "spec.size: -1"],
  ["primary.spec.backup?.isOn === true", "spec.backup.isOn: true"],
  [
    "primary.spec.a !== undefined && (primary.spec.b === 1 && primary.spec.c)",
    "spec.a: not undefined",
    "spec.b: 1",
    "spec.c: not falsy",
  ],
  // What something was read of, or a method called of, is there.
  ["primary.spec.hosts?.includes('a') === true", "spec.hosts: not undefined, null"],
  ["primary.spec.hosts?.[0] !== undefined", "spec.hosts: not undefined, null"],
  ["primary.spec.hosts?.find((primary) => primary === 'a')?.length !== undefined", "spec.hosts: not undefined, null"],
  ["secondary.web !== undefined && primary.spec.a !== undefined", "spec.a: not undefined"],
];

const UNPROVEN = [
  "primary.spec.a === undefined",
  "primary.spec.a !== 1",
  "primary.spec.a == 1",
  "primary.spec.a === null",
  "primary.spec.a !== undefined || primary.spec.b !== undefined",
  "!(primary.spec.a === undefined)",
  "!primary.spec.a",
  "primary.spec.a !== undefined ? true : false",
  "(primary.spec.a ?? 0) > 0",
  "primary.spec.a ?? true",
  "primary.spec.hosts?.[0] !== null",
  "[1].some((primary) => primary !== undefined)",
  "secondary.web !== undefined",
  "live?.spec.a !== undefined",
  "context.primaries !== undefined",
  "primary !== undefined",
  "primary.spec.a === primary.spec.b",
  "primary.spec.a === 1e999",
];

const NAMES = ["a", "b"] as const;
const values = fc.constantFrom(
  undefined,
  null,
  false,
  true,
  0,
  1,
  "",
  "x",
  {},
  { a: 1 },
  { a: null, b: { a: "x" } },
  ["x"],
  [],
);
const primaries = fc.record({ spec: fc.oneof(values, fc.record({ a: values, b: values }, { requiredKeys: [] })) });
const fields = fc
  .array(fc.tuple(fc.constantFrom("?.", "."), fc.constantFrom(...NAMES)), { minLength: 0, maxLength: 2 })
  .map((steps) => `primary.spec${steps.map(([dot, name]) => `${dot}${name}`).join("")}`);
const reads = fc.oneof(
  fields,
  fields.map((field) => `${field}?.[0]`),
  fields.map((field) => `${field}?.includes?.("x")`),
  fields.map((field) => `(${field})!`),
);
const literals = fc.constantFrom("undefined", "null", "true", "false", "1", "-1", "''", "'x'");
const tests = fc.oneof(
  reads,
  fc
    .tuple(reads, fc.constantFrom("===", "!==", "==", "!="), literals, fc.boolean())
    .map(([read, operator, literal, isTurned]) =>
      isTurned ? `${literal} ${operator} ${read}` : `${read} ${operator} ${literal}`,
    ),
);
const { expressions } = fc.letrec<{ expressions: string }>((tie) => ({
  expressions: fc.oneof(
    { maxDepth: 3 },
    tests,
    fc
      .tuple(tie("expressions"), fc.constantFrom("&&", "&&", "||", "??"), tie("expressions"))
      .map(([left, operator, right]) => `(${left}) ${operator} (${right})`),
    tie("expressions").map((inner) => `!(${inner})`),
    tie("expressions").map((inner) => `!!(${inner})`),
    tie("expressions").map((inner) => `Boolean(${inner})`),
    tie("expressions").map((inner) => `(${inner}) ?? false`),
  ),
}));

function holds({ path, without = [], equals }: ProvenField, primary: object): boolean {
  let value: unknown = primary;
  for (const name of path) {
    // What a field is in is there, unless all that is known is that it is not null.
    if (value == null) return without.every((each) => each === "null") && equals === undefined;
    value = (value as { readonly [name: string]: unknown })[name];
  }
  if (equals !== undefined) return value === equals;
  return without.every((each) => (each === "falsy" ? Boolean(value) : value !== (each === "null" ? null : undefined)));
}

suite("provenFieldsOf", (test) => {
  for (const [expression, ...words] of PROVEN)
    test(`returns for ${expression}: ${words.join("; ")}`, () => assert.equal(wordsOf(expression), words));

  test("returns nothing for negations, alternatives, and other subjects", () => {
    for (const expression of UNPROVEN) assert.equal(wordsOf(expression), [], expression);
  });

  test("returns only fields that hold for every primary for which a random condition is true", () => {
    let proofs = 0;
    fc.assert(
      fc.property(expressions, primaries, (expression, primary) => {
        const proven = provenBy(expression);
        if (proven.length === 0) return;
        const javascript = expression.replaceAll(")!", ")");
        let isTrue: boolean;
        try {
          isTrue = Boolean(
            (new Function("primary", `return (${javascript})`) as (primary: object) => unknown)(primary),
          );
        } catch {
          return;
        }
        if (!isTrue) return;
        proofs++;
        for (const proof of proven) assert.ok(holds(proof, primary), `${JSON.stringify(proof)} of ${expression}`);
      }),
      { numRuns: 3_000 },
    );
    assert.ok(proofs > 100, `only ${proofs} were true and proved something`);
  });
});
