// node test/dist/control-plane/record/record-rule-cases.js writes fixtures/cel/published-rules.jsonl: the rules that the tests of
// k8s.io/apiextensions-apiserver evaluate, with schema and value, and what comes of each. It runs them (which Go has to be there for).
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { repositoryRoot } from "../../support/repository.js";
import { recordGoTests } from "./record-go-tests.js";

const MODULE = "k8s.io/apiextensions-apiserver";
const OUTPUT = join(repositoryRoot, "fixtures/cel/published-rules.jsonl");
const FOLDER = "pkg/apiserver/schema/cel";
const VALIDATE =
  "func (s *Validator) Validate(ctx context.Context, fldPath *field.Path, _ *schema.Structural, obj, oldObj interface{}, costBudget int64, opts ...Option) (errs field.ErrorList, remainingBudget int64) {";

interface Entry {
  readonly schema: object;
  readonly budget: number;
  readonly left: number;
  readonly [name: string]: unknown;
}

const tests = recordGoTests<Entry>({
  module: MODULE,
  files: { [`${FOLDER}/record.go`]: "rule-cases/record.go" },
  hooks: {
    [`${FOLDER}/validation.go`]: [
      [
        VALIDATE,
        `${VALIDATE.replace("_ *schema", "sts *schema")}\n\tdefer func() { recordValidate(s, sts, obj, oldObj, costBudget, len(opts) > 0, errs, remainingBudget) }()`,
      ],
    ],
  },
  args: [
    `./${FOLDER}`,
    "-run",
    "TestValidationExpressions|TestMessageExpression|TestReasonAndFldPath|TestRatcheting|TestOptionalOldSelf|TestCelCostStability",
  ],
});
const lines = [...tests].flatMap(([test, entries]) =>
  entries.map(({ budget, left, ...entry }) => JSON.stringify({ test, ...entry, cost: budget - left })),
);
// The tests of costs repeat rules of the others, and Go runs them in any order.
const unique = [...new Set(lines)].sort();
writeFileSync(OUTPUT, `${unique.join("\n")}\n`);
console.log(`${unique.length} rules of ${MODULE} recorded`);
