// The rules that the tests of kube-apiserver's CEL evaluate, with schema and value, and what comes of each. Recorded by
// test/control-plane/record/record-rule-cases.ts.
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { checkExpressions } from "#schema/definitions/validation-rules.js";
import { evaluateRules } from "#schema/definitions/validation-rules.js";
import type { JsonObject, JsonValue } from "#apiserver/json.js";
import { repositoryRoot } from "../../support/repository.js";
import { isThorough } from "../../support/runs.js";
import { assert, suite } from "../../support/suite.js";

interface PublishedRule {
  readonly test: string;
  readonly schema: JsonObject;
  /** Whether the value is a whole resource. */
  readonly root: boolean;
  readonly object: JsonValue;
  readonly old: JsonValue;
  readonly errors: readonly { readonly field: string; readonly detail: string }[];
}

/** What comes to something else here, by a part of the rule. */
const KNOWN_DIFFERENCES: { readonly [part: string]: string } = {
  "340282346638528859811704183484516925440": "a number of JSON has no more than 53 bits here",
  "string(self.val11)": "a time forgets the offset that it was written with",
  "3.140000×10⁰⁰": "%e is written as in other languages",
  "format.dns1123Label().validate": "the problem names the format, and not its pattern",
  "emptyDurations.sum()": "the sum of nothing is the number 0, whatever the type of the list",
  "gotta be baz": "the test leaves no budget, which is none of the server's",
  'self == "Pod"': "the value stands in another one here, so that its kind is any field",
  "has(self.intorstring)": "a value that does not meet its schema is refused before any rule is evaluated",
};

const file = join(repositoryRoot, "fixtures/cel/published-rules.jsonl");
const all = readFileSync(file, "utf8")
  .trim()
  .split("\n")
  .map((line) => JSON.parse(line) as PublishedRule);
/** A sample, where there is no time for all. */
const cases = isThorough ? all : all.filter((_, index) => index % 10 === 0);

const isCompileError = ({ detail }: { readonly detail: string }) => detail.includes("rule compile error");
const isRefused = ({ errors }: PublishedRule) => errors.some(isCompileError);

/** A value that is no resource stands in one. */
function within({ schema, root, object, old }: PublishedRule) {
  const isWhole = root && typeof object === "object" && object !== null && !Array.isArray(object);
  if (isWhole) return { schema, object, old: (old ?? undefined) as JsonObject | undefined, isWhole };
  const inside = { type: "object", properties: { root: schema } };
  return { schema: inside, object: { root: object }, old: old === null ? undefined : { root: old }, isWhole };
}

function ruleText({ schema }: PublishedRule): string {
  return JSON.stringify(schema["x-kubernetes-validations"] ?? schema).replaceAll('\\"', '"');
}

/** Fails unless the cases that differ are those that are known to, and each of these is needed. */
function assertDifferences(differing: readonly PublishedRule[], known: { readonly [part: string]: string }): void {
  const parts = Object.keys(known);
  const texts = differing.map(ruleText);
  assert.equal(
    differing.filter((each) => !parts.some((part) => ruleText(each).includes(part))).map((each) => each.test),
    [],
  );
  if (!isThorough) return;
  assert.equal(
    parts.filter((part) => !texts.some((text) => text.includes(part))),
    [],
    "is no difference any more",
  );
}

suite("CEL rule of kube-apiserver's tests", (test) => {
  test("has the same errors, except for named differences", () => {
    const differing = cases.filter((each) => {
      if (isRefused(each)) return false;
      const { schema, object, old, isWhole } = within(each);
      const found = evaluateRules(schema, { object, old, found: [] }).errors;
      const fieldOf = (field: string) => (isWhole ? ["root", field].filter((part) => part !== "").join(".") : field);
      return !(
        found.length === each.errors.length &&
        found.every(({ field, message }) =>
          each.errors.some(
            (error) =>
              error.field === fieldOf(field) &&
              // Why an evaluation failed is said in other words.
              (message.endsWith(error.detail) || error.detail.includes(" evaluating rule: ") || isLimit(error)),
          ),
        )
      );
    });
    assertDifferences(differing, KNOWN_DIFFERENCES);
    assert.ok(all.length > 1000);
  });

  test("is accepted or rejected in a CRD as by kube-apiserver", () => {
    const differing = cases.filter((each) => {
      // The tests of messages go past the definition.
      if (each.test.startsWith("TestMessageExpression")) return false;
      const problems = checkExpressions(within(each).schema, { path: "root", errors: [] }).filter(
        ({ message }) => !message.includes("cost"),
      );
      return problems.length > 0 !== isRefused(each);
    });
    assertDifferences(differing, {});
  });
});

function isLimit({ detail }: { readonly detail: string }): boolean {
  return detail.includes("no further validation rules will be run") || detail.includes("no such overload");
}
